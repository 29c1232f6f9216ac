/* feed_forward: the feed-forward sublayer of a transformer layer: branch = gelu(h W_1^T + b_1) W_2^T, and
 * b_2 where no op behind it adds that. Vaswani et al. 2017 (arXiv:1706.03762) section 3.3, with a GELU.
 * All its tensors have the rows that follow attention (nn/row_picks.h).  Peers with a slice of F each sum
 * the branch, and the gradient of the input.  Where they divide the rows of the residual stream
 * (nn/stream.h), h, dbranch, and the results in s->branch and dh, are a peer's own rows. */
#ifndef KILN_NN_FEED_FORWARD_H
#define KILN_NN_FEED_FORWARD_H

#include "nn/layer.h"

/* Weights, or their gradients. */
struct feed_forward_weights {
    tensor w_1, b_1; /* [F, H], [F] */
    tensor w_2, b_2; /* [H, F], [H] */
};

/* Results of the forward that the backward reads. */
struct feed_forward_acts {
    tensor pre, act;                /* [T, F] */
    struct linear_fp8 fp8_1, fp8_2; /* null without fp8 */
};

/* Carves activations, but leaves the weights in fp8 as they are. */
void feed_forward_carve(struct feed_forward_acts *a, struct arena *arena, const struct layer_form *form,
                        struct layer_memory memory);

/* Carves room for the weights in fp8, which outlives a batch; and rounds them after a change. */
void feed_forward_carve_weights(struct feed_forward_acts *a, struct arena *arena,
                                const struct layer_form *form, enum fp8_factors fp8);
void feed_forward_round_weights(struct exec *x, const struct feed_forward_acts *a,
                                const struct feed_forward_weights *w);

/* `a` shares the activations of another layer, and keeps its own weights in fp8. */
void feed_forward_share(struct feed_forward_acts *a, const struct feed_forward_acts *of);

/* Views of the rows that follow: all, or the picked ones. */
struct feed_forward_acts feed_forward_picked(const struct feed_forward_acts *a,
                                             const struct row_picks *picks);

/* The factor in fp8 of the sublayer's input. */
struct fp8_factor feed_forward_input(const struct feed_forward_acts *a, const struct layer_call *call);

/* Computes s->branch from h, which has the fp8 factor that the op before rounded it into.  last_bias is b_2,
 * or null. */
void feed_forward_forward(struct exec *x, const struct layer_scratch *s, const struct feed_forward_acts *a,
                          tensor h, const struct feed_forward_weights *w, tensor last_bias,
                          const struct layer_call *call);

/* dbranch is the gradient of the branch, with the fp8 factor that the op before rounded it into.  dh, the
 * gradient of the input, is assigned, or added to with `adds`.  The gradients of the weights are added to g,
 * and that of b_2 to dlast_bias unless it is null; those of matrices are assigned unless call->adds. */
void feed_forward_backward(struct exec *x, tensor dh, bool adds, tensor dbranch,
                           const struct feed_forward_weights *g, tensor dlast_bias,
                           const struct layer_scratch *s, const struct feed_forward_acts *a, tensor h,
                           const struct feed_forward_weights *w, const struct layer_call *call);

#endif
