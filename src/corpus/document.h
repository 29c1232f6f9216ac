/* document: paragraphs of the user's text, as a source returns them: a whole document, or a piece of a long
 * one.
 *
 * The rule: a paragraph is valid UTF-8, trimmed, not empty and without line ends; a piece ends where a
 * paragraph ends.  So a document takes little memory: about DOCUMENT_BYTES, and at most one paragraph
 * more. */
#ifndef KILN_CORPUS_DOCUMENT_H
#define KILN_CORPUS_DOCUMENT_H

#include "core/buf.h"

enum {
    DOCUMENT_BYTES = 1 << 20, /* of text; a longer document is returned in pieces: this is two books */
    DOCUMENT_PARAGRAPH_BYTES = 1 << 24, /* where a paragraph is cut; no prose has a longer one */
};

struct paragraph {
    const char *text; /* [n] borrowed from the document */
    size_t n;
};

struct document {
    bool begins;            /* false: it continues the document of the piece before */
    int64_t n_paragraphs;   /* at least 1 when a source returns it */
    struct buf id, title;   /* if the format has them, and only in the first piece; else empty */
    struct buf text;        /* the paragraphs end to end */
    size_t *ends, capacity; /* [n_paragraphs] where they end in it */
};

/* A zeroed struct is empty. */
void document_fini(struct document *d);
void document_clear(struct document *d); /* keeps the memory */

struct paragraph document_paragraph(const struct document *d, int64_t i);

/* Bytes of the paragraph being written: what was appended to `text` since the last end. */
size_t document_open_bytes(const struct document *d);

/* Ends the paragraph that was appended to `text`.  STATUS_MEMORY, also if an append has failed. */
struct status document_end_paragraph(struct document *d);

#endif
