/* Losses, and what else is read off logits. */
#include "checkop_args.h"

static const double loss_scale = 0.37;

RUN(cross_entropy)
{
    o->cross_entropy(x, t[0], t[1], c->shape.plain ? NULL_TENSOR : t[2], t[3], t[4], c->shape.f, t[7]);
}

/* The loss alone, for central differences. */
static void forward_cross_entropy(const struct checkop_case *c, const struct ops *o, struct exec *x,
                                  const tensor *t)
{
    o->cross_entropy(x, t[5], t[6], NULL_TENSOR, t[3], t[4], c->shape.f, t[7]);
}

/* Arguments 0 to 3 of losses over rows of logits. */
static void add_losses(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, vector("loss", ROLE_OUT, KIND_W, s->t));
    add(c, vector("correct", ROLE_OUT, KIND_I32, s->t));
    add(c, gradient(
               matrix("dlogits", s->plain ? ROLE_SCRATCH : ROLE_OUT, s->shared ? KIND_W : KIND_A, s->t, s->h),
               3));
    add(c, filled(matrix("logits", ROLE_IN, KIND_W, s->t, s->h), FILL_NORMAL, 3));
    c->args[2].shares = s->shared ? 1 + 3 : 0;
}

/* The last arguments: what the forward computes, and the scale. */
static void add_value(struct checkop_case *c, const struct checkop_shape *s)
{
    c->value = add(c, vector("loss2", ROLE_IN, KIND_W, s->t));
    add(c, vector("correct2", ROLE_IN, KIND_I32, s->t));
    add(c, filled(vector("scale", ROLE_IN, KIND_F64, 1), FILL_CONSTANT, loss_scale));
    c->seed_value = loss_scale;
}

void checkop_make_cross_entropy(struct checkop_case *c, const struct checkop_shape *s)
{
    add_losses(c, s);
    add(c, indices("labels", s->t, FILL_LABEL, s->f));
    add_value(c, s);
    c->run = run_cross_entropy;
    c->forward = forward_cross_entropy;
}

RUN(slice_maxima)
{
    o->slice_maxima(x, t[0], t[1], c->shape.first, c->shape.f);
}

void checkop_make_slice_maxima(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, vector("maxima", ROLE_OUT, KIND_W, s->t));
    add(c, filled(matrix("logits", ROLE_IN, KIND_W, s->t, s->h), FILL_NORMAL, 3));
    c->run = run_slice_maxima;
}

RUN(slice_sums)
{
    o->slice_sums(x, t[0], t[1], t[2], t[3], c->shape.first, c->shape.f);
}

static void forward_slice_sums(const struct checkop_case *c, const struct ops *o, struct exec *x,
                               const tensor *t)
{
    o->slice_maxima(x, t[2], t[1], c->shape.first, c->shape.f);
}

void checkop_make_slice_sums(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("sums", ROLE_OUT, KIND_F64, s->t, 3));
    add(c, filled(matrix("logits", ROLE_IN, KIND_W, s->t, s->h), FILL_NORMAL, 3));
    add(c, vector("maxima", ROLE_IN, KIND_W, s->t));
    add(c, indices("labels", s->t, FILL_LABEL, s->f));
    c->run = run_slice_sums;
    c->forward = forward_slice_sums;
}

RUN(slice_cross_entropy)
{
    o->slice_cross_entropy(x, t[0], t[1], c->shape.plain ? NULL_TENSOR : t[2], t[3], t[4], t[5], t[6],
                           c->shape.first, c->shape.f, t[9]);
}

/* As where no other rank has a class; of all classes the last step's gradient is that of all three. */
static void forward_slice_cross_entropy(const struct checkop_case *c, const struct ops *o, struct exec *x,
                                        const tensor *t)
{
    o->slice_maxima(x, t[4], t[3], c->shape.first, c->shape.f);
    o->slice_sums(x, t[5], t[3], t[4], t[6], c->shape.first, c->shape.f);
    o->slice_cross_entropy(x, t[7], t[8], NULL_TENSOR, t[3], t[4], t[5], t[6], c->shape.first, c->shape.f,
                           t[9]);
}

void checkop_make_slice_cross_entropy(struct checkop_case *c, const struct checkop_shape *s)
{
    add_losses(c, s);
    add(c, vector("maxima", ROLE_IN, KIND_W, s->t));
    add(c, matrix("sums", ROLE_IN, KIND_F64, s->t, 3));
    add(c, indices("labels", s->t, FILL_LABEL, s->f));
    add_value(c, s);
    c->run = run_slice_cross_entropy;
    c->forward = forward_slice_cross_entropy;
}

RUN(span_cross_entropy)
{
    o->span_cross_entropy(x, t[0], t[1], c->shape.plain ? NULL_TENSOR : t[2], t[3], t[4], t[5], t[8]);
}

static void forward_span_cross_entropy(const struct checkop_case *c, const struct ops *o, struct exec *x,
                                       const tensor *t)
{
    (void)c;
    o->span_cross_entropy(x, t[6], t[7], NULL_TENSOR, t[3], t[4], t[5], t[8]);
}

/* Labels are below f, which no sequence is shorter than. */
void checkop_make_span_cross_entropy(struct checkop_case *c, const struct checkop_shape *s)
{
    int64_t max, rows = total(c->lens_q, c->n_sequences, &max), n = c->n_sequences;
    add(c, matrix("loss", ROLE_OUT, KIND_W, n, 2));
    add(c, matrix("correct", ROLE_OUT, KIND_I32, n, 2));
    add(c, gradient(matrix("dlogits", s->plain ? ROLE_SCRATCH : ROLE_OUT, KIND_A, rows, 2), 3));
    add(c, filled(matrix("logits", ROLE_IN, KIND_W, rows, 2), FILL_NORMAL, 3));
    add(c, indices("cu_seqlens", n + 1, FILL_BOUNDS_Q, 0));
    add(c, filled(matrix("labels", ROLE_IN, KIND_I32, n, 2), FILL_LABEL, (double)s->f));
    c->value = add(c, matrix("loss2", ROLE_IN, KIND_W, n, 2));
    add(c, matrix("correct2", ROLE_IN, KIND_I32, n, 2));
    add(c, filled(vector("scale", ROLE_IN, KIND_F64, 1), FILL_CONSTANT, loss_scale));
    c->seed_value = loss_scale;
    c->run = run_span_cross_entropy;
    c->forward = forward_span_cross_entropy;
}

static enum pointwise_loss pointwise_kind(const struct checkop_case *c)
{
    return c->shape.causal ? POINTWISE_SIGMOID : POINTWISE_SQUARED;
}

RUN(pointwise)
{
    o->pointwise(x, t[0], t[1], c->shape.plain ? NULL_TENSOR : t[2], t[3], t[4], pointwise_kind(c), t[7]);
}

static void forward_pointwise(const struct checkop_case *c, const struct ops *o, struct exec *x,
                              const tensor *t)
{
    o->pointwise(x, t[5], t[6], NULL_TENSOR, t[3], t[4], pointwise_kind(c), t[7]);
}

/* `causal` stands for sigmoid here. */
void checkop_make_pointwise(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("loss", ROLE_OUT, KIND_W, s->t, s->h));
    add(c, matrix("correct", ROLE_OUT, KIND_I32, s->t, s->h));
    add(c, gradient(matrix("dlogits", s->plain ? ROLE_SCRATCH : ROLE_OUT, KIND_A, s->t, s->h), 3));
    add(c, filled(matrix("logits", ROLE_IN, KIND_W, s->t, s->h), FILL_NORMAL, 3));
    add(c, filled(matrix("targets", ROLE_IN, KIND_F32, s->t, s->h), FILL_TARGET, 1));
    c->value = add(c, matrix("loss2", ROLE_IN, KIND_W, s->t, s->h));
    add(c, matrix("correct2", ROLE_IN, KIND_I32, s->t, s->h));
    add(c, filled(vector("scale", ROLE_IN, KIND_F64, 1), FILL_CONSTANT, loss_scale));
    c->seed_value = loss_scale;
    c->run = run_pointwise;
    c->forward = forward_pointwise;
}

RUN(choose_tokens)
{
    o->choose_tokens(x, t[0], t[1], t[2], t[3], t[4], t[5], c->shape.f, c->shape.h - 1);
}

/* `plain` is without changes; a row of logits has a column that is no word. */
void checkop_make_choose_tokens(struct checkop_case *c, const struct checkop_shape *s)
{
    enum { RATED = 6 };
    add(c, matrix("tokens", ROLE_OUT, KIND_I32, s->t, RATED));
    add(c, matrix("log_ps", ROLE_OUT, KIND_W, s->t, RATED));
    add(c, filled(matrix("changes", ROLE_SCRATCH, KIND_F32, CHECKOP_CHANGES * s->t, CHANGE_N_COLUMNS),
                  FILL_CHANGES, (double)s->f));
    add(c, gapped(filled(matrix("logits", ROLE_IN, KIND_W, s->t, s->h), FILL_NORMAL, 3), s->strided ? 5 : 0));
    add(c, filled(matrix("options", ROLE_IN, KIND_F64, s->t, CHOICE_N_OPTIONS), FILL_CHOICES, RATED));
    add(c, indices("starts", s->t + 1, FILL_STARTS, s->plain ? 0 : CHECKOP_CHANGES));
    c->run = run_choose_tokens;
}
