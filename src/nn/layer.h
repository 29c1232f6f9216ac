/* layer: the parts that layers of all transformers share: their sizes, the arguments of a pass, the addresses
 * of their dropouts, their factors in fp8, and the memory that all layers of a model share.
 *
 * A layer is sublayers (nn/self_attention.h, nn/feed_forward.h) that a family's file wires together: its
 * equations.  T tokens, H hidden, N attention heads of D columns, G heads of keys and values, F feed-forward
 * size. */
#ifndef KILN_NN_LAYER_H
#define KILN_NN_LAYER_H

#include "core/param.h"
#include "nn/linear.h"
#include "nn/row_picks.h"
#include "nn/stream.h"

/* The activation of a feed-forward: the exact GELU, its tanh approximation (ops.h, gelu_tanh), or a gate of
 * that name (ops.h, gated). */
enum layer_activation { LAYER_GELU_EXACT, LAYER_GELU_TANH, LAYER_SWIGLU, LAYER_GEGLU, LAYER_GEGLU_TANH };

static inline bool layer_is_gated(enum layer_activation a)
{
    return a >= LAYER_SWIGLU;
}

/* The source of positions: the layers' input, ALiBi's biases of the scores of attention (Press et al. 2021,
 * arXiv:2108.12409), or rotary queries and keys (nn/rotary.h).  A layer may have none but the order in which
 * a causal attention sees tokens (Kazemnejad et al. 2023, arXiv:2305.19466). */
enum layer_positions {
    LAYER_POSITIONS_OF_INPUT,
    LAYER_POSITIONS_ALIBI,
    LAYER_POSITIONS_ROTARY,
    LAYER_POSITIONS_NONE
};

/* The norms of a model: LayerNorm, or the RMS norm, which has no beta (ops.h, layernorm). */
enum layer_norm { LAYER_NORM_LAYER, LAYER_NORM_RMS };

/* The RMS norms of queries and keys: none; of each head's D columns, with a gamma [D] for queries and one for
 * keys, Qwen 3's; of all columns together, with gammas [N D] and [G D], OLMo 2's. */
enum layer_qk_norm { LAYER_QK_NORM_NONE, LAYER_QK_NORM_HEADS, LAYER_QK_NORM_ALL };

/* Sizes and settings that all layers of a model share.  A rank with a slice of the layers (core/param.h) has
 * some of the heads and of the feed-forward's columns. */
struct layer_form {
    int64_t n_layers;
    int64_t hidden, head_size;
    int64_t n_heads, n_kv_heads; /* of queries; of keys and values, a divisor of that; 0: as many */
    int64_t feed_forward;
    /* number of the first head in the complete model: dropout addresses and slopes depend on it */
    int64_t first_head;
    double dropout;           /* probability for a sublayer's output */
    double attention_dropout; /* probability for attention's probabilities */
    double norm_eps;
    enum layer_activation activation;
    enum layer_norm norm;
    enum layer_qk_norm qk_norm;
    enum layer_positions positions;
    bool is_causal; /* a token attends to itself and those before it */
    int64_t window; /* greatest distance of a key from its query (ops.h, attention); 0: no bound */
};

/* The layers i with i % every == at, numbered in the whole model; every 0: none. */
struct layer_cycle {
    int64_t every, at;
};

static inline bool layer_cycle_has(const struct layer_cycle *c, int64_t layer)
{
    return c->every > 0 && layer % c->every == c->at;
}

/* The form of a slice: one of n equal parts. */
struct layer_form layer_form_slice(const struct layer_form *whole, const struct param_part *part);

/* G; the columns of the heads of queries, side by side: N D; of those of keys: G D; and of [Q K V]. */
int64_t layer_kv_heads(const struct layer_form *form);
int64_t layer_heads_width(const struct layer_form *form);
int64_t layer_kv_width(const struct layer_form *form);
int64_t layer_qkv_width(const struct layer_form *form);

/* The columns in front of the activation: F, or with a gate 2 F. */
int64_t layer_pre_width(const struct layer_form *form);

/* Storage of a layer's tensors. */
struct layer_memory {
    enum dtype dtype, stream; /* dtype of activations, and of the residual stream (ops.h, R) */
    enum fp8_factors fp8;
    int64_t n_tokens;
    bool kept;       /* a backward follows: without it tensors that only the backward reads stay null */
    int n_row_parts; /* peers that divide the rows of the residual stream (nn/stream.h); 0 or 1: none */
};

/* The rows of the residual stream that are here. */
int64_t layer_own_rows(struct layer_memory memory);

/* The factors that have a history in a layer with products in fp8 (ops.h, quantize): the inputs of its linear
 * layers, and the gradients of their outputs. */
enum layer_factor {
    LAYER_IN_QKV,
    LAYER_IN_O,
    LAYER_IN_1,
    LAYER_IN_2,
    LAYER_DOUT_QKV,
    LAYER_DOUT_O,
    LAYER_DOUT_1,
    LAYER_DOUT_2,
    LAYER_N_FACTORS
};

/* The dropouts of a layer, numbered for their addresses. */
enum layer_site { LAYER_PROBABILITIES, LAYER_ATTENTION_OUT, LAYER_FEED_FORWARD_OUT, LAYER_N_SITES };

/* The arguments of a layer's passes other than weights and activations. */
struct layer_call {
    const struct layer_form *form;
    const struct stream *stream;
    const struct row_picks *picks; /* the rows after the layer's attention; NULL: all */
    int64_t layer;                 /* the layer's number, for dropout addresses */
    tensor alibi_slopes;           /* f32 [N] (ops.h, attention), or null */
    tensor turns;                  /* f32 [P, R] (ops.h, rotate), or null */
    bool training;                 /* dropout on */
    const struct fp8_factor *next; /* the fp8 factor that its forward rounds its output into; NULL: none */
    tensor histories; /* f32 [LAYER_N_FACTORS, 2] of the layer; null: scales are computed from the tensors */
    bool adds;        /* gradients are added to those of earlier micro-batches; else matrices' are assigned */
};

/* The dropout at a site of a layer, with this probability in training. */
struct dropout layer_dropout(const struct layer_call *call, enum layer_site site, double p);

/* A factor with its history, if the call has histories. */
struct fp8_factor layer_factor_of(const struct fp8_factor *f, const struct layer_call *call,
                                  enum layer_factor factor);

/* Temporary tensors, shared by all layers. */
struct layer_scratch {
    tensor branch; /* [T, H] a sublayer's output before the residual; its gradient */
    tensor dh;     /* [T, H] a gradient that the wiring keeps between its sublayers */
    tensor whole;  /* [T, H] memory for all rows that peers have in parts; null where they have all */
    tensor dheads; /* [T, N D] */
    tensor dff;    /* [T, F], with a gate [T, 2 F] */
    tensor dact;   /* [T, F] the gradient of the activation: dff, unless there is a gate */
    tensor dqkv;   /* [T, (N + 2 G) D] */
    struct fp8_factor fp8_branch, fp8_dff, fp8_dqkv; /* gradients rounded for products in fp8 */
};

/* Carves the temporary tensors of one batch. */
void layer_scratch_carve(struct layer_scratch *s, struct arena *arena, const struct layer_form *form,
                         struct layer_memory memory);

/* Views of the scratch tensors of the rows after attention: all, or the selected ones. */
struct layer_scratch layer_scratch_picked(const struct layer_scratch *s, const struct row_picks *picks);

/* The end of a sublayer: out = LN(sum), sum = residual + dropout(branch + bias), LN the norm of the form.
 * The RMS norm has no beta and no mean. */
struct norm_weights {
    tensor gamma, beta; /* [H] */
};

struct norm_acts {
    tensor sum, mean, rstd; /* [T, H], [T], [T] */
};

/* Carves the statistics of a norm of n rows. */
void norm_carve_statistics(struct norm_acts *a, struct arena *arena, enum layer_norm norm, enum dtype dtype,
                           int64_t n);

/* Carves the results of a norm for one batch. */
void norm_carve(struct norm_acts *a, struct arena *arena, const struct layer_form *form,
                struct layer_memory memory);
struct norm_acts norm_picked(const struct norm_acts *a, const struct row_picks *picks);

/* The norm of one sublayer, whose dropout is that of `site`.  A forward has no gradients. */
struct norm {
    const struct norm_weights *w, *g;
    const struct norm_acts *acts;
    enum layer_site site;
};

/* out = LN(residual + dropout(branch + bias)), all [T, H]; bias [H], or null. */
void norm_forward(struct exec *x, const struct norm *n, tensor out, tensor branch, tensor bias,
                  tensor residual, const struct layer_call *call);

/* dresidual is the gradient of `sum`; dbranch = that of the branch.  dbias and the gradients of the norm are
 * added to; dout may be dresidual. */
void norm_backward(struct exec *x, const struct norm *n, struct gradient dresidual, tensor dbranch,
                   tensor dbias, tensor dout, const struct layer_call *call);

/* The end of a sublayer without a norm: out = residual + dropout(branch); the branch is overwritten. */
void residual_forward(struct exec *x, tensor out, tensor branch, tensor residual,
                      const struct layer_call *call, enum layer_site site);

/* The gradient of the branch, from that of the output, which is the residual's too: in dbranch, or dout
 * itself where nothing is dropped or rounded. */
tensor residual_backward(struct exec *x, tensor dbranch, tensor dout, const struct layer_call *call,
                         enum layer_site site);

#endif
