/* gpt_layer: a layer of a pre-LN decoder: its weights, its activations and its equations.  Radford et al.
 * 2019 section 2.3; BLOOM (arXiv:2211.05100) section 3.2.  The two differ by ALiBi (Press et al. 2021,
 * arXiv:2108.12409), which is a bias of the scores of attention and no part of the layer's wiring. */
#ifndef KILN_NN_GPT_LAYER_H
#define KILN_NN_GPT_LAYER_H

#include "nn/feed_forward.h"
#include "nn/self_attention.h"
#include "nn/weights.h"

/* Weights, or their gradients. */
struct gpt_layer_weights {
    struct norm_weights norm_1;
    struct self_attention_weights attention;
    struct norm_weights norm_2;
    struct feed_forward_weights ff;
};

extern const struct weight_row gpt2_layer_rows[], bloom_layer_rows[];
enum { GPT_LAYER_N_ROWS = sizeof(struct gpt_layer_weights) / sizeof(tensor) };

/* Results of the forward that the backward reads.  A layer passes on one tensor, `out`.  R: the rows of the
 * residual stream that are here, all T or a peer's own (nn/stream.h). */
struct gpt_layer_acts {
    tensor h_1, mean_1, rstd_1; /* [R, H], [R], [R] LN_1 of the layer's input */
    struct self_attention_acts attention;
    struct norm_acts norm_2; /* norm_2.sum is r, the residual stream after attention */
    tensor h_2;              /* [R, H] */
    struct feed_forward_acts ff;
    tensor out; /* [R, H] */
};

/* Carves the activations of one batch, of a layer. */
void gpt_layer_carve(struct gpt_layer_acts *a, struct arena *arena, const struct layer_form *form,
                     struct layer_memory memory);
void gpt_layer_carve_output(struct gpt_layer_acts *a, struct arena *arena, const struct layer_form *form,
                            struct layer_memory memory);

/* Makes `a` share the activations of another layer. */
void gpt_layer_share(struct gpt_layer_acts *a, const struct gpt_layer_acts *of);

/* Computes a->out from `in`, the residual stream [R, H]. */
void gpt_layer_forward(struct exec *x, const struct gpt_layer_acts *a, const struct layer_scratch *s,
                       tensor in, const struct gpt_layer_weights *w, const struct layer_call *call);

/* Turns dx, the gradient of a->out, into that of `in`.  The gradients of the weights are added to g; those of
 * matrices are assigned unless call->adds. */
void gpt_layer_backward(struct exec *x, tensor dx, const struct gpt_layer_weights *g,
                        const struct layer_scratch *s, const struct gpt_layer_acts *a, tensor in,
                        const struct gpt_layer_weights *w, const struct layer_call *call);

#endif
