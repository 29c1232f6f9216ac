/* The equations of a layer whose sublayers read the same residual stream, x its input:
 *
 *     y = x + dropout(attention(LN_1(x)) W_o^T + b_o) + dropout(gelu(LN_2(x) W_1^T + b_1) W_2^T + b_2)
 *
 * Wang and Komatsuzaki 2021 (GPT-J); Black et al. 2022 (arXiv:2204.06745), section 2.1, whose two norms
 * Biderman et al. 2023 (Pythia, arXiv:2304.01373) have too.  Both norms see x, so they have one mean and
 * one rstd: those of norm_1.
 *
 * Forward is a column of ops under each term; backward is the same column from bottom to top. */
#include "nn/block.h"

#include "dev/queue.h"

static void carve(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                  struct layer_memory m)
{
    int64_t r = layer_own_rows(m);
    a->h_1 = arena_carve_2d(arena, m.dtype, r, form->hidden);
    a->norm_1.sum = NULL_TENSOR;
    norm_carve_statistics(&a->norm_1, arena, form->norm, m.dtype, r);
    self_attention_carve(&a->attention, arena, form, m);
    a->norm_2 = a->norm_1;
    a->h_2 = arena_carve_2d(arena, m.dtype, r, form->hidden);
    feed_forward_carve(&a->ff, arena, form, m);
    block_carve_output(a, arena, form, m);
}

/* Nothing ends in front of a norm, so products add the last biases. */
static struct block_sublayers sublayers(const struct block *b)
{
    struct block_sublayers s = block_sublayers(b, b->acts);
    s.attention.b_o_is_added = true;
    s.ff.b_2_is_added = true;
    return s;
}

/* out = LN(x) */
static void normalize(struct exec *x, tensor out, const struct norm *n, tensor in,
                      const struct layer_call *call)
{
    x->ops->layernorm(x, out, n->acts->mean, n->acts->rstd, in, n->w->gamma, n->w->beta,
                      call->form->norm_eps);
}

/* dx += the gradient of x, from that of LN(x), which is overwritten. */
static void normalize_backward(struct exec *x, tensor dx, const struct norm *n, tensor dout, tensor in)
{
    x->ops->layernorm_backward(x, dout, n->g->gamma, n->g->beta, dout, in, n->acts->mean, n->acts->rstd,
                               n->w->gamma);
    x->ops->residual_add(x, dx, dx, dout);
}

static void forward(struct exec *x, const struct block *b, const struct layer_call *call)
{
    exec_enter(x, "layer", call->layer);
    const struct block_acts *a = b->acts;
    const struct block_sublayers layer = sublayers(b);
    const tensor branch = stream_own(x, call->stream, b->scratch->branch);

    /* y = x + dropout(attention(LN_1(x)) W_o^T + b_o) */
    normalize(x, a->h_1, &layer.norm_1, b->in, call);
    self_attention_forward(x, &layer.attention, a->h_1, b->in, b->scratch, call);
    residual_forward(x, a->out, branch, b->in, call, LAYER_ATTENTION_OUT);

    /* y += dropout(gelu(LN_2(x) W_1^T + b_1) W_2^T + b_2) */
    normalize(x, a->h_2, &layer.norm_2, b->in, call);
    feed_forward_forward(x, &layer.ff, a->h_2, b->scratch, call);
    residual_forward(x, a->out, branch, a->out, call, LAYER_FEED_FORWARD_OUT);
}

/* The gradient of attention's branch, in memory of its own: dx changes before its last use. */
static tensor attention_gradient(struct exec *x, tensor dbranch, tensor dx, const struct layer_call *call)
{
    tensor d = residual_backward(x, dbranch, dx, call, LAYER_ATTENTION_OUT);
    if (layer_dropout(call, LAYER_ATTENTION_OUT, call->form->dropout).p == 0 && dx.dtype == dbranch.dtype) {
        x->ops->cast(x, dbranch, d);
    }
    return dbranch;
}

static void backward(struct exec *x, const struct block *b, tensor dx, const struct layer_call *call)
{
    exec_enter(x, "layer", call->layer);
    const struct block_acts *a = b->acts;
    const struct layer_scratch *s = b->scratch;
    const struct block_sublayers layer = sublayers(b);
    const struct gradient din = {s->dh, false};
    const tensor branch = stream_own(x, call->stream, s->branch), dh = stream_own(x, call->stream, s->dh);

    /* y += dropout(gelu(LN_2(x) W_1^T + b_1) W_2^T + b_2) */
    queue_join(x, 0); /* the layer above has read the scratch */
    tensor dbranch = residual_backward(x, branch, dx, call, LAYER_FEED_FORWARD_OUT);
    feed_forward_backward(x, &layer.ff, din, dbranch, a->h_2, s, call);
    queue_join(x, 0);
    dbranch = attention_gradient(x, branch, dx, call);
    normalize_backward(x, dx, &layer.norm_2, dh, b->in);

    /* y = x + dropout(attention(LN_1(x)) W_o^T + b_o) */
    self_attention_backward(x, &layer.attention, din, NULL_TENSOR, dbranch, a->h_1, s, call);
    normalize_backward(x, dx, &layer.norm_1, dh, b->in);
}

const struct block_wiring block_parallel = {
    .carve = carve, .carve_output = block_carve_output, .forward = forward, .backward = backward};
