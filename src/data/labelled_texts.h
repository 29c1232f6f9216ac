/* labelled_texts: texts as token ids, each with its labels: what `kiln classify` and `kiln tag` train on and
 * predict. */
#ifndef KILN_DATA_LABELLED_TEXTS_H
#define KILN_DATA_LABELLED_TEXTS_H

#include "core/buf.h"
#include "data/example_batches.h"
#include "text/token_list.h"

struct labelled_text {
    int64_t first, n; /* in ids, special tokens included */
    int64_t n_first;  /* of them in segment 0 */
    int64_t labels;   /* where they begin in labels */
};

/* A list without texts: all zero except the first two fields. */
struct labelled_texts {
    bool of_tokens; /* a label for each token, -1: none; else `width` numbers for each text */
    int64_t width;
    struct id_list ids;
    struct buf texts;  /* struct labelled_text */
    struct buf labels; /* int32_t, or the bits of float: as the batch's field TEXT_CLASS_LABELS has them */
    int64_t n, max_length;
};

/* Appends a text of n ids, of which n_first are segment 0, and its labels, [n] of tokens, else [width]; NULL:
 * it has none.  STATUS_MEMORY. */
struct status labelled_texts_add(struct labelled_texts *t, const int32_t *ids, int64_t n, int64_t n_first,
                                 const int32_t *labels);
void labelled_texts_fini(struct labelled_texts *t);

const struct labelled_text *labelled_texts_get(const struct labelled_texts *t, int64_t i);

/* The labels of text i. */
const int32_t *labelled_texts_labels(const struct labelled_texts *t, int64_t i);

/* A source for example_batches; `name` is for messages.  Borrows the texts. */
struct example_source labelled_texts_source(const struct labelled_texts *t, const char *name);

#endif
