/* text_output: documents as lines of JSON, {"id": "12", "url": "...", "title": "...", "text": "..."}, which
 * WikiExtractor's --json writes too, and the json format of corpus/source_formats.h reads.  Paragraphs of the
 * text end with "\n", except the last.  Fields that a document's format does not have are "".
 *
 * A document that comes in pieces is written piece by piece, so memory does not grow with it. */
#ifndef KILN_CORPUS_TEXT_OUTPUT_H
#define KILN_CORPUS_TEXT_OUTPUT_H

#include "corpus/document.h"
#include "io/append_file.h"

struct text_output {
    struct append_file file;
    struct buf line;     /* scratch */
    bool inside;         /* a line is begun */
    bool begins;         /* the next paragraph begins a line */
    int64_t n_documents; /* lines begun */
};

/* The progress of the output: {0} is the beginning. */
struct text_output_place {
    struct append_mark file;
    bool inside, begins;
    int64_t n_documents;
};

/* Opens PATH for writing, cut to where `from` says.  STATUS_IO. */
struct status text_output_open(struct text_output *t, const char *path, const struct text_output_place *from);
void text_output_close(struct text_output *t);

/* The paragraphs that follow are of another document.  It gets a line when its first paragraph comes. */
void text_output_begin(struct text_output *t);

/* Adds a paragraph of `d`, whose id, url and title are used if it is the first of its document. */
struct status text_output_add(struct text_output *t, const struct document *d, struct paragraph p);

/* Ends the last line.  Call it once, after all documents. */
void text_output_end(struct text_output *t);

/* Makes all durable. */
struct status text_output_save(struct text_output *t, struct text_output_place *place);

#endif
