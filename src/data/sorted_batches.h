/* sorted_batches: examples in batches for prediction: sorted by length, longest first, and the number in a
 * batch is what fits into its tokens.  One long example does not make the batches of short ones small. */
#ifndef KILN_DATA_SORTED_BATCHES_H
#define KILN_DATA_SORTED_BATCHES_H

#include "data/example_source.h"

struct sorted_batches {
    struct example_source source;
    int64_t *order;  /* [source.n] the examples, longest first */
    int64_t *firsts; /* [n + 1] where in `order` a batch begins */
    int64_t n;       /* batches */
    int32_t pad_id;
};

/* Allocates the numbers of the examples [source->n], longest first, of equal ones the first; the caller frees
 * it.  STATUS_MEMORY. */
struct status sorted_batches_order(int64_t **order, const struct example_source *source);

/* Sorts and cuts.  An example must fit the limits.  STATUS_MEMORY. */
struct status sorted_batches_init(struct sorted_batches *b, const struct example_source *source,
                                  struct batch_limits limits, int32_t pad_id);

/* Safe on a zeroed struct. */
void sorted_batches_fini(struct sorted_batches *b);

/* Fills `out`, which has space for the limits, with batch `index`; returns its examples [out->n_sequences],
 * by sequence. */
const int64_t *sorted_batches_fill(const struct sorted_batches *b, int64_t index, struct batch *out);

#endif
