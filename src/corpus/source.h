/* source: the documents of one file.  Each format is a table in its own file (text_source.c, lines_source.c,
 * wiki_source.c); corpus/source_formats.h chooses one. docs/howto/add_a_text_source.md says how to add a
 * format.
 *
 * The rule: a source reads forward and holds no more than a block of the file, a line and the document being
 * filled; reading can continue from any place after a document that it returned. */
#ifndef KILN_CORPUS_SOURCE_H
#define KILN_CORPUS_SOURCE_H

#include "corpus/document.h"
#include "corpus/text_reader.h"

enum { SOURCE_N_FORMATS = 5 /* rows of source_formats */, SOURCE_MOST_KEYS = 8 };

struct source_options {
    const struct source_format *format; /* NULL: each file's format is recognised */
    bool replace_invalid_utf8;          /* replace it by U+FFFD; else it is an error */
    const char *encoding;               /* text/encoding.h's; NULL: UTF-8 */
    const char *text_field;             /* key of the text in a line of JSON; NULL: "text" */
    const char *const *json_keys;       /* [n_json_keys] with keeps_layout: keys of several texts of a line */
    int n_json_keys;
    const char *const *kept_fields; /* [n_kept_fields] keys of a line of JSON, kept with their values */
    int n_kept_fields;
    bool keep_gutenberg;    /* keep the header and footer that Project Gutenberg adds to a book */
    bool allow_truncated;   /* accept a compressed file without its end: the part that is there is used */
    bool keeps_layout;      /* plain text and JSON are kept exactly: white space, indentation, blank lines */
    bool leaves_out_others; /* files of a directory that are not text are left out; else they are errors */
    bool quiet;             /* faults of files are only counted */
};

/* Counts of the files and documents that were read so far. */
struct source_counts {
    int64_t n_files;
    int64_t n_other_files;                 /* files of directories that are left out, for they are not text */
    int64_t n_by_format[SOURCE_N_FORMATS]; /* files that are not empty */
    int64_t n_documents;                   /* documents with text */
    int64_t n_empty_documents;             /* files without text included */
    int64_t n_replaced;                    /* ill-formed sequences that became U+FFFD */
    int64_t n_cut;                         /* paragraphs that were cut because they were too long */
    int64_t n_damaged_parts;               /* damaged parts of compressed files, left out */
    int64_t n_unclosed;  /* documents that end without their mark, by the next one's or the end of the file */
    int64_t n_cut_files; /* compressed files that end in the middle of their data */
    int64_t n_missing_pages; /* pages that the indexes of dumps list, and that were not read */
    int64_t n_gutenberg;     /* books whose Project Gutenberg header and footer were left out */
};

/* A place between two pieces of text that were returned; {0} is before the first. */
struct source_place {
    struct text_place text;
    bool inside;     /* a document */
    bool has_text;   /* the document has returned some text already */
    int64_t n_pages; /* pages of a dump before the place */
};

struct source {
    const struct source_format *format;
    struct source_counts *counts; /* borrowed */
    struct text_reader reader;
    bool inside, has_text;             /* the same fields as in source_place */
    int64_t n_pages;                   /* dump: returned, and not cut */
    bool title_next;                   /* wiki: the next line is a title */
    bool keep_gutenberg, keeps_layout; /* the same as in source_options */
    uint64_t book_begin, book_end;     /* text: the bytes outside are left out; 0: all are used */
    struct wiki_site *site, *sites; /* dump: of this file; a list of those of all files, freed at the end */
};

struct source_format {
    const char *name;      /* name in flags and messages */
    bool is_prose;         /* the user may choose it for a file that looks like markup */
    bool file_is_document; /* a file begins one; else a line of it does */
    bool keeps_blanks;     /* lines are returned as they are, not trimmed */

    /* Whether a file that begins with text[0..n), without a byte order mark, is of this format.  NULL in the
     * first row, which takes every other file. */
    bool (*recognises)(const char *text, size_t n);

    /* Reads what stands before the first document; NULL: nothing does. */
    struct status (*open)(struct source *s);

    /* Adds paragraphs to the empty document, with the functions below, until the user's document ends and has
     * text, until it is full, or until the file ends, where it leaves no document open.  A format that
     * converts sets out->format, and out->raw or a fate, and counts nothing. */
    struct status (*read)(struct source *s, struct document *out);

    /* Makes the paragraphs, id and title of a raw document, or sets its fate; NULL: its documents are not
     * raw. *state is the calling thread's own, NULL at first, and convert_fini frees it. */
    struct status (*convert)(void **state, const struct source_options *o, struct document *d);
    void (*convert_fini)(void *state);
};

/* A source that is not open; it serves one file after the other. */
void source_init(struct source *s, struct source_counts *counts);
void source_fini(struct source *s);

/* Opens a file that had `n_bytes` when it was listed.  STATUS_DATA: it cannot be opened, or is not text. */
struct status source_open(struct source *s, const char *path, uint64_t n_bytes,
                          const struct source_options *o);
void source_close(struct source *s);

/* The next document with text, or piece of one, or raw document; *end is true after the last.  STATUS_DATA:
 * invalid UTF-8, or a file that is not in its format; STATUS_IO. */
struct status source_next(struct source *s, struct document *out, bool *end);

/* The place after what source_next returned last; and a seek to such a place, in the same file opened
 * again. */
struct source_place source_place(const struct source *s);
struct status source_seek(struct source *s, struct source_place place);

/* ---- for formats ---- */

/* Begins a document, which is counted as empty if no text follows before its end. */
void source_begin_document(struct source *s);
void source_end_document(struct source *s); /* does nothing outside a document */

/* Appends a line, or a part of one, to a document's text or raw text; repairs its UTF-8 if asked to, and
 * counts that. */
void source_append(struct source *s, struct buf *to, struct text_line line);

/* Ends the paragraph, if anything was appended to it. */
struct status source_end_paragraph(struct source *s, struct document *out);

/* Appends a line that is a paragraph of its own, and ends the paragraph. */
struct status source_add_line(struct source *s, struct document *out, struct text_line line);

/* Appends a line as it is, with its end, to the exact document, a carriage return before the end apart.
 * *is_full: the paragraph has ended, and the piece is to be returned; the next begins with a line that is not
 * indented, so that tokens do not cross the cut. */
struct status source_add_exact(struct source *s, struct document *out, struct text_line line, bool *is_full);

/* Whether the piece is large enough to be returned, and no paragraph is being written. */
bool source_is_full(const struct document *out);

#endif
