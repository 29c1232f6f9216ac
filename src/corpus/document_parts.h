/* document_parts: the tokens of documents on their way to stores: which parts are held out, and the document
 * that each store is being given.
 *
 * The rule: what a store gets depends on the documents and the settings alone, however often it was saved and
 * continued. */
#ifndef KILN_CORPUS_DOCUMENT_PARTS_H
#define KILN_CORPUS_DOCUMENT_PARTS_H

#include "core/bytes.h"
#include "corpus/document_output.h"
#include "corpus/document_tokens.h"

struct document_parts_store {
    struct document_output output; /* the caller's to name, claim, open, complete and close */
    struct id_list ids;            /* tokens of the document that are not written */
    bool has_tokens;               /* the document has tokens, in `ids` or written */
};

/* The caller sets the first fields of a zeroed struct, and then plans. */
struct document_parts {
    const struct tokenizer *tokenizer; /* borrowed */
    bool append_end;                   /* the end token, to each document that has tokens */
    bool by_key;             /* part i of a document goes to store i; else store 1 is the held-out one */
    double holdout_fraction; /* fraction of the parts; 0: nothing is held out */
    uint64_t seed;
    int n_stores;

    struct document_parts_store stores[SOURCE_MOST_KEYS];
    size_t part_bytes; /* size of a part, for document_tokens; 0: documents are not cut */
    /* Parts so far; the part that is held out next, and how many were chosen before it. */
    int64_t n_parts, next_heldout, n_strata;
};

/* Plans what is held out of a text of so many bytes. */
void document_parts_plan(struct document_parts *p, uint64_t text_bytes);

/* Adds the parts of a document, or piece of one; and ends the document.  STATUS_MEMORY, STATUS_IO. */
struct status document_parts_add(struct document_parts *p, const struct document_tokens *t);
struct status document_parts_end(struct document_parts *p);

/* Makes all durable, and appends what document_parts_continue needs; which opens the outputs, too.
 * STATUS_IO; STATUS_DATA: the files are others, or the state is damaged. */
struct status document_parts_save(struct document_parts *p, struct buf *out);
struct status document_parts_continue(struct document_parts *p, struct span *in);

/* Closes the outputs, which keep their files if a later run continues them. */
void document_parts_close(struct document_parts *p, bool keeps);

#endif
