/* The equations of a pre-LN layer, x its input, which is the residual stream (Radford et al. 2019 section
 * 2.3; BLOOM, arXiv:2211.05100, section 3.2):
 *
 *     r = x + dropout(attention(LN_1(x)) W_o^T + b_o)
 *     y = r + dropout(gelu(LN_2(r) W_1^T + b_1) W_2^T + b_2)
 *
 * In Llama's form (Touvron et al. 2023, arXiv:2302.13971, section 2.2) the norms are RMS norms, queries and
 * keys are rotary, biases are null, and the feed-forward is (silu(g) u) W_2^T, [g u] = LN_2(r) W_1^T.
 *
 * Forward is a column of ops under each equation; backward is the same column from bottom to top. */
#include "nn/block.h"

#include "dev/queue.h"

static void carve_output(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                         struct layer_memory m)
{
    a->out = arena_carve_2d(arena, m.stream, layer_own_rows(m), form->hidden);
}

static void carve(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                  struct layer_memory m)
{
    int64_t r = layer_own_rows(m);
    a->h_1 = arena_carve_2d(arena, m.dtype, r, form->hidden);
    a->norm_1.sum = NULL_TENSOR;
    norm_carve_statistics(&a->norm_1, arena, form->norm, m.dtype, r);
    self_attention_carve(&a->attention, arena, form, m);
    norm_carve(&a->norm_2, arena, form, m);
    a->h_2 = arena_carve_2d(arena, m.dtype, r, form->hidden);
    feed_forward_carve(&a->ff, arena, form, m);
    carve_output(a, arena, form, m);
}

/* The second norm reads what ends attention, r: norm_2.sum.  Nothing ends in front of the first. */
static struct block_sublayers sublayers(const struct block *b)
{
    struct block_sublayers s = block_sublayers(b, b->acts);
    s.norm_2.site = LAYER_ATTENTION_OUT;
    s.ff.b_2_is_added = true;
    return s;
}

static void forward(struct exec *x, const struct block *b, const struct layer_call *call)
{
    exec_enter(x, "layer", call->layer);
    const struct block_weights *w = b->w;
    const struct block_acts *a = b->acts;
    const struct block_sublayers layer = sublayers(b);
    const tensor branch = stream_own(x, call->stream, b->scratch->branch);

    /* r = x + dropout(attention(LN_1(x)) W_o^T + b_o) */
    x->ops->layernorm(x, a->h_1, a->norm_1.mean, a->norm_1.rstd, b->in, w->norm_1.gamma, w->norm_1.beta,
                      call->form->norm_eps);
    self_attention_forward(x, &layer.attention, a->h_1, b->in, b->scratch, call);
    norm_forward(x, &layer.norm_2, a->h_2, branch, w->attention.b_o, b->in, call);

    /* y = r + dropout(gelu(LN_2(r) W_1^T + b_1) W_2^T + b_2) */
    feed_forward_forward(x, &layer.ff, a->h_2, b->scratch, call);
    residual_forward(x, a->out, branch, a->norm_2.sum, call, LAYER_FEED_FORWARD_OUT);
}

static void backward(struct exec *x, const struct block *b, tensor dx, const struct layer_call *call)
{
    exec_enter(x, "layer", call->layer);
    const struct block_weights *w = b->w, *g = b->g;
    const struct block_acts *a = b->acts;
    const struct layer_scratch *s = b->scratch;
    const struct block_sublayers layer = sublayers(b);
    const tensor branch = stream_own(x, call->stream, s->branch), dh = stream_own(x, call->stream, s->dh);

    /* y = r + dropout(gelu(LN_2(r) W_1^T + b_1) W_2^T + b_2) */
    queue_join(x, 0); /* the layer above has read the scratch */
    tensor dbranch = residual_backward(x, branch, dx, call, LAYER_FEED_FORWARD_OUT);
    feed_forward_backward(x, &layer.ff, (struct gradient){s->dh, false}, dbranch, a->h_2, s, call);

    /* r = x + dropout(attention(LN_1(x)) W_o^T + b_o) */
    queue_join(x, 0);
    norm_backward(x, &layer.norm_2, (struct gradient){dx, true}, branch, g->attention.b_o, dh, call);
    self_attention_backward(x, &layer.attention, (struct gradient){s->dh, false}, NULL_TENSOR, branch, a->h_1,
                            s, call);
    x->ops->layernorm_backward(x, dh, g->norm_1.gamma, g->norm_1.beta, dh, b->in, a->norm_1.mean,
                               a->norm_1.rstd, w->norm_1.gamma);
    x->ops->residual_add(x, dx, dx, dh);
}

const struct block_wiring block_pre = {
    .carve = carve, .carve_output = carve_output, .forward = forward, .backward = backward};
