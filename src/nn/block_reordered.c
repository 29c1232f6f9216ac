/* The equations of a layer that normalizes what its sublayers add to the residual stream, x its input:
 *
 *     r = x + dropout(LN_1(attention(x) W_o^T))
 *     y = r + dropout(LN_2(feed_forward(r)))
 *
 * OLMo 2 (arXiv:2501.00656), section 3.2: RMS norms, no biases, and norms of queries and keys in attention.
 *
 * Forward is a column of ops under each equation; backward is the same column from bottom to top.  r is
 * norm_2.sum. */
#include "nn/block.h"

#include "dev/queue.h"

/* Room for rows of the residual stream in the dtype of activations, which sublayers read. */
static tensor carve_narrow(struct arena *arena, const struct layer_form *form, struct layer_memory m)
{
    return m.stream == m.dtype ? NULL_TENSOR
                               : arena_carve_2d(arena, m.dtype, layer_own_rows(m), form->hidden);
}

static void carve(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                  struct layer_memory m)
{
    a->h_1 = carve_narrow(arena, form, m);
    self_attention_carve(&a->attention, arena, form, m);
    a->branch_1 = arena_carve_2d(arena, m.dtype, m.n_tokens, form->hidden);
    a->norm_1.sum = NULL_TENSOR;
    norm_carve_statistics(&a->norm_1, arena, form->norm, m.dtype, layer_own_rows(m));
    norm_carve(&a->norm_2, arena, form, m);
    a->h_2 = carve_narrow(arena, form, m);
    feed_forward_carve(&a->ff, arena, form, m);
    a->branch_2 = arena_carve_2d(arena, m.dtype, m.n_tokens, form->hidden);
    block_carve_output(a, arena, form, m);
}

static struct block_sublayers sublayers(const struct block *b)
{
    struct block_sublayers s = block_sublayers(b, b->acts);
    s.ff.b_2_is_added = true;
    return s;
}

/* The scratch of a sublayer that leaves its output in `branch`. */
static struct layer_scratch scratch_for(const struct block *b, tensor branch)
{
    struct layer_scratch s = *b->scratch;
    s.branch = branch;
    return s;
}

/* out = residual + dropout(LN(branch)) */
static void add_norm(struct exec *x, const struct block *b, const struct norm *n, tensor out, tensor branch,
                     tensor residual, const struct layer_call *call)
{
    const tensor of_norm = stream_own(x, call->stream, b->scratch->branch);
    x->ops->layernorm(x, of_norm, n->acts->mean, n->acts->rstd, stream_own(x, call->stream, branch),
                      n->w->gamma, n->w->beta, call->form->norm_eps);
    residual_forward(x, out, of_norm, residual, call, n->site);
}

/* Returns the gradient of the branch, from that of out: in the scratch. */
static tensor add_norm_backward(struct exec *x, const struct block *b, const struct norm *n, tensor dout,
                                tensor branch, const struct layer_call *call)
{
    const tensor dbranch = stream_own(x, call->stream, b->scratch->branch);
    queue_join(x, 0); /* the sublayer above has read the scratch */
    tensor d = residual_backward(x, dbranch, dout, call, n->site);
    x->ops->layernorm_backward(x, dbranch, n->g->gamma, n->g->beta, d, stream_own(x, call->stream, branch),
                               n->acts->mean, n->acts->rstd, n->w->gamma);
    return dbranch;
}

/* The residual stream for a sublayer to read; nothing has rounded it. */
static tensor read(struct exec *x, tensor narrow, tensor stream)
{
    stream.rounded = NULL;
    return tensor_is_null(narrow) ? stream : stream_narrow(x, narrow, stream);
}

static void forward(struct exec *x, const struct block *b, const struct layer_call *call)
{
    exec_enter(x, "layer", call->layer);
    const struct block_acts *a = b->acts;
    const struct block_sublayers layer = sublayers(b);
    const struct layer_scratch s_1 = scratch_for(b, a->branch_1), s_2 = scratch_for(b, a->branch_2);
    const tensor r = a->norm_2.sum;

    /* r = x + dropout(LN_1(attention(x) W_o^T)) */
    self_attention_forward(x, &layer.attention, read(x, a->h_1, b->in), b->in, &s_1, call);
    add_norm(x, b, &layer.norm_1, r, a->branch_1, b->in, call);

    /* y = r + dropout(LN_2(feed_forward(r))) */
    feed_forward_forward(x, &layer.ff, read(x, a->h_2, r), &s_2, call);
    add_norm(x, b, &layer.norm_2, a->out, a->branch_2, r, call);
}

/* What a sublayer read in the forward. */
static tensor was_read(tensor narrow, tensor stream)
{
    return tensor_is_null(narrow) ? stream : narrow;
}

static void backward(struct exec *x, const struct block *b, tensor dx, const struct layer_call *call)
{
    exec_enter(x, "layer", call->layer);
    const struct block_acts *a = b->acts;
    const struct layer_scratch *s = b->scratch;
    const struct block_sublayers layer = sublayers(b);
    const tensor dh = stream_own(x, call->stream, s->dh), r = a->norm_2.sum;
    const struct gradient din = {s->dh, false};

    /* y = r + dropout(LN_2(feed_forward(r))) */
    tensor dbranch = add_norm_backward(x, b, &layer.norm_2, dx, a->branch_2, call);
    feed_forward_backward(x, &layer.ff, din, dbranch, was_read(a->h_2, r), s, call);
    x->ops->residual_add(x, dx, dx, dh);

    /* r = x + dropout(LN_1(attention(x) W_o^T)) */
    dbranch = add_norm_backward(x, b, &layer.norm_1, dx, a->branch_1, call);
    self_attention_backward(x, &layer.attention, din, NULL_TENSOR, dbranch, was_read(a->h_1, b->in), s, call);
    x->ops->residual_add(x, dx, dx, dh);
}

const struct block_wiring block_reordered = {
    .carve = carve, .carve_output = block_carve_output, .forward = forward, .backward = backward};
