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
#include "nn/bert/bert_layer.h"

#include "dev/queue.h"

/* The sums are the residual stream, which a forward reads even without a backward. */
static void carve_acts(struct bert_layer_acts *a, struct arena *arena, const struct layer_form *form,
                       struct layer_memory memory)
{
    bert_layer_carve(a, arena, form, memory);
    bert_layer_carve_norms(a, arena, form, memory);
}

static void carve_output(struct bert_layer_acts *a, struct arena *arena, const struct layer_form *form,
                         struct layer_memory m)
{
    bert_layer_carve_output(a, arena, form, m);
    a->norm_2.sum = arena_carve_2d(arena, m.dtype, m.n_tokens, form->hidden);
}

/* r; below the first layer zeros, in the memory of its output, which is written last. */
static tensor residual_of(struct exec *x, const struct bert_layer_acts *a, struct bert_layer_io io)
{
    if (!tensor_is_null(io.residual)) {
        return io.residual;
    }
    tensor zeros = a->out;
    zeros.has_maxima = false;
    x->ops->fill(x, zeros, 0);
    return zeros;
}

static void forward(struct exec *x, const struct bert_layer_acts *all, const struct layer_scratch *scratch,
                    struct bert_layer_io io, const struct bert_layer_weights *w,
                    const struct layer_call *call)
{
    const struct bert_layer_acts a = bert_layer_picked(all, call->picks);
    const struct layer_scratch s = layer_scratch_picked(scratch, call->picks);
    const struct fp8_factor h_fp8 = feed_forward_input(&a.ff, call);
    const struct bert_sublayers layer = bert_layer_sublayers(w, NULL, &a);
    tensor h = fp8_rounded_by_maker(a.h, &h_fp8);
    exec_enter(x, "layer", call->layer);

    /* r_1 = r + dropout(attention(x) W_o^T + b_o),  h = LN_1(r_1) */
    tensor r = self_attention_forward(x, &layer.attention, io.in, residual_of(x, all, io), scratch, call);
    norm_forward(x, &layer.norm_1, h, s.branch, w->attention.b_o, r, call);

    /* r_2 = r_1 + dropout(gelu(h W_1^T + b_1) W_2^T + b_2),  y = LN_2(r_2) */
    feed_forward_forward(x, &layer.ff, h, &s, call);
    norm_forward(x, &layer.norm_2, bert_layer_output(&a, call), s.branch, w->ff.b_2, a.norm_1.sum, call);
}

/* Each LayerNorm's backward adds to dr, the gradient of the residual stream.  A sublayer's output gradient is
 * dr after dropout; its input gradient goes only to the LayerNorm below it. */
static void backward(struct exec *x, tensor dx, const struct bert_layer_weights *g,
                     const struct layer_scratch *scratch, const struct bert_layer_acts *all, tensor in,
                     const struct bert_layer_weights *w, const struct layer_call *call)
{
    const struct bert_layer_acts a = bert_layer_picked(all, call->picks);
    const struct layer_scratch s = layer_scratch_picked(scratch, call->picks);
    const struct fp8_factor dattention_fp8 = layer_factor_of(&s.fp8_branch, call, LAYER_DOUT_O),
                            dff_fp8 = layer_factor_of(&s.fp8_branch, call, LAYER_DOUT_2);
    const struct bert_sublayers layer = bert_layer_sublayers(w, g, &a);
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
    norm_backward(x, &layer.norm_2, (struct gradient){dr, !is_last}, dff, g->ff.b_2, dy, call);
    feed_forward_backward(x, &layer.ff, (struct gradient){dy, false}, dff, a.h, &s, call);

    /* r_1 = r + dropout(attention(x) W_o^T + b_o),  h = LN_1(r_1) */
    queue_join(x, 1); /* all but w_1: `branch` and `dqkv` are free */
    norm_backward(x, &layer.norm_1, (struct gradient){dr, true}, dattention, g->attention.b_o, dy, call);
    self_attention_backward(x, &layer.attention, (struct gradient){dx, false}, scratch->dh, dattention, in,
                            scratch, call);
}

const struct bert_layer_wiring bert_layer_pre = {carve_acts, carve_output, forward, backward};
