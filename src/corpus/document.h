/* document: paragraphs of the user's text, as a source gives them out: a whole document, or, of a long one, a piece.
 *
 * The rule: a paragraph is valid UTF-8, trimmed, not empty and without line ends; a piece ends where a paragraph
 * ends.  So whoever holds a document holds little: about DOCUMENT_BYTES, and one paragraph at most above. */
#ifndef KILN_CORPUS_DOCUMENT_H
#define KILN_CORPUS_DOCUMENT_H

#include "core/buf.h"

enum {
    DOCUMENT_BYTES = 1 << 20, /* of text, from which on a document is given out in pieces: two books */
    DOCUMENT_PARAGRAPH_BYTES = 1 << 24, /* where a paragraph is cut: no prose has one like this */
};

struct paragraph {
    const char *text; /* [n] borrowed from the document */
    size_t n;
};

struct document {
    bool begins;            /* false: it goes on with the document whose piece came before */
    int64_t n_paragraphs;   /* at least 1 in what a source gives out */
    struct buf id, title;   /* where the format has them, and only in the first piece; else empty */
    struct buf text;        /* the paragraphs end to end */
    size_t *ends, capacity; /* [n_paragraphs] where they end in it */
};

/* A zeroed struct is empty. */
void document_fini(struct document *d);
void document_clear(struct document *d); /* keeps the memory */

struct paragraph document_paragraph(const struct document *d, int64_t i);

/* Bytes of the paragraph that is being written: what was appended to `text` since the last end. */
size_t document_open_bytes(const struct document *d);

/* Ends the paragraph that was appended to `text`.  STATUS_MEMORY, also for an append that failed. */
struct status document_end_paragraph(struct document *d);

#endif
