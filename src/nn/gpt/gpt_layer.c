/* The equations, x the layer's input, which is the residual stream:
 *
 *     r = x + dropout(attention(LN_1(x)) W_o^T + b_o)
 *     y = r + dropout(gelu(LN_2(r) W_1^T + b_1) W_2^T + b_2)
 *
 * Forward is a column of ops under each equation; backward is the same column from bottom to top. */
#include "nn/gpt/gpt_layer.h"

#include "dev/queue.h"

#define WEIGHTS struct gpt_layer_weights

/* Names as Hugging Face has them, but for tensors that its files hold in another form: query, key and value
 * are one tensor there, and GPT-2's matrices are transposed (model/gpt/gpt_family.c). */
const struct weight_row gpt2_layer_rows[] = {
    WEIGHT_VECTOR(norm_1.gamma, HIDDEN, ONE, OF_ROWS, "ln_1.weight"),
    WEIGHT_VECTOR(norm_1.beta, HIDDEN, ZERO, OF_ROWS, "ln_1.bias"),
    WEIGHT_MATRIX(attention.w_qkv, HIDDEN, HIDDEN, NORMAL, BY_HEAD, "attn.query.weight", "attn.key.weight",
                  "attn.value.weight"),
    WEIGHT_BIAS(attention.b_qkv, HIDDEN, ZERO, BY_HEAD, "attn.query.bias", "attn.key.bias",
                "attn.value.bias"),
    WEIGHT_MATRIX(attention.w_o, HIDDEN, HIDDEN, RESIDUAL, BY_COL, "attn.out.weight"),
    WEIGHT_VECTOR(attention.b_o, HIDDEN, ZERO, OF_ROWS, "attn.out.bias"),
    WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, OF_ROWS, "ln_2.weight"),
    WEIGHT_VECTOR(norm_2.beta, HIDDEN, ZERO, OF_ROWS, "ln_2.bias"),
    WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, NORMAL, BY_ROW, "mlp.in.weight"),
    WEIGHT_BIAS(ff.b_1, FEED_FORWARD, ZERO, BY_ROW, "mlp.in.bias"),
    WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, RESIDUAL, BY_COL, "mlp.out.weight"),
    WEIGHT_BIAS(ff.b_2, HIDDEN, ZERO, WHOLE, "mlp.out.bias"),
};
_Static_assert(sizeof gpt2_layer_rows / sizeof gpt2_layer_rows[0] == GPT_LAYER_N_ROWS,
               "a row for every field");

const struct weight_row bloom_layer_rows[] = {
    WEIGHT_VECTOR(norm_1.gamma, HIDDEN, ONE, OF_ROWS, "input_layernorm.weight"),
    WEIGHT_VECTOR(norm_1.beta, HIDDEN, ZERO, OF_ROWS, "input_layernorm.bias"),
    WEIGHT_MATRIX(attention.w_qkv, HIDDEN, HIDDEN, NORMAL, BY_HEAD, "self_attention.query.weight",
                  "self_attention.key.weight", "self_attention.value.weight"),
    WEIGHT_BIAS(attention.b_qkv, HIDDEN, ZERO, BY_HEAD, "self_attention.query.bias",
                "self_attention.key.bias", "self_attention.value.bias"),
    WEIGHT_MATRIX(attention.w_o, HIDDEN, HIDDEN, RESIDUAL, BY_COL, "self_attention.dense.weight"),
    WEIGHT_VECTOR(attention.b_o, HIDDEN, ZERO, OF_ROWS, "self_attention.dense.bias"),
    WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, OF_ROWS, "post_attention_layernorm.weight"),
    WEIGHT_VECTOR(norm_2.beta, HIDDEN, ZERO, OF_ROWS, "post_attention_layernorm.bias"),
    WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, NORMAL, BY_ROW, "mlp.dense_h_to_4h.weight"),
    WEIGHT_BIAS(ff.b_1, FEED_FORWARD, ZERO, BY_ROW, "mlp.dense_h_to_4h.bias"),
    WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, RESIDUAL, BY_COL, "mlp.dense_4h_to_h.weight"),
    WEIGHT_BIAS(ff.b_2, HIDDEN, ZERO, WHOLE, "mlp.dense_4h_to_h.bias"),
};
_Static_assert(sizeof bloom_layer_rows / sizeof bloom_layer_rows[0] == GPT_LAYER_N_ROWS,
               "a row for every field");

void gpt_layer_carve(struct gpt_layer_acts *a, struct arena *arena, const struct layer_form *form,
                     struct layer_memory m)
{
    enum dtype vector = dtype_of_vectors(m.dtype);
    int64_t r = layer_own_rows(m);
    a->h_1 = arena_carve_2d(arena, m.dtype, r, form->hidden);
    a->mean_1 = arena_carve_1d(arena, vector, r);
    a->rstd_1 = arena_carve_1d(arena, vector, r);
    self_attention_carve(&a->attention, arena, form, m);
    norm_carve(&a->norm_2, arena, form, m);
    a->h_2 = arena_carve_2d(arena, m.dtype, r, form->hidden);
    feed_forward_carve(&a->ff, arena, form, m);
    gpt_layer_carve_output(a, arena, form, m);
}

void gpt_layer_carve_output(struct gpt_layer_acts *a, struct arena *arena, const struct layer_form *form,
                            struct layer_memory m)
{
    a->out = arena_carve_2d(arena, m.stream, layer_own_rows(m), form->hidden);
}

void gpt_layer_share(struct gpt_layer_acts *a, const struct gpt_layer_acts *of)
{
    struct self_attention_acts attention = a->attention;
    *a = *of;
    a->attention = attention;
    self_attention_share(&a->attention, &of->attention);
}

void gpt_layer_forward(struct exec *x, const struct gpt_layer_acts *a, const struct layer_scratch *s,
                       tensor in, const struct gpt_layer_weights *w, const struct layer_call *call)
{
    exec_enter(x, "layer", call->layer);
    const struct self_attention attention = {.w = &w->attention, .acts = &a->attention};
    const struct feed_forward ff = {.w = &w->ff, .acts = &a->ff, .b_2_is_added = true};
    const struct norm norm_2 = {&w->norm_2, NULL, &a->norm_2, LAYER_ATTENTION_OUT};
    const tensor branch = stream_own(x, call->stream, s->branch);

    /* r = x + dropout(attention(LN_1(x)) W_o^T + b_o) */
    x->ops->layernorm(x, a->h_1, a->mean_1, a->rstd_1, in, w->norm_1.gamma, w->norm_1.beta,
                      call->form->norm_eps);
    self_attention_forward(x, &attention, a->h_1, in, s, call);
    norm_forward(x, &norm_2, a->h_2, branch, w->attention.b_o, in, call);

    /* y = r + dropout(gelu(LN_2(r) W_1^T + b_1) W_2^T + b_2) */
    feed_forward_forward(x, &ff, a->h_2, s, call);
    residual_forward(x, a->out, branch, a->norm_2.sum, call, LAYER_FEED_FORWARD_OUT);
}

void gpt_layer_backward(struct exec *x, tensor dx, const struct gpt_layer_weights *g,
                        const struct layer_scratch *s, const struct gpt_layer_acts *a, tensor in,
                        const struct gpt_layer_weights *w, const struct layer_call *call)
{
    exec_enter(x, "layer", call->layer);
    const struct self_attention attention = {&w->attention, &g->attention, &a->attention};
    const struct feed_forward ff = {&w->ff, &g->ff, &a->ff, .b_2_is_added = true};
    const struct norm norm_2 = {&w->norm_2, &g->norm_2, &a->norm_2, LAYER_ATTENTION_OUT};
    const tensor branch = stream_own(x, call->stream, s->branch), dh = stream_own(x, call->stream, s->dh);

    /* y = r + dropout(gelu(LN_2(r) W_1^T + b_1) W_2^T + b_2) */
    queue_join(x, 0); /* the layer above has read the scratch */
    tensor dbranch = residual_backward(x, branch, dx, call, LAYER_FEED_FORWARD_OUT);
    feed_forward_backward(x, &ff, (struct gradient){s->dh, false}, dbranch, a->h_2, s, call);

    /* r = x + dropout(attention(LN_1(x)) W_o^T + b_o) */
    queue_join(x, 0);
    norm_backward(x, &norm_2, (struct gradient){dx, true}, branch, g->attention.b_o, dh, call);
    self_attention_backward(x, &attention, (struct gradient){s->dh, false}, NULL_TENSOR, branch, a->h_1, s,
                            call);
    x->ops->layernorm_backward(x, dh, g->norm_1.gamma, g->norm_1.beta, dh, in, a->mean_1, a->rstd_1,
                               w->norm_1.gamma);
    x->ops->residual_add(x, dx, dx, dh);
}
