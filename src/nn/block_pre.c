/* The equations of a pre-LN layer, x its input, which is the residual stream (Radford et al. 2019 section
 * 2.3; BLOOM, arXiv:2211.05100, section 3.2):
 *
 *     r = x + dropout(attention(LN_1(x)) W_o^T + b_o)
 *     y = r + dropout(gelu(LN_2(r) W_1^T + b_1) W_2^T + b_2)
 *
 * In Llama's form (Touvron et al. 2023, arXiv:2302.13971, section 2.2) the norms are RMS norms, queries and
 * keys are rotary, biases are null, and the feed-forward is (silu(g) u) W_2^T, [g u] = LN_2(r) W_1^T.
 *
 * In ModernBERT's (Warner et al. 2024, arXiv:2412.13663, section 2.1) LN_1 of layer 0, whose input is a
 * norm's output, is the identity, and the last layer's output is LN_out(y), both where these norms are null
 * or not.
 *
 * Forward is a column of ops under each equation; backward is the same column from bottom to top. */
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
    norm_carve(&a->norm_2, arena, form, m);
    a->h_2 = arena_carve_2d(arena, m.dtype, r, form->hidden);
    feed_forward_carve(&a->ff, arena, form, m);
    block_carve_output(a, arena, form, m);
}

/* The second norm reads what ends attention, r: norm_2.sum.  Nothing ends in front of the first. */
static struct block_sublayers sublayers(const struct block *b, const struct block_acts *a)
{
    struct block_sublayers s = block_sublayers(b, a);
    s.norm_2.site = LAYER_ATTENTION_OUT;
    s.ff.b_2_is_added = true;
    return s;
}

/* LN_1(x), or x. */
static tensor norm_input(struct exec *x, const struct block *b, const struct layer_call *call)
{
    const struct norm_weights *w = &b->w->norm_1;
    const struct block_acts *a = b->acts;
    if (tensor_is_null(w->gamma)) {
        return b->in;
    }
    x->ops->layernorm(x, a->h_1, a->norm_1.mean, a->norm_1.rstd, b->in, w->gamma, w->beta,
                      call->form->norm_eps);
    return a->h_1;
}

static void norm_input_backward(struct exec *x, const struct block *b, tensor dh)
{
    const struct norm_weights *w = &b->w->norm_1, *g = &b->g->norm_1;
    const struct norm_acts *a = &b->acts->norm_1;
    if (!tensor_is_null(w->gamma)) {
        x->ops->layernorm_backward(x, dh, g->gamma, g->beta, dh, b->in, a->mean, a->rstd, w->gamma);
    }
}

/* The norm of the layer's output, of the rows that are computed. */
static struct norm norm_of_output(const struct block *b, struct norm_acts *rows,
                                  const struct layer_call *call)
{
    struct norm n = b->norm_out;
    *rows = n.w == NULL ? (struct norm_acts){0} : norm_picked(n.acts, call->picks);
    n.acts = rows;
    return n;
}

/* y = r + dropout(branch), or LN_out(y). */
static void end_forward(struct exec *x, const struct block *b, tensor out, tensor branch, tensor r,
                        const struct layer_call *call)
{
    struct norm_acts rows;
    struct norm n = norm_of_output(b, &rows, call);
    if (n.w != NULL) {
        norm_forward(x, &n, out, branch, NULL_TENSOR, r, call);
    } else {
        residual_forward(x, out, branch, r, call, LAYER_FEED_FORWARD_OUT);
    }
}

/* Sets dr, which may be dy, and returns the gradient of the branch. */
static tensor end_backward(struct exec *x, const struct block *b, tensor dr, tensor branch, tensor dy,
                           const struct layer_call *call)
{
    struct norm_acts rows;
    struct norm n = norm_of_output(b, &rows, call);
    if (n.w != NULL) {
        norm_backward(x, &n, (struct gradient){dr, false}, branch, NULL_TENSOR, dy, call);
        return branch;
    }
    if (call->picks != NULL) {
        x->ops->cast(x, dr, dy);
    }
    return residual_backward(x, branch, dr, call, LAYER_FEED_FORWARD_OUT);
}

static void forward(struct exec *x, const struct block *b, const struct layer_call *call)
{
    exec_enter(x, "layer", call->layer);
    const struct block_weights *w = b->w;
    const struct block_acts a = block_picked(b->acts, call->picks);
    const struct layer_scratch s = layer_scratch_picked(b->scratch, call->picks);
    const struct block_sublayers layer = sublayers(b, &a);
    const tensor branch = stream_own(x, call->stream, s.branch);

    /* r = x + dropout(attention(LN_1(x)) W_o^T + b_o) */
    tensor h_1 = norm_input(x, b, call);
    tensor residual = self_attention_forward(x, &layer.attention, h_1, b->in, b->scratch, call);
    norm_forward(x, &layer.norm_2, a.h_2, branch, w->attention.b_o, residual, call);

    /* y = r + dropout(gelu(LN_2(r) W_1^T + b_1) W_2^T + b_2) */
    feed_forward_forward(x, &layer.ff, a.h_2, &s, call);
    end_forward(x, b, a.out, branch, a.norm_2.sum, call);
}

/* dx holds the gradients of y, r and x one after the other; that of r's selected rows lies apart. */
static void backward(struct exec *x, const struct block *b, tensor dx, const struct layer_call *call)
{
    exec_enter(x, "layer", call->layer);
    const struct block_acts a = block_picked(b->acts, call->picks);
    const struct layer_scratch s = layer_scratch_picked(b->scratch, call->picks);
    const struct block_sublayers layer = sublayers(b, &a);
    const tensor branch = stream_own(x, call->stream, s.branch);
    const tensor dh = stream_own(x, call->stream, s.dh), din = stream_own(x, call->stream, b->scratch->dh);
    tensor dy = dx, dr = dx;
    if (call->picks != NULL) {
        dy = row_picks_view(call->picks, dx);
        dr = call->picks->residual;
    }

    /* y = r + dropout(gelu(LN_2(r) W_1^T + b_1) W_2^T + b_2) */
    queue_join(x, 0); /* the layer above has read the scratch */
    tensor dbranch = end_backward(x, b, dr, branch, dy, call);
    feed_forward_backward(x, &layer.ff, (struct gradient){s.dh, false}, dbranch, a.h_2, &s, call);

    /* r = x + dropout(attention(LN_1(x)) W_o^T + b_o) */
    queue_join(x, 0);
    norm_backward(x, &layer.norm_2, (struct gradient){dr, true}, branch, b->g->attention.b_o, dh, call);
    tensor h_1 = tensor_is_null(b->w->norm_1.gamma) ? b->in : a.h_1;
    self_attention_backward(x, &layer.attention, (struct gradient){b->scratch->dh, false}, dx, branch, h_1,
                            b->scratch, call);
    norm_input_backward(x, b, din);
    x->ops->residual_add(x, dx, dx, din);
}

const struct block_wiring block_pre = {
    .carve = carve, .carve_output = block_carve_output, .forward = forward, .backward = backward};
