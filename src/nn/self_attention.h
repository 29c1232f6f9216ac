/* self_attention: the attention sublayer of a transformer layer, causal or not, without its last bias, x its
 * input, with N heads of queries and G of keys and values (ops.h, attention):
 *
 *     [Q K V] = x W_qkv^T + b_qkv
 *     Q = norm(Q), K = norm(K), of each head or of all columns, in forms with such norms (nn/layer.h)
 *     Q = turned Q, K = turned K, in forms with rotary positions (nn/rotary.h)
 *     A = concat over heads of dropout(softmax(Q K^T / sqrt(D))) V
 *     branch = A W_o^T
 *
 * Vaswani et al. 2017 (arXiv:1706.03762) section 3.2.  Attention computes all rows; its projection only those
 * that the ops after it need (nn/row_picks.h).  Peers with a slice of the heads each sum the branch, and the
 * gradient of the input (Shoeybi et al. 2019, arXiv:1909.08053, section 3).  Where they divide the rows of
 * the residual stream (nn/stream.h), which is not possible with selected rows, `in`, dbranch, and the results
 * in s->branch and din, are a peer's own rows. */
#ifndef KILN_NN_SELF_ATTENTION_H
#define KILN_NN_SELF_ATTENTION_H

#include "nn/layer.h"

/* Weights, or their gradients. */
struct self_attention_weights {
    tensor w_qkv, b_qkv;   /* [(N + 2 G) D, H], [(N + 2 G) D]: query, key, value; b_qkv may be null */
    tensor w_o, b_o;       /* [H, N D], [H] or null */
    tensor q_norm, k_norm; /* [D], [D], or [N D], [G D]: the gammas of queries and keys; or null */
};

/* Keys and values of earlier tokens, in pages (ops.h, append_rows); null: there is no cache. */
struct self_attention_cache {
    tensor keys, values;
};

/* Results of the forward that the backward reads, and what outlives a batch. */
struct self_attention_acts {
    tensor qkv; /* [T, (N + 2 G) D]; Q and K are turned, unless they are kept for the backward of norms */
    /* [T, (N + G) D] Q and K behind their norms, turned; null without norms, and where no backward follows:
     * then they are normalized in place */
    tensor qk;
    tensor q_rstd, k_rstd; /* [T N], [T G], or [T], of these norms */
    tensor lse;            /* [T, N] */
    /* bits of the probabilities that dropout keeps (ops/attention_bits.h); null if the backward draws them
     * again */
    tensor bits;
    tensor heads;                     /* [T, N D] the heads' outputs, side by side: A */
    struct linear_fp8 fp8_qkv, fp8_o; /* null without fp8 */
    struct self_attention_cache cache;
};

/* The sublayer in one layer.  A forward has no gradients. */
struct self_attention {
    const struct self_attention_weights *w, *g;
    const struct self_attention_acts *acts;
    bool b_o_is_added; /* the product adds b_o; else the op after the sublayer does */
};

/* Carves activations, but leaves the weights in fp8 and the cache as they are; and, for a backward, memory
 * for dropout's bits if the device keeps them for batches of these sizes. */
void self_attention_carve(struct self_attention_acts *a, struct arena *arena, const struct layer_form *form,
                          struct layer_memory memory);
void self_attention_carve_bits(struct self_attention_acts *a, struct arena *arena,
                               const struct layer_form *form, const struct device *device,
                               const struct batch *sizes);

/* Carves memory for the weights in fp8, which outlives a batch; and rounds them after a change. */
void self_attention_carve_weights(struct self_attention_acts *a, struct arena *arena,
                                  const struct layer_form *form, enum fp8_factors fp8);
void self_attention_round_weights(struct exec *x, const struct self_attention_acts *a,
                                  const struct self_attention_weights *w);

/* Carves the cache, of n_pages pages. */
void self_attention_carve_cache(struct self_attention_acts *a, struct arena *arena,
                                const struct layer_form *form, enum dtype dtype, int64_t n_pages);

/* `a` shares the activations of another layer, and keeps its own weights in fp8 and its cache. */
void self_attention_share(struct self_attention_acts *a, const struct self_attention_acts *of);

/* The factor in fp8 of the sublayer's input. */
struct fp8_factor self_attention_input(const struct self_attention_acts *a, const struct layer_call *call);

/* Computes acts->heads of all rows, from the cache if the batch has slots in it; then s->branch of all rows,
 * or of the selected ones; returns the `residual` of these rows. */
tensor self_attention_forward(struct exec *x, const struct self_attention *attention, tensor in,
                              tensor residual, const struct layer_scratch *s, const struct layer_call *call);

/* dbranch is the gradient of the branch, with the fp8 factor that the op before rounded it into.  Where rows
 * were selected, all rows of `dresidual` are assigned from the gradient of those, picks->residual.  din, the
 * gradient of the input, comes after that.  The gradients of the weights are added to attention->g; those of
 * matrices are assigned unless call->adds. */
void self_attention_backward(struct exec *x, const struct self_attention *attention, struct gradient din,
                             tensor dresidual, tensor dbranch, tensor in, const struct layer_scratch *s,
                             const struct layer_call *call);

#endif
