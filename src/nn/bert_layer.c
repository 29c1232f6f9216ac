/* The equations of the sublayers, and of a post-LN layer around them, x the layer's input, D = H / N:
 *
 *     [Q K V] = x W_qkv^T + b_qkv
 *     A = concat over heads of dropout(softmax(Q K^T / sqrt(D))) V
 *     h = LN_1(x + dropout(A W_o^T + b_o))
 *     y = LN_2(h + dropout(gelu(h W_1^T + b_1) W_2^T + b_2))
 *
 * Forward is a column of ops under each equation; backward is the same column from bottom to top. */
#include "nn/bert_layer.h"

#include "dev/queue.h"
#include "ops/attention_bits.h"

#include <math.h>

#define FIELD(name) offsetof(struct bert_layer_weights, name)

/* The feed-forward input keeps the uniform initialisation of the replaced scripts (docs/quirks.md,
 * "LinearActivation"). */
const struct weight_row bert_layer_rows[] = {
    {FIELD(w_qkv),
     DIM_HIDDEN,
     DIM_HIDDEN,
     PARAM_INIT_NORMAL,
     true,
     PARAM_BY_HEAD,
     {"attention.self.query.weight", "attention.self.key.weight", "attention.self.value.weight"}},
    {FIELD(b_qkv),
     DIM_HIDDEN,
     DIM_BIAS,
     PARAM_INIT_ZERO,
     false,
     PARAM_BY_HEAD,
     {"attention.self.query.bias", "attention.self.key.bias", "attention.self.value.bias"}},
    {FIELD(w_o),
     DIM_HIDDEN,
     DIM_HIDDEN,
     PARAM_INIT_NORMAL,
     true,
     PARAM_BY_COL,
     {"attention.output.dense.weight"}},
    {FIELD(b_o), DIM_HIDDEN, DIM_ONE, PARAM_INIT_ZERO, false, PARAM_WHOLE, {"attention.output.dense.bias"}},
    {FIELD(gamma_1),
     DIM_HIDDEN,
     DIM_ONE,
     PARAM_INIT_ONE,
     false,
     PARAM_WHOLE,
     {"attention.output.LayerNorm.weight"}},
    {FIELD(beta_1),
     DIM_HIDDEN,
     DIM_ONE,
     PARAM_INIT_ZERO,
     false,
     PARAM_WHOLE,
     {"attention.output.LayerNorm.bias"}},
    {FIELD(w_1),
     DIM_FEED_FORWARD,
     DIM_HIDDEN,
     PARAM_INIT_UNIFORM,
     true,
     PARAM_BY_ROW,
     {"intermediate.dense.weight"}},
    {FIELD(b_1),
     DIM_FEED_FORWARD,
     DIM_BIAS,
     PARAM_INIT_UNIFORM,
     false,
     PARAM_BY_ROW,
     {"intermediate.dense.bias"}},
    {FIELD(w_2),
     DIM_HIDDEN,
     DIM_FEED_FORWARD,
     PARAM_INIT_NORMAL,
     true,
     PARAM_BY_COL,
     {"output.dense.weight"}},
    {FIELD(b_2), DIM_HIDDEN, DIM_ONE, PARAM_INIT_ZERO, false, PARAM_WHOLE, {"output.dense.bias"}},
    {FIELD(gamma_2), DIM_HIDDEN, DIM_ONE, PARAM_INIT_ONE, false, PARAM_WHOLE, {"output.LayerNorm.weight"}},
    {FIELD(beta_2), DIM_HIDDEN, DIM_ONE, PARAM_INIT_ZERO, false, PARAM_WHOLE, {"output.LayerNorm.bias"}},
};
_Static_assert(sizeof bert_layer_rows / sizeof bert_layer_rows[0] == BERT_LAYER_N_ROWS,
               "a row for every field");

static struct dropout dropout_at(const struct bert_layer_call *call, enum bert_layer_site site, double p)
{
    return (struct dropout){.p = call->training ? p : 0.0,
                            .site = (uint32_t)(call->layer * BERT_LAYER_N_SITES + site)};
}

struct dropout bert_layer_dropout(const struct bert_layer_call *call, enum bert_layer_site site)
{
    return dropout_at(call, site, call->config->hidden_dropout_prob);
}

static struct attention self_attention(const struct bert_layer_call *call, const struct bert_layer_acts *a)
{
    const struct bert_config *c = call->config;
    return (struct attention){
        .cu_seqlens_q = call->stream->cu_seqlens,
        .cu_seqlens_kv = call->stream->cu_seqlens,
        .max_seqlen_q = call->stream->max_seqlen,
        .max_seqlen_kv = call->stream->max_seqlen,
        .n_pairs = call->stream->n_pairs,
        .scale = 1.0 / sqrt((double)c->hidden_size / (double)c->num_attention_heads),
        .row_keys = call->stream->row_keys,
        .dropout = dropout_at(call, BERT_LAYER_PROBABILITIES, c->attention_probs_dropout_prob),
        .bits = call->training ? a->bits : NULL_TENSOR,
    };
}

struct fp8_factor bert_layer_factor_of(const struct fp8_factor *f, const struct bert_layer_call *call,
                                       enum bert_layer_factor factor)
{
    struct fp8_factor with = *f;
    if (!tensor_is_null(call->histories)) {
        with.history = tensor_slice(call->histories, (int64_t)factor, 1);
    }
    return with;
}

struct fp8_factor bert_layer_input_factor(const struct bert_layer_acts *a, const struct bert_layer_call *call)
{
    return bert_layer_factor_of(&a->fp8_qkv.in, call, BERT_LAYER_IN_QKV);
}

tensor bert_layer_output(const struct bert_layer_acts *a, const struct bert_layer_call *call)
{
    return call->next == NULL ? a->out : fp8_rounded_by_maker(a->out, call->next);
}

/* Part 0, 1 or 2 (query, key, value) of [T, 3H] as [T, N, D]. */
static tensor heads_of(tensor qkv, int64_t part, const struct bert_config *c)
{
    return tensor_split_heads(tensor_columns(qkv, part * c->hidden_size, c->hidden_size),
                              c->num_attention_heads);
}

void bert_layer_carve_acts(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                           enum dtype dtype, enum fp8_factors fp8, int64_t n_tokens, bool kept)
{
    int64_t t = n_tokens, h = c->hidden_size, f = c->intermediate_size;
    enum dtype vector = dtype_of_vectors(dtype);
    bert_layer_share_acts(a, &(struct bert_layer_acts){0}); /* but keeps its own weights */
    a->qkv = arena_carve_2d(arena, dtype, t, 3 * h);
    a->lse = arena_carve_2d(arena, vector, t, c->num_attention_heads);
    a->heads = arena_carve_2d(arena, dtype, t, h);
    a->h = fp8_source_carve(arena, fp8, dtype, t, h);
    a->ff_act = fp8_source_carve(arena, fp8, dtype, t, f);
    a->out = fp8_source_carve(arena, fp8, dtype, t, h);
    if (kept) {
        a->ff_pre = arena_carve_2d(arena, dtype, t, f);
    }
    linear_carve_fp8_input(&a->fp8_qkv, arena, fp8, t, h);
    linear_carve_fp8_input(&a->fp8_o, arena, fp8, t, h);
    linear_carve_fp8_input(&a->fp8_1, arena, fp8, t, h);
    linear_carve_fp8_input(&a->fp8_2, arena, fp8, t, f);
}

void bert_layer_carve_bits(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                           const struct device *device, const struct batch *sizes)
{
    struct dropout drop = {.p = c->attention_probs_dropout_prob};
    if (attention_bits_are_kept(device, drop)) {
        a->bits =
            arena_carve_2d(arena, DTYPE_I32, attention_bits_rows(c->num_attention_heads, sizes->max_seqlen),
                           attention_bits_cols(sizes->n_tokens, sizes->n_streams));
    }
}

void bert_layer_carve_sums(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                           enum dtype dtype, int64_t n_tokens)
{
    enum dtype vector = dtype_of_vectors(dtype);
    a->sum_1 = arena_carve_2d(arena, dtype, n_tokens, c->hidden_size);
    a->mean_1 = arena_carve_1d(arena, vector, n_tokens);
    a->rstd_1 = arena_carve_1d(arena, vector, n_tokens);
    a->sum_2 = arena_carve_2d(arena, dtype, n_tokens, c->hidden_size);
    a->mean_2 = arena_carve_1d(arena, vector, n_tokens);
    a->rstd_2 = arena_carve_1d(arena, vector, n_tokens);
}

void bert_layer_carve_weights(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                              enum fp8_factors fp8)
{
    int64_t h = c->hidden_size, f = c->intermediate_size;
    linear_carve_fp8_weight(&a->fp8_qkv, arena, fp8, 3 * h, h);
    linear_carve_fp8_weight(&a->fp8_o, arena, fp8, h, h);
    linear_carve_fp8_weight(&a->fp8_1, arena, fp8, f, h);
    linear_carve_fp8_weight(&a->fp8_2, arena, fp8, h, f);
}

void bert_layer_share_acts(struct bert_layer_acts *a, const struct bert_layer_acts *of)
{
    struct bert_layer_acts own = *a;
    *a = *of;
    a->fp8_qkv.w = own.fp8_qkv.w;
    a->fp8_o.w = own.fp8_o.w;
    a->fp8_1.w = own.fp8_1.w;
    a->fp8_2.w = own.fp8_2.w;
}

void bert_layer_round_weights(struct exec *x, const struct bert_layer_acts *a,
                              const struct bert_layer_weights *w, int64_t layer)
{
    exec_enter(x, "layer", layer);
    linear_round_weight(x, w->w_qkv, &a->fp8_qkv);
    linear_round_weight(x, w->w_o, &a->fp8_o);
    linear_round_weight(x, w->w_1, &a->fp8_1);
    linear_round_weight(x, w->w_2, &a->fp8_2);
}

void bert_layer_carve_scratch(struct bert_layer_scratch *s, struct arena *arena, const struct bert_config *c,
                              enum dtype dtype, enum fp8_factors fp8, int64_t n_tokens)
{
    int64_t t = n_tokens, h = c->hidden_size;
    s->branch = fp8_source_carve(arena, fp8, dtype, t, h);
    s->dh = arena_carve_2d(arena, dtype, t, h);
    s->dheads = arena_carve_2d(arena, dtype, t, h);
    s->dff = fp8_source_carve(arena, fp8, dtype, t, c->intermediate_size);
    s->dqkv = arena_carve_2d(arena, dtype, t, 3 * h);
    fp8_factor_carve(&s->fp8_branch, arena, fp8, DTYPE_E5M2, t, h);
    fp8_factor_carve(&s->fp8_dff, arena, fp8, DTYPE_E5M2, t, c->intermediate_size);
    fp8_factor_carve(&s->fp8_dqkv, arena, fp8, DTYPE_E5M2, t, 3 * h);
}

/* ---- the rows that follow attention ---- */

struct bert_layer_rest bert_layer_rest(const struct bert_layer_acts *a, const struct bert_layer_scratch *s,
                                       const struct bert_layer_call *call, tensor residual, tensor dresidual,
                                       tensor dout)
{
    const struct bert_picks *p = call->picks;
    struct bert_layer_rest r = {*a, *s, call->stream->row_keys, residual, dresidual, dout};
    if (p == NULL) {
        return r;
    }
    tensor *of_all[] = {&r.a.sum_1,  &r.a.mean_1, &r.a.rstd_1, &r.a.h,      &r.a.ff_pre,
                        &r.a.ff_act, &r.a.sum_2,  &r.a.mean_2, &r.a.rstd_2, &r.a.out,
                        &r.s.branch, &r.s.dh,     &r.s.dff,    &r.dout};
    for (size_t i = 0; i < sizeof of_all / sizeof of_all[0]; i++) {
        *of_all[i] = bert_picks_view(p, *of_all[i]);
    }
    r.a.heads = p->heads, r.s.dheads = p->dheads;
    r.row_keys = p->row_keys;
    r.residual = r.dresidual = p->residual;
    return r;
}

static void pick(struct exec *x, const struct bert_layer_rest *r, const struct bert_layer_acts *a,
                 tensor residual, const struct bert_layer_call *call)
{
    const struct stream *b = call->stream;
    if (call->picks != NULL) {
        bert_picks_gather(x, call->picks, r->row_keys, b->row_keys, b);
        bert_picks_gather(x, call->picks, r->a.heads, a->heads, b);
        bert_picks_gather(x, call->picks, r->residual, residual, b);
    }
}

static void spread(struct exec *x, const struct bert_layer_scratch *s, tensor dresidual,
                   const struct bert_layer_rest *r, const struct bert_layer_call *call)
{
    if (call->picks != NULL) {
        bert_picks_scatter(x, call->picks, s->dheads, r->s.dheads, call->stream);
        bert_picks_scatter(x, call->picks, dresidual, r->dresidual, call->stream);
    }
}

/* ---- the sublayers ---- */

void bert_layer_attention(struct exec *x, const struct bert_layer_acts *a, tensor in,
                          const struct bert_layer_weights *w, const struct bert_layer_call *call)
{
    const struct bert_config *c = call->config;
    const struct fp8_factor in_fp8 = bert_layer_input_factor(a, call);

    /* [Q K V] = x W_qkv^T + b_qkv */
    linear_forward(x, a->qkv, in, w->w_qkv, w->b_qkv, &a->fp8_qkv, &in_fp8);

    /* A = dropout(softmax(Q K^T / sqrt(D))) V */
    x->ops->attention(x, tensor_split_heads(a->heads, c->num_attention_heads), a->lse, heads_of(a->qkv, 0, c),
                      heads_of(a->qkv, 1, c), heads_of(a->qkv, 2, c), self_attention(call, a));
}

void bert_layer_projection(struct exec *x, const struct bert_layer_rest *r, const struct bert_layer_acts *a,
                           tensor residual, const struct bert_layer_weights *w,
                           const struct bert_layer_call *call)
{
    const struct fp8_factor heads_fp8 = bert_layer_factor_of(&r->a.fp8_o.in, call, BERT_LAYER_IN_O);
    pick(x, r, a, residual, call);

    /* A W_o^T */
    linear_forward(x, r->s.branch, r->a.heads, w->w_o, NULL_TENSOR, &r->a.fp8_o, &heads_fp8);
}

void bert_layer_feed_forward(struct exec *x, const struct bert_layer_acts *a,
                             const struct bert_layer_scratch *s, tensor h, const struct bert_layer_weights *w,
                             const struct bert_layer_call *call)
{
    const struct fp8_factor h_fp8 = bert_layer_factor_of(&a->fp8_1.in, call, BERT_LAYER_IN_1),
                            act_fp8 = bert_layer_factor_of(&a->fp8_2.in, call, BERT_LAYER_IN_2);
    tensor act = fp8_rounded_by_maker(a->ff_act, &act_fp8);

    /* gelu(h W_1^T + b_1) W_2^T */
    linear_gelu_forward(x, act, a->ff_pre, h, w->w_1, w->b_1, &a->fp8_1, &h_fp8);
    linear_forward(x, s->branch, act, w->w_2, NULL_TENSOR, &a->fp8_2, &act_fp8);
}

void bert_layer_feed_forward_backward(struct exec *x, tensor dh, bool accumulate, tensor dout,
                                      const struct bert_layer_weights *g, const struct bert_layer_scratch *s,
                                      const struct bert_layer_acts *a, const struct bert_layer_weights *w,
                                      const struct bert_layer_call *call)
{
    const struct fp8_factor dout_fp8 = bert_layer_factor_of(&s->fp8_branch, call, BERT_LAYER_DOUT_2),
                            dpre_fp8 = bert_layer_factor_of(&s->fp8_dff, call, BERT_LAYER_DOUT_1);
    tensor dpre = fp8_rounded_by_maker(s->dff, &dpre_fp8);

    /* gelu(h W_1^T + b_1) W_2^T */
    linear_backward(x, s->dff, false, g->w_2, call->adds, NULL_TENSOR, dout, a->ff_act, w->w_2, &a->fp8_2,
                    &dout_fp8);
    x->ops->gelu_backward(x, dpre, g->b_1, s->dff, a->ff_pre);
    linear_backward(x, dh, accumulate, g->w_1, call->adds, NULL_TENSOR, dpre, a->h, w->w_1, &a->fp8_1,
                    &dpre_fp8);
}

void bert_layer_projection_backward(struct exec *x, const struct bert_layer_scratch *s, tensor dresidual,
                                    tensor dout, const struct bert_layer_weights *g,
                                    const struct bert_layer_rest *r, const struct bert_layer_weights *w,
                                    const struct bert_layer_call *call)
{
    const struct fp8_factor dout_fp8 = bert_layer_factor_of(&s->fp8_branch, call, BERT_LAYER_DOUT_O);

    /* A W_o^T */
    linear_backward(x, r->s.dheads, false, g->w_o, call->adds, NULL_TENSOR, dout, r->a.heads, w->w_o,
                    &r->a.fp8_o, &dout_fp8);
    spread(x, s, dresidual, r, call);
}

void bert_layer_attention_backward(struct exec *x, tensor dx, bool accumulate,
                                   const struct bert_layer_weights *g, const struct bert_layer_scratch *s,
                                   const struct bert_layer_acts *a, tensor in,
                                   const struct bert_layer_weights *w, const struct bert_layer_call *call)
{
    const struct bert_config *c = call->config;
    bool early = x->device->sums_in_attention; /* which of the ops below computes b_qkv's gradient */
    const struct fp8_factor dqkv_fp8 = bert_layer_factor_of(&s->fp8_dqkv, call, BERT_LAYER_DOUT_QKV);

    /* A = dropout(softmax(Q K^T / sqrt(D))) V */
    x->ops->attention_backward(
        x, heads_of(s->dqkv, 0, c), heads_of(s->dqkv, 1, c), heads_of(s->dqkv, 2, c),
        early ? g->b_qkv : NULL_TENSOR, tensor_split_heads(s->dheads, c->num_attention_heads),
        tensor_split_heads(a->heads, c->num_attention_heads), a->lse, heads_of(a->qkv, 0, c),
        heads_of(a->qkv, 1, c), heads_of(a->qkv, 2, c), self_attention(call, a));

    /* [Q K V] = x W_qkv^T + b_qkv */
    linear_backward(x, dx, accumulate, g->w_qkv, call->adds, early ? NULL_TENSOR : g->b_qkv, s->dqkv, in,
                    w->w_qkv, &a->fp8_qkv, &dqkv_fp8);
}

/* ---- the post-LN wiring ---- */

static void carve_acts(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                       enum dtype dtype, enum fp8_factors fp8, int64_t n_tokens, bool kept)
{
    bert_layer_carve_acts(a, arena, c, dtype, fp8, n_tokens, kept);
    if (kept) {
        bert_layer_carve_sums(a, arena, c, dtype, n_tokens);
    }
}

static void carve_output(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                         enum dtype dtype, enum fp8_factors fp8, int64_t n_tokens)
{
    a->out = fp8_source_carve(arena, fp8, dtype, n_tokens, c->hidden_size);
}

static void forward(struct exec *x, const struct bert_layer_acts *a, const struct bert_layer_scratch *s,
                    tensor in, const struct bert_layer_weights *w, const struct bert_layer_call *call)
{
    const struct ops *op = x->ops;
    double eps = call->config->layer_norm_eps;
    const struct bert_layer_rest r = bert_layer_rest(a, s, call, in, NULL_TENSOR, NULL_TENSOR);
    const struct fp8_factor h_fp8 = bert_layer_factor_of(&a->fp8_1.in, call, BERT_LAYER_IN_1);
    tensor h = fp8_rounded_by_maker(r.a.h, &h_fp8);
    exec_enter(x, "layer", call->layer);

    /* h = LN_1(x + dropout(A W_o^T + b_o)) */
    bert_layer_attention(x, a, in, w, call);
    bert_layer_projection(x, &r, a, in, w, call);
    op->bias_dropout_add_layernorm(x, h, r.a.sum_1, r.a.mean_1, r.a.rstd_1, r.s.branch, w->b_o, r.residual,
                                   w->gamma_1, w->beta_1, eps, r.row_keys,
                                   bert_layer_dropout(call, BERT_LAYER_ATTENTION_OUT));

    /* y = LN_2(h + dropout(gelu(h W_1^T + b_1) W_2^T + b_2)) */
    bert_layer_feed_forward(x, &r.a, &r.s, h, w, call);
    op->bias_dropout_add_layernorm(x, bert_layer_output(&r.a, call), r.a.sum_2, r.a.mean_2, r.a.rstd_2,
                                   r.s.branch, w->b_2, h, w->gamma_2, w->beta_2, eps, r.row_keys,
                                   bert_layer_dropout(call, BERT_LAYER_FEED_FORWARD_OUT));
}

static void backward(struct exec *x, tensor dx, const struct bert_layer_weights *g,
                     const struct bert_layer_scratch *s, const struct bert_layer_acts *a, tensor in,
                     const struct bert_layer_weights *w, const struct bert_layer_call *call)
{
    const struct ops *op = x->ops;
    const struct bert_layer_rest r = bert_layer_rest(a, s, call, NULL_TENSOR, dx, dx);
    const struct fp8_factor dbranch_1_fp8 = bert_layer_factor_of(&s->fp8_branch, call, BERT_LAYER_DOUT_O),
                            dbranch_2_fp8 = bert_layer_factor_of(&s->fp8_branch, call, BERT_LAYER_DOUT_2);
    tensor dbranch_1 = fp8_rounded_by_maker(r.s.branch, &dbranch_1_fp8),
           dbranch_2 = fp8_rounded_by_maker(r.s.branch, &dbranch_2_fp8);
    exec_enter(x, "layer", call->layer);

    /* y = LN_2(h + dropout(gelu(h W_1^T + b_1) W_2^T + b_2)) */
    queue_join(x, 1); /* all but w_qkv of the layer above: `branch` and `dff` are free */
    op->bias_dropout_add_layernorm_backward(x, r.s.dh, dbranch_2, g->b_2, g->gamma_2, g->beta_2, r.dout,
                                            r.a.sum_2, r.a.mean_2, r.a.rstd_2, w->gamma_2, r.row_keys,
                                            bert_layer_dropout(call, BERT_LAYER_FEED_FORWARD_OUT), false);
    bert_layer_feed_forward_backward(x, r.s.dh, true, dbranch_2, g, &r.s, &r.a, w, call);

    /* h = LN_1(x + dropout(A W_o^T + b_o)) */
    queue_join(x, 1); /* all but w_1: `branch` and `dqkv` are free */
    op->bias_dropout_add_layernorm_backward(x, r.dresidual, dbranch_1, g->b_o, g->gamma_1, g->beta_1, r.s.dh,
                                            r.a.sum_1, r.a.mean_1, r.a.rstd_1, w->gamma_1, r.row_keys,
                                            bert_layer_dropout(call, BERT_LAYER_ATTENTION_OUT), false);
    bert_layer_projection_backward(x, s, dx, dbranch_1, g, &r, w, call);
    bert_layer_attention_backward(x, dx, true, g, s, a, in, w, call);
}

const struct bert_layer_wiring bert_layer_post = {carve_acts, carve_output, forward, backward};
