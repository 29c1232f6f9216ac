/* bert_layer: a transformer layer of BERT, forward and backward: its weights and activations, its two
 * sublayers, and the wiring that joins them.  There are two wirings: post-LN here, pre-LN in
 * nn/bert_layer_pre.h.
 *
 * Vaswani et al. 2017 (arXiv:1706.03762) section 3.1, with the exact GELU; Devlin et al. 2018
 * (arXiv:1810.04805). */
#ifndef KILN_NN_BERT_LAYER_H
#define KILN_NN_BERT_LAYER_H

#include "core/arena.h"
#include "nn/bert_config.h"
#include "nn/bert_picks.h"
#include "nn/linear.h"
#include "nn/stream.h"
#include "nn/weights.h"
#include "ops/ops.h"

/* Weights, or their gradients.  H hidden, F feed-forward size. */
struct bert_layer_weights {
    tensor w_qkv, b_qkv;    /* [3H, H], [3H]: query, key, value */
    tensor w_o, b_o;        /* [H, H], [H] */
    tensor gamma_1, beta_1; /* [H] */
    tensor w_1, b_1;        /* [F, H], [F] */
    tensor w_2, b_2;        /* [H, F], [H] */
    tensor gamma_2, beta_2; /* [H] */
};

extern const struct weight_row bert_layer_rows[];
enum { BERT_LAYER_N_ROWS = sizeof(struct bert_layer_weights) / sizeof(tensor) };

/* The activations: results of the forward that the backward reads.  In a pre-LN layer the forward reads the
 * sums too. */
struct bert_layer_acts {
    tensor qkv;   /* [T, 3H] */
    tensor lse;   /* [T, N] */
    tensor bits;  /* which probabilities dropout keeps (ops/attention_bits.h); null if the backward draws them
                   * again */
    tensor heads; /* [T, H] the heads' outputs, side by side */
    tensor sum_1, mean_1, rstd_1; /* [T, H], [T], [T] */
    tensor h;                     /* [T, H] */
    tensor ff_pre, ff_act;        /* [T, F] */
    tensor sum_2, mean_2, rstd_2;
    tensor out;                                     /* [T, H] */
    struct linear_fp8 fp8_qkv, fp8_o, fp8_1, fp8_2; /* fp8 factors of the four linear layers; null without
                                                     * fp8 */
};

/* Temporary tensors, shared by all layers. */
struct bert_layer_scratch {
    tensor branch; /* [T, H] a sublayer's output before the residual; its gradient */
    tensor dh;     /* [T, H] the gradient of h; in a pre-LN layer that of the residual stream */
    tensor dheads; /* [T, H] */
    tensor dff;    /* [T, F] */
    tensor dqkv;   /* [T, 3H] */
    struct fp8_factor fp8_branch, fp8_dff, fp8_dqkv; /* those gradients rounded for products in fp8 */
};

/* The factors that have a history in a layer with products in fp8 (ops.h, quantize): the inputs of its linear
 * layers, and the gradients of their outputs. */
enum bert_layer_factor {
    BERT_LAYER_IN_QKV,
    BERT_LAYER_IN_O,
    BERT_LAYER_IN_1,
    BERT_LAYER_IN_2,
    BERT_LAYER_DOUT_QKV,
    BERT_LAYER_DOUT_O,
    BERT_LAYER_DOUT_1,
    BERT_LAYER_DOUT_2,
    BERT_LAYER_N_FACTORS
};

/* The arguments of a layer's passes other than weights and activations. */
struct bert_layer_call {
    const struct bert_config *config;
    const struct stream *stream;
    tensor residual; /* [T, H] for pre-LN layers: sum_2 of the layer below, null in the first */
    const struct bert_picks *picks; /* the rows that follow its attention; NULL: all */
    int64_t layer;                  /* its number, for dropout addresses */
    bool training;                  /* dropout on */
    const struct fp8_factor *next;  /* the fp8 factor that its forward rounds its output into; NULL: none */
    tensor histories;               /* f32 [BERT_LAYER_N_FACTORS, 2] of the layer; null: scales are computed
                                    * from the tensors */
    bool adds; /* gradients are added to those of earlier micro-batches; else matrices' are assigned */
};

/* Carves a layer's activations.  `kept` is for a backward: without it tensors that only the backward reads
 * stay null.  The sums and their statistics are carved by the next function. */
void bert_layer_carve_acts(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                           enum dtype dtype, enum fp8_factors fp8, int64_t n_tokens, bool kept);
void bert_layer_carve_sums(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                           enum dtype dtype, int64_t n_tokens);

/* Carves room for the bits of dropout, for activations that a backward will read, if the device keeps them
 * for batches of these sizes. */
void bert_layer_carve_bits(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                           const struct device *device, const struct batch *sizes);

void bert_layer_carve_scratch(struct bert_layer_scratch *s, struct arena *arena, const struct bert_config *c,
                              enum dtype dtype, enum fp8_factors fp8, int64_t n_tokens);

/* Carves room for the weights in fp8, which outlives a batch: it comes before the activations in the
 * arena. */
void bert_layer_carve_weights(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                              enum fp8_factors fp8);

/* Makes `a` share the activations of another layer; it keeps its own fp8 weights. */
void bert_layer_share_acts(struct bert_layer_acts *a, const struct bert_layer_acts *of);

/* Rounds weights to fp8 after they have changed and before they are used; does nothing without fp8. */
void bert_layer_round_weights(struct exec *x, const struct bert_layer_acts *a,
                              const struct bert_layer_weights *w, int64_t layer);

/* A factor with its history, if the call has histories; and the factor of a layer's input. */
struct fp8_factor bert_layer_factor_of(const struct fp8_factor *f, const struct bert_layer_call *call,
                                       enum bert_layer_factor factor);
struct fp8_factor bert_layer_input_factor(const struct bert_layer_acts *a,
                                          const struct bert_layer_call *call);

/* a->out, to be rounded for the next layer by the op that writes it. */
tensor bert_layer_output(const struct bert_layer_acts *a, const struct bert_layer_call *call);

/* The dropouts of a layer, numbered for their addresses. */
enum bert_layer_site {
    BERT_LAYER_PROBABILITIES,
    BERT_LAYER_ATTENTION_OUT,
    BERT_LAYER_FEED_FORWARD_OUT,
    BERT_LAYER_N_SITES
};

/* The dropout of a sublayer's output. */
struct dropout bert_layer_dropout(const struct bert_layer_call *call, enum bert_layer_site site);

/* What a layer computes behind its attention: all rows, or views of the picked ones. */
struct bert_layer_rest {
    struct bert_layer_acts a;
    struct bert_layer_scratch s;
    tensor row_keys;
    tensor residual;  /* what is added to the attention sublayer */
    tensor dresidual; /* its gradient */
    tensor dout;      /* the gradient of the output, dx of the wiring */
};
struct bert_layer_rest bert_layer_rest(const struct bert_layer_acts *a, const struct bert_layer_scratch *s,
                                       const struct bert_layer_call *call, tensor residual, tensor dresidual,
                                       tensor dout);

/* The sublayers without their last biases.  Attention, of all rows: a->heads = A.  The rest of its sublayer, of the rows that are
 * left, which it picks first: r->s.branch = A W_o^T.  And s->branch = gelu(h W_1^T + b_1) W_2^T; h is a->h with the
 * fp8 factor that the op before rounded it into. */
void bert_layer_attention(struct exec *x, const struct bert_layer_acts *a, tensor in,
                          const struct bert_layer_weights *w, const struct bert_layer_call *call);
void bert_layer_projection(struct exec *x, const struct bert_layer_rest *r, const struct bert_layer_acts *a,
                           tensor residual, const struct bert_layer_weights *w,
                           const struct bert_layer_call *call);
void bert_layer_feed_forward(struct exec *x, const struct bert_layer_acts *a,
                             const struct bert_layer_scratch *s, tensor h, const struct bert_layer_weights *w,
                             const struct bert_layer_call *call);

/* Their backward. dout is the gradient of their output in s->branch, with the fp8 factor that the op before
 * rounded it into.  The projection assigns s->dheads, and spreads the gradient of picked rows of the residual over all rows of
 * `dresidual`.  The gradient of the input is assigned to dx and dh, or added with `accumulate`; those of
 * the weights are as in bert_layer_wiring. */
void bert_layer_feed_forward_backward(struct exec *x, tensor dh, bool accumulate, tensor dout,
                                      const struct bert_layer_weights *g, const struct bert_layer_scratch *s,
                                      const struct bert_layer_acts *a, const struct bert_layer_weights *w,
                                      const struct bert_layer_call *call);
void bert_layer_projection_backward(struct exec *x, const struct bert_layer_scratch *s, tensor dresidual,
                                    tensor dout, const struct bert_layer_weights *g,
                                    const struct bert_layer_rest *r, const struct bert_layer_weights *w,
                                    const struct bert_layer_call *call);
void bert_layer_attention_backward(struct exec *x, tensor dx, bool accumulate,
                                   const struct bert_layer_weights *g, const struct bert_layer_scratch *s,
                                   const struct bert_layer_acts *a, tensor in,
                                   const struct bert_layer_weights *w, const struct bert_layer_call *call);

/* How the sublayers are joined into a layer. */
struct bert_layer_wiring {
    /* Carve a layer's activations; and only those that it passes to the next layer, if it shares the others
     * with another layer. */
    void (*carve_acts)(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                       enum dtype dtype, enum fp8_factors fp8, int64_t n_tokens, bool kept);
    void (*carve_output)(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                         enum dtype dtype, enum fp8_factors fp8, int64_t n_tokens);

    /* Computes a->out = layer(in). */
    void (*forward)(struct exec *x, const struct bert_layer_acts *a, const struct bert_layer_scratch *s,
                    tensor in, const struct bert_layer_weights *w, const struct bert_layer_call *call);

    /* On entry dx is the gradient of a->out, on return that of `in`.  The gradients of the weights are added
     * to g; those of matrices are assigned unless call->adds. */
    void (*backward)(struct exec *x, tensor dx, const struct bert_layer_weights *g,
                     const struct bert_layer_scratch *s, const struct bert_layer_acts *a, tensor in,
                     const struct bert_layer_weights *w, const struct bert_layer_call *call);
};

extern const struct bert_layer_wiring bert_layer_post;

#endif
