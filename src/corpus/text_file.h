/* text_file: a complete file of text in memory, as UTF-8, and its lines.
 *
 * The rule: a file that is no text is refused by name, and a byte that is not of the encoding by line and
 * byte, before anything is read from it.  A byte order mark at the beginning is skipped.  Lines end in LF or
 * CR LF or, in a file without any LF, in CR. (Larger text is read in blocks by corpus/text_reader.) */
#ifndef KILN_CORPUS_TEXT_FILE_H
#define KILN_CORPUS_TEXT_FILE_H

#include "core/buf.h"
#include "io/file.h"

struct text_file {
    const char *path; /* borrowed */
    const char *text; /* [n], without a mark; not NULL */
    size_t n;
    char line_end;        /* '\n', or '\r' in a file that has no other */
    size_t at;            /* where the next line begins */
    int64_t line;         /* number of the next line, from 1 */
    struct file_map map;  /* empty for a text of memory */
    struct buf converted; /* empty for a file of UTF-8 */
};

/* Reads the file; `encoding` is text/encoding.h's, NULL: UTF-8.  STATUS_DATA: it is missing, is no text, or
 * is not of the encoding; STATUS_USAGE: there is no such encoding. */
struct status text_file_open(struct text_file *f, const char *path, const char *encoding);
void text_file_close(struct text_file *f);

/* Reads bytes in memory as text_file_open reads a file; they are borrowed, and `name` stands for the path. */
struct status text_file_view(struct text_file *f, const char *name, const char *bytes, size_t n,
                             const char *encoding);

/* STATUS_DATA: it holds NUL bytes, which end a text in C. */
struct status text_file_refuse_nul(const struct text_file *f);

/* After reading: io/file's file_map_check. */
struct status text_file_check(const struct text_file *f);

/* The next line, without its end, borrowed from the file; false after the last.  Its number is then f->line -
 * 1. */
bool text_file_next(struct text_file *f, const char **line, size_t *n);

#endif
