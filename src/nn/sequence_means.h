/* sequence_means: the mean of the rows of each sequence: attention whose queries and keys are zeros gives
 * every key the same probability.
 *
 *     m = softmax(0) h, for each token of a sequence the mean of its tokens' rows */
#ifndef KILN_NN_SEQUENCE_MEANS_H
#define KILN_NN_SEQUENCE_MEANS_H

#include "core/arena.h"
#include "nn/layer.h"

struct sequence_means {
    tensor zeros; /* [T, H] queries and keys */
    tensor means; /* [T, H] m */
    tensor lse;   /* [T, N] */
    tensor dmeans, dq,
        dk; /* [T, H] the gradient of m; those of zeros, which nobody reads; null without a backward */
};

/* Carves memory for T rows of H columns, which attention takes as N heads. */
void sequence_means_carve(struct sequence_means *m, struct arena *arena, const struct layer_form *form,
                          enum dtype dtype, bool kept, int64_t n_tokens);

/* Computes m->means of h [T, H]. */
void sequence_means_forward(struct exec *x, const struct sequence_means *m, tensor h,
                            const struct layer_call *call);

/* dh = the gradient of h, from m->dmeans. */
void sequence_means_backward(struct exec *x, const struct sequence_means *m, tensor dh, tensor h,
                             const struct layer_call *call);

#endif
