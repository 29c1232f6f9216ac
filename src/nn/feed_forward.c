#include "nn/feed_forward.h"

void feed_forward_carve(struct feed_forward_acts *a, struct arena *arena, const struct layer_form *form,
                        struct layer_memory m)
{
    int64_t t = m.n_tokens, f = form->feed_forward;
    /* Clears all but the weights in fp8, which were carved earlier and outlive the batch. */
    feed_forward_share(a, &(struct feed_forward_acts){0});
    a->act = fp8_source_carve(arena, m.fp8, m.dtype, t, f);
    if (m.kept) {
        a->pre = arena_carve_2d(arena, m.dtype, t, f);
    }
    linear_carve_fp8_input(&a->fp8_1, arena, m.fp8, t, form->hidden);
    linear_carve_fp8_input(&a->fp8_2, arena, m.fp8, t, f);
}

void feed_forward_carve_weights(struct feed_forward_acts *a, struct arena *arena,
                                const struct layer_form *form, enum fp8_factors fp8)
{
    linear_carve_fp8_weight(&a->fp8_1, arena, fp8, form->feed_forward, form->hidden);
    linear_carve_fp8_weight(&a->fp8_2, arena, fp8, form->hidden, form->feed_forward);
}

void feed_forward_round_weights(struct exec *x, const struct feed_forward_acts *a,
                                const struct feed_forward_weights *w)
{
    linear_round_weight(x, w->w_1, &a->fp8_1);
    linear_round_weight(x, w->w_2, &a->fp8_2);
}

void feed_forward_share(struct feed_forward_acts *a, const struct feed_forward_acts *of)
{
    struct fp8_factor w_1 = a->fp8_1.w, w_2 = a->fp8_2.w;
    *a = *of;
    a->fp8_1.w = w_1;
    a->fp8_2.w = w_2;
}

struct feed_forward_acts feed_forward_picked(const struct feed_forward_acts *a, const struct row_picks *picks)
{
    struct feed_forward_acts rows = *a;
    if (picks != NULL) {
        rows.pre = row_picks_view(picks, a->pre);
        rows.act = row_picks_view(picks, a->act);
    }
    return rows;
}

struct fp8_factor feed_forward_input(const struct feed_forward_acts *a, const struct layer_call *call)
{
    return layer_factor_of(&a->fp8_1.in, call, LAYER_IN_1);
}

/* act = gelu(h W_1^T + b_1).  Where nothing is kept, act is computed in its own memory. */
static void activate(struct exec *x, tensor act, const struct feed_forward_acts *a, tensor h,
                     const struct feed_forward_weights *w, const struct layer_call *call)
{
    const struct fp8_factor h_fp8 = feed_forward_input(a, call);
    if (call->form->gelu == LAYER_GELU_EXACT) {
        linear_gelu_forward(x, act, a->pre, h, w->w_1, w->b_1, &a->fp8_1, &h_fp8);
        return;
    }
    tensor pre = tensor_is_null(a->pre) ? act : a->pre;
    linear_forward(x, pre, h, w->w_1, w->b_1, &a->fp8_1, &h_fp8);
    x->ops->gelu_tanh(x, act, pre);
}

void feed_forward_forward(struct exec *x, const struct layer_scratch *s, const struct feed_forward_acts *a,
                          tensor h, const struct feed_forward_weights *w, tensor last_bias,
                          const struct layer_call *call)
{
    const struct fp8_factor act_fp8 = layer_factor_of(&a->fp8_2.in, call, LAYER_IN_2);
    tensor act = fp8_rounded_by_maker(a->act, &act_fp8);

    /* gelu(h W_1^T + b_1) W_2^T + b_2 */
    h = stream_gather(x, call->stream, h, s->whole);
    activate(x, act, a, h, w, call);
    linear_forward_sum(x, call->stream, s->branch, act, w->w_2, last_bias, &a->fp8_2, &act_fp8);
}

void feed_forward_backward(struct exec *x, tensor dh, bool adds, tensor dbranch,
                           const struct feed_forward_weights *g, tensor dlast_bias,
                           const struct layer_scratch *s, const struct feed_forward_acts *a, tensor h,
                           const struct feed_forward_weights *w, const struct layer_call *call)
{
    const struct fp8_factor dbranch_fp8 = layer_factor_of(&s->fp8_branch, call, LAYER_DOUT_2),
                            dpre_fp8 = layer_factor_of(&s->fp8_dff, call, LAYER_DOUT_1);
    tensor dpre = fp8_rounded_by_maker(s->dff, &dpre_fp8);

    bool is_exact = call->form->gelu == LAYER_GELU_EXACT;

    /* gelu(h W_1^T + b_1) W_2^T + b_2 */
    dbranch = stream_gather(x, call->stream, dbranch, s->branch);
    h = stream_gather(x, call->stream, h, s->whole);
    linear_backward(x, s->dff, false, g->w_2, call->adds, dlast_bias, dbranch, a->act, w->w_2, &a->fp8_2,
                    &dbranch_fp8);
    /* The op of the exact form sums b_1's gradient on its way; after the op of the tanh form the
     * product below does. */
    if (is_exact) {
        x->ops->gelu_backward(x, dpre, g->b_1, s->dff, a->pre);
    } else {
        x->ops->gelu_tanh_backward(x, dpre, s->dff, a->pre);
    }
    linear_backward_sum(x, call->stream, dh, adds, g->w_1, call->adds, is_exact ? NULL_TENSOR : g->b_1, dpre,
                        h, w->w_1, &a->fp8_1, &dpre_fp8);
}
