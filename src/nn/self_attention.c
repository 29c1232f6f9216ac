/* The matrix of probabilities is never stored.  Of each row and head the forward keeps the logarithm of the
 * softmax's denominator (lse), from which the backward computes the probabilities again (Dao et al. 2022,
 * arXiv:2205.14135, section 3.1). */
#include "nn/self_attention.h"

#include "ops/attention_bits.h"

#include <math.h>

_Static_assert((int)BATCH_PAGE == (int)OPS_CACHE_PAGE, "one size of pages");

/* Queries and keys are cut into sequences at the same bounds, so each sequence attends to itself
 * alone. */
static struct attention attention_of(const struct layer_call *call, const struct self_attention_acts *a)
{
    const struct layer_form *f = call->form;
    return (struct attention){
        .cu_seqlens_q = call->stream->cu_seqlens,
        .cu_seqlens_kv = call->stream->cu_seqlens,
        .max_seqlen_q = call->stream->max_seqlen,
        .max_seqlen_kv = call->stream->max_seqlen,
        .n_pairs = call->stream->n_pairs,
        .n_kv_heads = layer_kv_heads(f),
        .scale = 1.0 / sqrt((double)f->head_size),
        .first_head = f->first_head,
        .causal = f->is_causal,
        .window = f->window,
        .alibi_slopes = call->alibi_slopes,
        .row_keys = call->stream->row_keys,
        .dropout = layer_dropout(call, LAYER_PROBABILITIES, f->attention_dropout),
        .bits = call->training ? a->bits : NULL_TENSOR,
    };
}

/* Queries of [T, (N + 2 G) D] as [T, N, D]; keys and values as [T, G, D]. */
static tensor queries_of(tensor qkv, const struct layer_form *f)
{
    return tensor_split_heads(tensor_columns(qkv, 0, layer_heads_width(f)), f->n_heads);
}

static tensor keys_of(tensor qkv, const struct layer_form *f)
{
    return tensor_split_heads(tensor_columns(qkv, layer_heads_width(f), layer_kv_width(f)),
                              layer_kv_heads(f));
}

static tensor values_of(tensor qkv, const struct layer_form *f)
{
    int64_t width = layer_kv_width(f);
    return tensor_split_heads(tensor_columns(qkv, layer_heads_width(f) + width, width), layer_kv_heads(f));
}

/* The tensor whose first columns are the queries and keys that attention reads. */
static tensor read_qk(const struct self_attention_acts *a)
{
    return tensor_is_null(a->qk) ? a->qkv : a->qk;
}

/* ---- norms of queries and keys, in front of rotary positions ---- */

/* Heads [T, N, D] as the rows of their norm, which are of D columns or of N D. */
static tensor norm_rows(tensor heads, const struct layer_form *f)
{
    if (f->qk_norm == LAYER_QK_NORM_ALL) {
        heads.n_dims = 2;
        heads.dims[1] *= heads.dims[2];
        heads.strides[1] = 1;
    }
    return heads;
}

static void carve_qk(struct self_attention_acts *a, struct arena *arena, const struct layer_form *f,
                     struct layer_memory m)
{
    if (f->qk_norm != LAYER_QK_NORM_NONE && m.kept) {
        enum dtype vector = dtype_of_vectors(m.dtype);
        a->qk = arena_carve_2d(arena, m.dtype, m.n_tokens, layer_heads_width(f) + layer_kv_width(f));
        a->q_rstd = arena_carve_1d(arena, vector, tensor_rows(norm_rows(queries_of(a->qk, f), f)));
        a->k_rstd = arena_carve_1d(arena, vector, tensor_rows(norm_rows(keys_of(a->qk, f), f)));
    }
}

/* Q = norm(Q), K = norm(K) */
static void normalize(struct exec *x, const struct self_attention_weights *w,
                      const struct self_attention_acts *a, const struct layer_form *f)
{
    tensor qk = read_qk(a);
    if (f->qk_norm != LAYER_QK_NORM_NONE) {
        x->ops->layernorm(x, norm_rows(queries_of(qk, f), f), NULL_TENSOR, a->q_rstd,
                          norm_rows(queries_of(a->qkv, f), f), w->q_norm, NULL_TENSOR, f->norm_eps);
        x->ops->layernorm(x, norm_rows(keys_of(qk, f), f), NULL_TENSOR, a->k_rstd,
                          norm_rows(keys_of(a->qkv, f), f), w->k_norm, NULL_TENSOR, f->norm_eps);
    }
}

/* Turns the gradients of the normalized queries and keys into those of Q and K, in place. */
static void normalize_backward(struct exec *x, const struct self_attention *attention, tensor dqkv,
                               const struct layer_form *f)
{
    const struct self_attention_weights *w = attention->w, *g = attention->g;
    const struct self_attention_acts *a = attention->acts;
    tensor dq = norm_rows(queries_of(dqkv, f), f), dk = norm_rows(keys_of(dqkv, f), f);
    if (f->qk_norm != LAYER_QK_NORM_NONE) {
        x->ops->layernorm_backward(x, dq, g->q_norm, NULL_TENSOR, dq, norm_rows(queries_of(a->qkv, f), f),
                                   NULL_TENSOR, a->q_rstd, w->q_norm);
        x->ops->layernorm_backward(x, dk, g->k_norm, NULL_TENSOR, dk, norm_rows(keys_of(a->qkv, f), f),
                                   NULL_TENSOR, a->k_rstd, w->k_norm);
    }
}

/* ---- rotary positions ---- */

static bool is_rotary(const struct layer_form *f)
{
    return f->positions == LAYER_POSITIONS_ROTARY;
}

/* Turns queries and keys, which lie side by side, by their positions; or turns their gradients back. */
static void rotate(struct exec *x, tensor qkv, const struct layer_call *call, bool back)
{
    const struct layer_form *f = call->form;
    if (is_rotary(f)) {
        tensor both = tensor_columns(qkv, 0, layer_heads_width(f) + layer_kv_width(f));
        x->ops->rotate(x, tensor_split_heads(both, f->n_heads + layer_kv_heads(f)), call->turns,
                       call->stream->positions, back);
    }
}

void self_attention_carve(struct self_attention_acts *a, struct arena *arena, const struct layer_form *form,
                          struct layer_memory m)
{
    int64_t t = m.n_tokens, width = layer_heads_width(form);
    /* Clears all but the weights in fp8 and the cache, which were carved earlier and outlive the batch. */
    self_attention_share(a, &(struct self_attention_acts){0});
    a->qkv = arena_carve_2d(arena, m.dtype, t, layer_qkv_width(form));
    carve_qk(a, arena, form, m);
    a->lse = arena_carve_2d(arena, dtype_of_vectors(m.dtype), t, form->n_heads);
    a->heads = arena_carve_2d(arena, m.dtype, t, width);
    linear_carve_fp8_input(&a->fp8_qkv, arena, m.fp8, t, form->hidden);
    linear_carve_fp8_input(&a->fp8_o, arena, m.fp8, t, width);
}

void self_attention_carve_bits(struct self_attention_acts *a, struct arena *arena,
                               const struct layer_form *form, const struct device *device,
                               const struct batch *sizes)
{
    if (attention_bits_are_kept(device, (struct dropout){.p = form->attention_dropout})) {
        a->bits = arena_carve_2d(arena, DTYPE_I32, attention_bits_rows(form->n_heads, sizes->max_seqlen),
                                 attention_bits_cols(sizes->n_tokens, sizes->n_streams));
    }
}

void self_attention_carve_weights(struct self_attention_acts *a, struct arena *arena,
                                  const struct layer_form *form, enum fp8_factors fp8)
{
    int64_t h = form->hidden, width = layer_heads_width(form);
    linear_carve_fp8_weight(&a->fp8_qkv, arena, fp8, layer_qkv_width(form), h);
    linear_carve_fp8_weight(&a->fp8_o, arena, fp8, h, width);
}

void self_attention_carve_cache(struct self_attention_acts *a, struct arena *arena,
                                const struct layer_form *form, enum dtype dtype, int64_t n_pages)
{
    int64_t rows = n_pages * layer_kv_heads(form), d = form->head_size;
    void *keys = arena_carve_2d(arena, dtype, rows * d, OPS_CACHE_PAGE).data;
    void *values = arena_carve_2d(arena, dtype, rows * OPS_CACHE_PAGE, d).data;
    a->cache.keys = tensor_3d(keys, dtype, rows, d, OPS_CACHE_PAGE);
    a->cache.values = tensor_3d(values, dtype, rows, OPS_CACHE_PAGE, d);
}

void self_attention_round_weights(struct exec *x, const struct self_attention_acts *a,
                                  const struct self_attention_weights *w)
{
    linear_round_weight(x, w->w_qkv, &a->fp8_qkv);
    linear_round_weight(x, w->w_o, &a->fp8_o);
}

void self_attention_share(struct self_attention_acts *a, const struct self_attention_acts *of)
{
    struct fp8_factor w_qkv = a->fp8_qkv.w, w_o = a->fp8_o.w;
    struct self_attention_cache cache = a->cache;
    *a = *of;
    a->cache = cache;
    a->fp8_qkv.w = w_qkv;
    a->fp8_o.w = w_o;
}

struct fp8_factor self_attention_input(const struct self_attention_acts *a, const struct layer_call *call)
{
    return layer_factor_of(&a->fp8_qkv.in, call, LAYER_IN_QKV);
}

/* ---- the rows that follow attention ---- */

/* The rows of A that the projection reads. */
static tensor followed(const struct self_attention_acts *a, const struct layer_call *call)
{
    return call->picks != NULL ? call->picks->heads : a->heads;
}

/* Rows are selected after attention, since a selected row attends to the keys and values of all rows. */
static void pick(struct exec *x, tensor heads, tensor residual, const struct layer_call *call)
{
    const struct row_picks *p = call->picks;
    row_picks_gather(x, p, p->row_keys, call->stream->row_keys, call->stream);
    row_picks_gather(x, p, p->heads, heads, call->stream);
    row_picks_gather(x, p, p->residual, residual, call->stream);
}

/* Spreads the gradients of the selected rows over all rows.  Rows that no head reads get a zero gradient
 * here; their keys and values still get one from the rows that attend to them. */
static void spread(struct exec *x, tensor dheads, tensor dresidual, const struct layer_call *call)
{
    const struct row_picks *p = call->picks;
    row_picks_scatter(x, p, dheads, p->dheads, call->stream);
    row_picks_scatter(x, p, dresidual, p->residual, call->stream);
}

/* ---- the passes ---- */

/* A = softmax(Q K^T / sqrt(D)) V, K and V those of the sequences' earlier tokens as well. */
static void attend_cached(struct exec *x, const struct self_attention_acts *a, const struct layer_call *call)
{
    const struct layer_form *f = call->form;
    const struct stream *s = call->stream;
    struct attention options = attention_of(call, a);
    options.cu_seqlens_kv = s->cu_keys;
    options.max_seqlen_kv = s->max_keys;
    options.block_table = s->pages;
    x->ops->append_rows(x, a->cache.keys, a->cache.values, keys_of(read_qk(a), f), values_of(a->qkv, f),
                        s->slots);
    x->ops->attention_cached(x, tensor_split_heads(a->heads, f->n_heads), queries_of(read_qk(a), f),
                             a->cache.keys, a->cache.values, options);
}

/* A = dropout(softmax(Q K^T / sqrt(D))) V */
static void attend(struct exec *x, const struct self_attention_acts *a, const struct layer_call *call)
{
    const struct layer_form *f = call->form;
    if (!tensor_is_null(call->stream->slots)) {
        attend_cached(x, a, call);
        return;
    }
    x->ops->attention(x, tensor_split_heads(a->heads, f->n_heads), a->lse, queries_of(read_qk(a), f),
                      keys_of(read_qk(a), f), values_of(a->qkv, f), attention_of(call, a));
}

tensor self_attention_forward(struct exec *x, const struct self_attention *attention, tensor in,
                              tensor residual, const struct layer_scratch *s, const struct layer_call *call)
{
    const struct self_attention_weights *w = attention->w;
    const struct self_attention_acts *a = attention->acts;
    const struct linear qkv = {.w = w->w_qkv, .bias = w->b_qkv, .fp8 = &a->fp8_qkv},
                        o = {.w = w->w_o,
                             .bias = attention->b_o_is_added ? w->b_o : NULL_TENSOR,
                             .fp8 = &a->fp8_o};
    const struct fp8_factor in_fp8 = self_attention_input(a, call),
                            heads_fp8 = layer_factor_of(&a->fp8_o.in, call, LAYER_IN_O);
    const struct layer_scratch rows = layer_scratch_picked(s, call->picks);

    /* [Q K V] = x W_qkv^T + b_qkv */
    in = stream_gather(x, call->stream, in, s->whole);
    linear_forward(x, &qkv, a->qkv, in, &in_fp8);
    normalize(x, w, a, call->form);
    rotate(x, read_qk(a), call, false);

    attend(x, a, call);
    if (call->picks != NULL) {
        pick(x, a->heads, residual, call);
        residual = call->picks->residual;
    }

    /* A W_o^T */
    linear_forward_sum(x, &o, call->stream, rows.branch, followed(a, call), &heads_fp8);
    return residual;
}

void self_attention_backward(struct exec *x, const struct self_attention *attention, struct gradient din,
                             tensor dresidual, tensor dbranch, tensor in, const struct layer_scratch *s,
                             const struct layer_call *call)
{
    const struct layer_form *f = call->form;
    const struct self_attention_weights *w = attention->w, *g = attention->g;
    const struct self_attention_acts *a = attention->acts;
    const struct fp8_factor dbranch_fp8 = layer_factor_of(&s->fp8_branch, call, LAYER_DOUT_O),
                            dqkv_fp8 = layer_factor_of(&s->fp8_dqkv, call, LAYER_DOUT_QKV);
    const struct layer_scratch rows = layer_scratch_picked(s, call->picks);
    /* attention's op computes b_qkv's gradient, else the product after it, before which gradients are turned
     * back */
    bool early = x->device->sums_in_attention && !is_rotary(f) && f->qk_norm == LAYER_QK_NORM_NONE;
    const struct linear o = {.w = w->w_o,
                             .dw = {g->w_o, call->adds},
                             .dbias = attention->b_o_is_added ? g->b_o : NULL_TENSOR,
                             .fp8 = &a->fp8_o},
                        qkv = {.w = w->w_qkv,
                               .dw = {g->w_qkv, call->adds},
                               .dbias = early ? NULL_TENSOR : g->b_qkv,
                               .fp8 = &a->fp8_qkv};

    /* A W_o^T */
    dbranch = stream_gather(x, call->stream, dbranch, s->branch);
    linear_backward(x, &o, (struct gradient){rows.dheads, false}, dbranch, followed(a, call), &dbranch_fp8);
    if (call->picks != NULL) {
        spread(x, s->dheads, dresidual, call);
    }

    /* A = dropout(softmax(Q K^T / sqrt(D))) V */
    x->ops->attention_backward(x, queries_of(s->dqkv, f), keys_of(s->dqkv, f), values_of(s->dqkv, f),
                               early ? g->b_qkv : NULL_TENSOR, tensor_split_heads(s->dheads, f->n_heads),
                               tensor_split_heads(a->heads, f->n_heads), a->lse, queries_of(read_qk(a), f),
                               keys_of(read_qk(a), f), values_of(a->qkv, f), attention_of(call, a));
    rotate(x, s->dqkv, call, true);
    normalize_backward(x, attention, s->dqkv, f);

    /* [Q K V] = x W_qkv^T + b_qkv */
    in = stream_gather(x, call->stream, in, s->whole);
    linear_backward_sum(x, &qkv, call->stream, din, s->dqkv, in, &dqkv_fp8);
}
