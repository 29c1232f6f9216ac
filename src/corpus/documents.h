/* documents: the user's text, file by file, document by document, paragraph by paragraph.
 *
 *   text   a document is a file; blank lines end paragraphs, whose lines are joined (wrapped prose, books)
 *   lines  blank lines end documents; a line is a paragraph, or a sentence
 *   wiki   what WikiExtractor writes: <doc id= url= title=>, the title's line (dropped), paragraphs, </doc>
 *
 * `auto` looks at the beginning of each file: wiki if it begins with <doc id=, lines if most lines end like a
 * sentence and stand below one another, else text.  What corpus/not_text.h knows is refused by name; XML, HTML
 * and JSON are prose where `text` or `lines` says so.
 *
 * The rule: what comes out is valid UTF-8 without line ends; bytes that are not are an error with file and
 * offset, or, if asked for, U+FFFD.  The order depends on names only: directories are walked in byte order,
 * names that begin with a dot are left out. */
#ifndef KILN_CORPUS_DOCUMENTS_H
#define KILN_CORPUS_DOCUMENTS_H

#include "core/buf.h"
#include "io/file.h"

#include <stdint.h>

enum documents_format {
    DOCUMENTS_AUTO,
    DOCUMENTS_TEXT,
    DOCUMENTS_LINES,
    DOCUMENTS_WIKI,
    DOCUMENTS_N_FORMATS
};

struct documents_file {
    char *path;
    uint64_t n_bytes;
};

struct documents {
    enum documents_format wanted;
    bool replace_invalid_utf8;

    struct documents_file *files; /* [n_files], in order */
    int64_t n_files, capacity;
    uint64_t total_bytes;

    int64_t n_opened;   /* files opened so far; the last of them is current */
    uint64_t old_bytes; /* of the files before it */
    struct file_map map;
    enum documents_format format; /* of the current file */
    size_t at;                    /* next byte of it */
    int64_t line;                 /* number of the line before `at` */
    bool has_invalid_utf8;        /* the current file needs repair */
    bool inside;                  /* of a document */
    bool title_next;              /* wiki: the next line is a title */
    int64_t n_paragraphs;         /* of the current document so far */
    struct buf paragraph, repaired;

    int64_t n_by_format[DOCUMENTS_N_FORMATS]; /* files */
    int64_t n_documents;                      /* with text */
    int64_t n_empty_documents;                /* files without text included */
    int64_t n_replaced;                       /* ill-formed sequences that became U+FFFD */
};

struct documents_text {
    const char *text; /* [n] one paragraph, trimmed, not empty; borrowed until the next call */
    size_t n;
    bool starts_document;
};

/* The name of a format, as in the head of this file, to its value; false if there is none of this name. */
bool documents_find_format(const char *name, enum documents_format *format);
const char *documents_format_name(enum documents_format format);

/* Lists the files of `inputs` (files and directories, walked to the bottom).  STATUS_DATA: one that is
 * missing or empty, or a directory without files. */
struct status documents_open(struct documents *d, const char *const *inputs, int n_inputs,
                             enum documents_format format, bool replace_invalid_utf8);
void documents_close(struct documents *d);

/* The next paragraph; *end is true behind the last.  STATUS_DATA: invalid UTF-8, a file that is not in its
 * format, or that is no text. */
struct status documents_next(struct documents *d, struct documents_text *out, bool *end);

/* Bytes read so far, of total_bytes. */
uint64_t documents_done_bytes(const struct documents *d);

#endif
