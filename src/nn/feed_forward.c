#include "nn/feed_forward.h"

void feed_forward_carve(struct feed_forward_acts *a, struct arena *arena, const struct layer_form *form,
                        struct layer_memory m)
{
    int64_t t = m.n_tokens, f = form->feed_forward;
    /* Clears all but the weights in fp8, which were carved earlier and outlive the batch. */
    feed_forward_share(a, &(struct feed_forward_acts){0});
    a->act = fp8_source_carve(arena, m.fp8, m.dtype, t, f);
    if (m.kept || layer_is_gated(form->activation)) {
        a->pre = arena_carve_2d(arena, m.dtype, t, layer_pre_width(form));
    }
    linear_carve_fp8_input(&a->fp8_1, arena, m.fp8, t, form->hidden);
    linear_carve_fp8_input(&a->fp8_2, arena, m.fp8, t, f);
}

void feed_forward_carve_weights(struct feed_forward_acts *a, struct arena *arena,
                                const struct layer_form *form, enum fp8_factors fp8)
{
    linear_carve_fp8_weight(&a->fp8_1, arena, fp8, layer_pre_width(form), form->hidden);
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

static struct linear first(const struct feed_forward *f)
{
    return (struct linear){.w = f->w->w_1, .bias = f->w->b_1, .fp8 = &f->acts->fp8_1};
}

static struct linear second(const struct feed_forward *f)
{
    return (struct linear){
        .w = f->w->w_2, .bias = f->b_2_is_added ? f->w->b_2 : NULL_TENSOR, .fp8 = &f->acts->fp8_2};
}

static enum gate_function gate_of(enum layer_activation a)
{
    return a == LAYER_SWIGLU ? GATE_SILU : a == LAYER_GEGLU ? GATE_GELU : GATE_GELU_TANH;
}

/* act = gelu(h W_1^T + b_1), or f(g) u.  Where nothing is kept, gelu is computed in its own memory. */
static void activate(struct exec *x, tensor act, const struct feed_forward *f, tensor h,
                     const struct layer_call *call)
{
    const struct fp8_factor h_fp8 = feed_forward_input(f->acts, call);
    const struct linear l = first(f);
    enum layer_activation activation = call->form->activation;
    if (activation == LAYER_GELU_EXACT) {
        linear_gelu_forward(x, &l, act, f->acts->pre, h, &h_fp8);
        return;
    }
    tensor pre = tensor_is_null(f->acts->pre) ? act : f->acts->pre;
    linear_forward(x, &l, pre, h, &h_fp8);
    if (layer_is_gated(activation)) {
        x->ops->gated(x, act, pre, gate_of(activation));
    } else {
        x->ops->gelu_tanh(x, act, pre);
    }
}

/* dff = the gradient of what the activation read, from dact; the op of the exact form adds b_1's gradient. */
static void activate_backward(struct exec *x, tensor dpre, const struct feed_forward *f,
                              const struct layer_scratch *s, enum layer_activation activation)
{
    if (activation == LAYER_GELU_EXACT) {
        x->ops->gelu_backward(x, dpre, f->g->b_1, s->dact, f->acts->pre);
    } else if (layer_is_gated(activation)) {
        x->ops->gated_backward(x, dpre, s->dact, f->acts->pre, gate_of(activation));
    } else {
        x->ops->gelu_tanh_backward(x, dpre, s->dact, f->acts->pre);
    }
}

void feed_forward_forward(struct exec *x, const struct feed_forward *f, tensor h,
                          const struct layer_scratch *s, const struct layer_call *call)
{
    const struct fp8_factor act_fp8 = layer_factor_of(&f->acts->fp8_2.in, call, LAYER_IN_2);
    const struct linear l = second(f);
    tensor act = fp8_rounded_by_maker(f->acts->act, &act_fp8);

    /* gelu(h W_1^T + b_1) W_2^T + b_2, or (f(g) u) W_2^T + b_2 */
    h = stream_gather(x, call->stream, h, s->whole);
    activate(x, act, f, h, call);
    linear_forward_sum(x, &l, call->stream, s->branch, act, &act_fp8);
}

void feed_forward_backward(struct exec *x, const struct feed_forward *f, struct gradient dh, tensor dbranch,
                           tensor h, const struct layer_scratch *s, const struct layer_call *call)
{
    const struct fp8_factor dbranch_fp8 = layer_factor_of(&s->fp8_branch, call, LAYER_DOUT_2),
                            dpre_fp8 = layer_factor_of(&s->fp8_dff, call, LAYER_DOUT_1);
    const struct feed_forward_acts *a = f->acts;
    tensor dpre = fp8_rounded_by_maker(s->dff, &dpre_fp8);
    struct linear l_1 = first(f), l_2 = second(f);
    enum layer_activation activation = call->form->activation;
    l_1.dw = (struct gradient){f->g->w_1, call->adds};
    l_2.dw = (struct gradient){f->g->w_2, call->adds};
    l_2.dbias = f->b_2_is_added ? f->g->b_2 : NULL_TENSOR;
    /* The op of the exact form sums b_1's gradient on its way; after the others the product below does. */
    l_1.dbias = activation == LAYER_GELU_EXACT ? NULL_TENSOR : f->g->b_1;

    /* gelu(h W_1^T + b_1) W_2^T + b_2 */
    dbranch = stream_gather(x, call->stream, dbranch, s->branch);
    h = stream_gather(x, call->stream, h, s->whole);
    linear_backward(x, &l_2, (struct gradient){s->dact, false}, dbranch, a->act, &dbranch_fp8);
    activate_backward(x, dpre, f, s, activation);
    linear_backward_sum(x, &l_1, call->stream, dh, dpre, h, &dpre_fp8);
}
