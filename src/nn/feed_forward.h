/* feed_forward: the feed-forward sublayer of a transformer layer: branch = gelu(h W_1^T + b_1) W_2^T, and b_2
 * where no op after it adds that.  Vaswani et al. 2017 (arXiv:1706.03762) section 3.3, with a GELU; or with a
 * gate (Shazeer 2020, arXiv:2002.05202) branch = (f(g) u) W_2^T, [g u] = h W_1^T + b_1.  All its tensors have
 * the rows that follow attention (nn/row_picks.h).  Peers with a slice of F each sum the branch,
 * and the gradient of the input.  Where they divide the rows of the residual stream (nn/stream.h), h,
 * dbranch, and the results in s->branch and dh, are a peer's own rows. */
#ifndef KILN_NN_FEED_FORWARD_H
#define KILN_NN_FEED_FORWARD_H

#include "nn/layer.h"

/* Weights, or their gradients. */
struct feed_forward_weights {
    tensor w_1, b_1; /* [F, H], [F]; with a gate [2 F, H], [2 F]; biases may be null */
    tensor w_2, b_2; /* [H, F], [H] */
};

/* Results of the forward that the backward reads. */
struct feed_forward_acts {
    tensor pre, act;                /* [T, F]; pre with a gate [T, 2 F] */
    struct linear_fp8 fp8_1, fp8_2; /* null without fp8 */
};

/* The sublayer in one layer.  A forward has no gradients. */
struct feed_forward {
    const struct feed_forward_weights *w, *g;
    const struct feed_forward_acts *acts;
    bool b_2_is_added; /* this sublayer adds b_2 and sums its gradient, which else the op after it does */
};

/* Carves activations, but leaves the weights in fp8 as they are. */
void feed_forward_carve(struct feed_forward_acts *a, struct arena *arena, const struct layer_form *form,
                        struct layer_memory memory);

/* Carves memory for the weights in fp8, which outlives a batch; and rounds them after a change. */
void feed_forward_carve_weights(struct feed_forward_acts *a, struct arena *arena,
                                const struct layer_form *form, enum fp8_factors fp8);
void feed_forward_round_weights(struct exec *x, const struct feed_forward_acts *a,
                                const struct feed_forward_weights *w);

/* `a` shares the activations of another layer, and keeps its own weights in fp8. */
void feed_forward_share(struct feed_forward_acts *a, const struct feed_forward_acts *of);

/* Views of the rows after attention: all, or the selected ones. */
struct feed_forward_acts feed_forward_picked(const struct feed_forward_acts *a,
                                             const struct row_picks *picks);

/* The factor in fp8 of the sublayer's input. */
struct fp8_factor feed_forward_input(const struct feed_forward_acts *a, const struct layer_call *call);

/* Computes s->branch from h, which has the fp8 factor that the op before rounded it into. */
void feed_forward_forward(struct exec *x, const struct feed_forward *f, tensor h,
                          const struct layer_scratch *s, const struct layer_call *call);

/* dbranch is the gradient of the branch, with the fp8 factor that the op before rounded it into; dh that of
 * the input.  The gradients of the weights are added to f->g; those of matrices are assigned unless
 * call->adds. */
void feed_forward_backward(struct exec *x, const struct feed_forward *f, struct gradient dh, tensor dbranch,
                           tensor h, const struct layer_scratch *s, const struct layer_call *call);

#endif
