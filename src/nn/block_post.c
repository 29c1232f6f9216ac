/* The equations of a post-LN layer, x its input:
 *
 *     h = LN_1(x + dropout(attention(x) W_o^T + b_o))
 *     y = LN_2(h + dropout(gelu(h W_1^T + b_1) W_2^T + b_2))
 *
 * Forward is a column of ops under each equation; backward is the same column from bottom to top.
 *
 * A backward has three gradients at a time: dx [T, H] goes from layer to layer, s.dh is that of h, and
 * s.branch that of a sublayer's output.  With selected rows, dx has gradients in its first R rows on entry
 * and in all T rows on return: attention spreads them. */
#include "nn/block.h"

#include "dev/queue.h"

static void carve(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                  struct layer_memory memory)
{
    block_post_carve(a, arena, form, memory);
    if (memory.kept) {
        norm_carve(&a->norm_1, arena, form, memory);
        norm_carve(&a->norm_2, arena, form, memory);
    }
}

static void forward(struct exec *x, const struct block *b, const struct layer_call *call)
{
    const struct block_acts a = block_picked(b->acts, call->picks);
    const struct layer_scratch s = layer_scratch_picked(b->scratch, call->picks);
    const struct fp8_factor h_fp8 = feed_forward_input(&a.ff, call);
    const struct block_sublayers layer = block_sublayers(b, &a);
    tensor h = fp8_rounded_by_maker(a.h_2, &h_fp8);
    exec_enter(x, "layer", call->layer);

    /* h = LN_1(x + dropout(attention(x) W_o^T + b_o)) */
    tensor residual = self_attention_forward(x, &layer.attention, b->in, b->in, b->scratch, call);
    norm_forward(x, &layer.norm_1, h, s.branch, b->w->attention.b_o, residual, call);

    /* y = LN_2(h + dropout(gelu(h W_1^T + b_1) W_2^T + b_2)) */
    feed_forward_forward(x, &layer.ff, h, &s, call);
    norm_forward(x, &layer.norm_2, block_output(&a, call), s.branch, b->w->ff.b_2, h, call);
}

/* One buffer, dx, holds three gradients one after the other: that of y on entry, that of the residual x after
 * LN_1, and that of the layer's input once attention has added its part. */
static void backward(struct exec *x, const struct block *b, tensor dx, const struct layer_call *call)
{
    const struct block_acts a = block_picked(b->acts, call->picks);
    const struct layer_scratch s = layer_scratch_picked(b->scratch, call->picks);
    const struct fp8_factor dattention_fp8 = layer_factor_of(&s.fp8_branch, call, LAYER_DOUT_O),
                            dff_fp8 = layer_factor_of(&s.fp8_branch, call, LAYER_DOUT_2);
    const struct block_sublayers layer = block_sublayers(b, &a);
    tensor dattention = fp8_rounded_by_maker(s.branch, &dattention_fp8),
           dff = fp8_rounded_by_maker(s.branch, &dff_fp8), dy = dx, dresidual = dx;
    if (call->picks != NULL) {
        dy = row_picks_view(call->picks, dx);
        dresidual = call->picks->residual;
    }
    exec_enter(x, "layer", call->layer);

    /* y = LN_2(h + dropout(gelu(h W_1^T + b_1) W_2^T + b_2)) */
    queue_join(x, 1); /* all but w_qkv of the layer above: `branch` and `dff` are free */
    norm_backward(x, &layer.norm_2, (struct gradient){s.dh, false}, dff, b->g->ff.b_2, dy, call);
    feed_forward_backward(x, &layer.ff, (struct gradient){s.dh, true}, dff, a.h_2, &s, call);

    /* h = LN_1(x + dropout(attention(x) W_o^T + b_o)) */
    queue_join(x, 1); /* all but w_1: `branch` and `dqkv` are free */
    norm_backward(x, &layer.norm_1, (struct gradient){dresidual, false}, dattention, b->g->attention.b_o,
                  s.dh, call);
    self_attention_backward(x, &layer.attention, (struct gradient){dx, true}, dx, dattention, b->in,
                            b->scratch, call);
}

const struct block_wiring block_post = {
    .carve = carve, .carve_output = block_post_carve_output, .forward = forward, .backward = backward};
