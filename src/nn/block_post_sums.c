/* The pre-LN wiring of BERT's layers, as the DeepSpeed scripts build their large models
 * ("layer_norm_large_model": BERT-1.5B and 5B): the sublayers read normalised sums, while the residual stream
 * itself is never normalised.  Xiong et al. 2020 (arXiv:2002.04745) figure 1 b, with the LayerNorms of a
 * layer moved to the ends of its sublayers, so that the parameters are those of a post-LN layer.
 *
 * The equations, x the layer's input, which is normalised, and r the sum of all sublayers below it, 0 under
 * the first (the embeddings are not in it):
 *
 *     r_1 = r + dropout(attention(x) W_o^T + b_o),  h = LN_1(r_1)
 *     r_2 = r_1 + dropout(gelu(h W_1^T + b_1) W_2^T + b_2),  y = LN_2(r_2)
 *
 * In the next layer x is y and r is r_2.  The last LN_2 is the model's final LayerNorm, the only reader of
 * the last r_2.  Forward is a column of ops under each equation; backward is the same column from bottom to
 * top. */
#include "nn/block.h"

#include "dev/queue.h"

/* The sums are the residual stream, which a forward reads even without a backward. */
static void carve(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                  struct layer_memory memory)
{
    block_post_carve(a, arena, form, memory);
    norm_carve(&a->norm_1, arena, form, memory);
    norm_carve(&a->norm_2, arena, form, memory);
}

static void carve_output(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                         struct layer_memory m)
{
    block_post_carve_output(a, arena, form, m);
    a->norm_2.sum = arena_carve_2d(arena, m.dtype, m.n_tokens, form->hidden);
}

/* r; below the first layer zeros, in the memory of its output, which is written last. */
static tensor residual_of(struct exec *x, const struct block *b)
{
    if (!tensor_is_null(b->residual)) {
        return b->residual;
    }
    tensor zeros = b->acts->out;
    zeros.has_maxima = false;
    x->ops->fill(x, zeros, 0);
    return zeros;
}

static void forward(struct exec *x, const struct block *b, const struct layer_call *call)
{
    const struct block_acts a = block_picked(b->acts, call->picks);
    const struct layer_scratch s = layer_scratch_picked(b->scratch, call->picks);
    const struct fp8_factor h_fp8 = feed_forward_input(&a.ff, call);
    const struct block_sublayers layer = block_sublayers(b, &a);
    tensor h = fp8_rounded_by_maker(a.h_2, &h_fp8);
    exec_enter(x, "layer", call->layer);

    /* r_1 = r + dropout(attention(x) W_o^T + b_o),  h = LN_1(r_1) */
    tensor r = self_attention_forward(x, &layer.attention, b->in, residual_of(x, b), b->scratch, call);
    norm_forward(x, &layer.norm_1, h, s.branch, b->w->attention.b_o, r, call);

    /* r_2 = r_1 + dropout(gelu(h W_1^T + b_1) W_2^T + b_2),  y = LN_2(r_2) */
    feed_forward_forward(x, &layer.ff, h, &s, call);
    norm_forward(x, &layer.norm_2, block_output(&a, call), s.branch, b->w->ff.b_2, a.norm_1.sum, call);
}

/* Each LayerNorm's backward adds to dr, the gradient of the residual stream.  A sublayer's output gradient is
 * dr after dropout; its input gradient goes only to the LayerNorm below it. */
static void backward(struct exec *x, const struct block *b, tensor dx, const struct layer_call *call)
{
    const struct block_acts a = block_picked(b->acts, call->picks);
    const struct layer_scratch s = layer_scratch_picked(b->scratch, call->picks);
    const struct fp8_factor dattention_fp8 = layer_factor_of(&s.fp8_branch, call, LAYER_DOUT_O),
                            dff_fp8 = layer_factor_of(&s.fp8_branch, call, LAYER_DOUT_2);
    const struct block_sublayers layer = block_sublayers(b, &a);
    tensor dattention = fp8_rounded_by_maker(s.branch, &dattention_fp8),
           dff = fp8_rounded_by_maker(s.branch, &dff_fp8), dy = dx, dr = s.dh;
    bool is_last = call->layer == call->form->n_layers - 1;
    if (call->picks != NULL) {
        dy = row_picks_view(call->picks, dx);
        dr = call->picks->residual;
    }
    exec_enter(x, "layer", call->layer);

    /* r_2 = r_1 + dropout(gelu(h W_1^T + b_1) W_2^T + b_2),  y = LN_2(r_2) */
    queue_join(x, 1); /* all but w_qkv of the layer above: `branch` and `dff` are free */
    norm_backward(x, &layer.norm_2, (struct gradient){dr, !is_last}, dff, b->g->ff.b_2, dy, call);
    feed_forward_backward(x, &layer.ff, (struct gradient){dy, false}, dff, a.h_2, &s, call);

    /* r_1 = r + dropout(attention(x) W_o^T + b_o),  h = LN_1(r_1) */
    queue_join(x, 1); /* all but w_1: `branch` and `dqkv` are free */
    norm_backward(x, &layer.norm_1, (struct gradient){dr, true}, dattention, b->g->attention.b_o, dy, call);
    self_attention_backward(x, &layer.attention, (struct gradient){dx, false}, b->scratch->dh, dattention,
                            b->in, b->scratch, call);
}

const struct block_wiring block_post_sums = {.name = "pre-LN",
                                             .hands_on_more = true,
                                             .carve = carve,
                                             .carve_output = carve_output,
                                             .forward = forward,
                                             .backward = backward};
