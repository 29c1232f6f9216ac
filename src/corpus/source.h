/* source: the documents of one file.  What a file of each kind looks like is said by a table, one file of this room a
 * format (text_source.c, lines_source.c, wiki_source.c); which it is, by corpus/source_formats.h.
 * docs/howto/add_a_text_source.md says how another is added.
 *
 * The rule: a source reads forward and holds no more than a block of the file, a line, and what the document it fills
 * holds; and reading may go on from any place behind a document that it gave out. */
#ifndef KILN_CORPUS_SOURCE_H
#define KILN_CORPUS_SOURCE_H

#include "corpus/document.h"
#include "corpus/text_reader.h"

enum { SOURCE_N_FORMATS = 3 }; /* rows of source_formats */

/* What was met so far. */
struct source_counts {
    int64_t n_files;
    int64_t n_by_format[SOURCE_N_FORMATS]; /* files that are not empty */
    int64_t n_documents;                   /* with text */
    int64_t n_empty_documents;             /* files without text included */
    int64_t n_replaced;                    /* ill-formed sequences that became U+FFFD */
    int64_t n_cut;                         /* how often a paragraph was cut, being longer than is kept */
};

/* Between two pieces of text that were given out, or before the first: {0}. */
struct source_place {
    struct text_place text;
    bool inside;   /* of a document */
    bool has_text; /* it has given some out already */
};

struct source {
    const struct source_format *format;
    struct source_counts *counts; /* borrowed */
    struct text_reader reader;
    bool inside, has_text; /* as in source_place */
    bool title_next;       /* wiki: the next line is a title */
};

struct source_format {
    const char *name;      /* as flags and messages have it */
    bool is_prose;         /* it may be asked for where a file looks like markup */
    bool file_is_document; /* a file begins one; else a line of it does */

    /* Whether a file that begins with text[0..n), without a byte order mark, is of this format.  NULL in the first row,
     * which takes what is left. */
    bool (*recognises)(const char *text, size_t n);

    /* Adds paragraphs to the empty document, with the functions below, until the user's document ends and has text,
     * until it is full, or until the file ends, where it leaves no document open. */
    struct status (*read)(struct source *s, struct document *out);
};

/* One that is not open; it serves one file after the other. */
void source_init(struct source *s, struct source_counts *counts);
void source_fini(struct source *s);

/* Opens a file that had `n_bytes` when it was listed; `format` NULL: the one that recognises it.  STATUS_DATA:
 * it cannot be opened, or is no text. */
struct status source_open(struct source *s, const char *path, uint64_t n_bytes,
                          const struct source_format *format, bool replace_invalid_utf8);
void source_close(struct source *s);

/* The next document, or piece of one, with text; *end is true behind the last.  STATUS_DATA: invalid UTF-8, or a file
 * that is not in its format; STATUS_IO. */
struct status source_next(struct source *s, struct document *out, bool *end);

/* The place behind what source_next gave out last, and going on from there, in the same file opened anew. */
struct source_place source_place(const struct source *s);
struct status source_seek(struct source *s, struct source_place place);

/* ---- for formats ---- */

void source_begin_document(struct source *s);
void source_end_document(struct source *s); /* does nothing outside of one */

/* Appends a line, or a part of one, to the paragraph that is being written, repaired if that is asked for. */
void source_append(struct source *s, struct document *out, struct text_line line);

/* Ends the paragraph, if anything was appended to it. */
struct status source_end_paragraph(struct source *s, struct document *out);

/* Both: a line that is a paragraph. */
struct status source_add_line(struct source *s, struct document *out, struct text_line line);

/* Whether the piece is large enough to be given out, and no paragraph is being written. */
bool source_is_full(const struct document *out);

#endif
