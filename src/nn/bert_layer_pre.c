/* The equations of a pre-LN layer, x its input, which is normalised, and r the sum of all sublayers below it, 0 under the first
 * (the embeddings are not in it); the sublayers are those of nn/bert_layer.c:
 *
 *     A = attention(x)
 *     r_1 = r + dropout(A W_o^T + b_o),  h = LN_1(r_1)
 *     r_2 = r_1 + dropout(gelu(h W_1^T + b_1) W_2^T + b_2),  y = LN_2(r_2)
 *
 * In the next layer x is y and r is r_2.  The last LN_2 is the model's final LayerNorm, the only reader of
 * the last r_2.  Forward is a column of ops under each equation; backward is the same column from bottom to
 * top. */
#include "nn/bert_layer_pre.h"

#include "dev/queue.h"

/* The sums are the residual stream, which a forward reads even without a backward. */
static void carve_acts(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                       enum dtype dtype, enum fp8_factors fp8, int64_t n_tokens, bool kept)
{
    bert_layer_carve_acts(a, arena, c, dtype, fp8, n_tokens, kept);
    bert_layer_carve_sums(a, arena, c, dtype, n_tokens);
}

static void carve_output(struct bert_layer_acts *a, struct arena *arena, const struct bert_config *c,
                         enum dtype dtype, enum fp8_factors fp8, int64_t n_tokens)
{
    a->out = fp8_source_carve(arena, fp8, dtype, n_tokens, c->hidden_size);
    a->sum_2 = arena_carve_2d(arena, dtype, n_tokens, c->hidden_size);
}

/* r; below the first layer zeros, in memory that no forward uses. */
static tensor residual_of(struct exec *x, const struct bert_layer_scratch *s,
                          const struct bert_layer_call *call)
{
    if (!tensor_is_null(call->residual)) {
        return call->residual;
    }
    x->ops->fill(x, s->dheads, 0);
    return s->dheads;
}

static void forward(struct exec *x, const struct bert_layer_acts *a, const struct bert_layer_scratch *s,
                    tensor in, const struct bert_layer_weights *w, const struct bert_layer_call *call)
{
    const struct ops *op = x->ops;
    double eps = call->config->layer_norm_eps;
    exec_enter(x, "layer", call->layer);
    tensor residual = residual_of(x, s, call);
    const struct bert_layer_rest r = bert_layer_rest(a, s, call, residual, NULL_TENSOR, NULL_TENSOR);
    const struct fp8_factor h_fp8 = bert_layer_factor_of(&a->fp8_1.in, call, BERT_LAYER_IN_1);
    tensor h = fp8_rounded_by_maker(r.a.h, &h_fp8);

    /* r_1 = r + dropout(A W_o^T + b_o),  h = LN_1(r_1) */
    bert_layer_attention(x, a, in, w, call);
    bert_layer_projection(x, &r, a, residual, w, call);
    op->bias_dropout_add_layernorm(x, h, r.a.sum_1, r.a.mean_1, r.a.rstd_1, r.s.branch, w->b_o, r.residual,
                                   w->gamma_1, w->beta_1, eps, r.row_keys,
                                   bert_layer_dropout(call, BERT_LAYER_ATTENTION_OUT));

    /* r_2 = r_1 + dropout(gelu(h W_1^T + b_1) W_2^T + b_2),  y = LN_2(r_2) */
    bert_layer_feed_forward(x, &r.a, &r.s, h, w, call);
    op->bias_dropout_add_layernorm(x, bert_layer_output(&r.a, call), r.a.sum_2, r.a.mean_2, r.a.rstd_2,
                                   r.s.branch, w->b_2, r.a.sum_1, w->gamma_2, w->beta_2, eps, r.row_keys,
                                   bert_layer_dropout(call, BERT_LAYER_FEED_FORWARD_OUT));
}

/* Each LayerNorm's backward adds to dr, the gradient of the residual stream.  A sublayer's output gradient is
 * dr after dropout; its input gradient goes only to the LayerNorm below it. */
static void backward(struct exec *x, tensor dx, const struct bert_layer_weights *g,
                     const struct bert_layer_scratch *s, const struct bert_layer_acts *a, tensor in,
                     const struct bert_layer_weights *w, const struct bert_layer_call *call)
{
    const struct ops *op = x->ops;
    const struct bert_layer_rest r = bert_layer_rest(a, s, call, NULL_TENSOR, s->dh, dx);
    tensor dr = r.dresidual, dh = r.dout;
    bool is_last = call->layer == call->config->num_hidden_layers - 1;
    const struct fp8_factor dbranch_1_fp8 = bert_layer_factor_of(&s->fp8_branch, call, BERT_LAYER_DOUT_O),
                            dbranch_2_fp8 = bert_layer_factor_of(&s->fp8_branch, call, BERT_LAYER_DOUT_2);
    tensor dbranch_1 = fp8_rounded_by_maker(r.s.branch, &dbranch_1_fp8),
           dbranch_2 = fp8_rounded_by_maker(r.s.branch, &dbranch_2_fp8);
    exec_enter(x, "layer", call->layer);

    /* r_2 = r_1 + dropout(gelu(h W_1^T + b_1) W_2^T + b_2),  y = LN_2(r_2) */
    queue_join(x, 1); /* all but w_qkv of the layer above: `branch` and `dff` are free */
    op->bias_dropout_add_layernorm_backward(x, dr, dbranch_2, g->b_2, g->gamma_2, g->beta_2, r.dout,
                                            r.a.sum_2, r.a.mean_2, r.a.rstd_2, w->gamma_2, r.row_keys,
                                            bert_layer_dropout(call, BERT_LAYER_FEED_FORWARD_OUT), !is_last);
    bert_layer_feed_forward_backward(x, dh, false, dbranch_2, g, &r.s, &r.a, w, call);

    /* r_1 = r + dropout(A W_o^T + b_o),  h = LN_1(r_1) */
    queue_join(x, 1); /* all but w_1: `branch` and `dqkv` are free */
    op->bias_dropout_add_layernorm_backward(x, dr, dbranch_1, g->b_o, g->gamma_1, g->beta_1, dh, r.a.sum_1,
                                            r.a.mean_1, r.a.rstd_1, w->gamma_1, r.row_keys,
                                            bert_layer_dropout(call, BERT_LAYER_ATTENTION_OUT), true);
    bert_layer_projection_backward(x, s, s->dh, dbranch_1, g, &r, w, call);
    bert_layer_attention_backward(x, dx, false, g, s, a, in, w, call);
}

const struct bert_layer_wiring bert_layer_pre = {carve_acts, carve_output, forward, backward};
