/* Products and activations. */
#include "checkop_args.h"

RUN(linear)
{
    x->int8_rows = c->shape.int8_rows;
    o->linear(x, t[0], t[1], t[2], c->shape.plain ? NULL_TENSOR : t[3]);
}

/* Of sums of n numbers that are each rounded by at most half a step; results are about sqrt(n), and a row's
 * largest number below 5. */
static double int8_bound(const struct checkop_shape *s)
{
    return PRODUCT_BOUND + (s->int8 && !s->int8_rows ? 5.0 / (double)OPS_INT8_STEPS((int32_t)s->h) : 0);
}

/* out in W, as logits are, where the rows are strided. */
void checkop_make_linear(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gapped(matrix("out", ROLE_OUT, s->strided ? KIND_W : KIND_A, s->t, s->f), s->strided ? 9 : 0));
    add(c, gapped(matrix("in", ROLE_IN, KIND_A, s->t, s->h), s->strided ? 2 * s->h : 0));
    add(c, matrix("w", ROLE_IN, KIND_A, s->f, s->h));
    add(c, vector("bias", ROLE_IN, s->rounded ? KIND_A : KIND_W, s->f));
    if (s->fp8) {
        in_fp8(c, 1, KIND_E4M3, false);
        in_fp8(c, 2, KIND_E4M3, false);
    }
    if (s->int8) {
        in_int8(c, 2);
    }
    c->run = run_linear;
    c->bound_fp32 = c->bound_bf16_w = int8_bound(s);
}

RUN(linear_gelu)
{
    const tensor *in = t + (c->shape.plain ? 1 : 2);
    x->int8_rows = c->shape.int8_rows;
    o->linear_gelu(x, t[0], c->shape.plain ? NULL_TENSOR : t[1], in[0], in[1], in[2]);
}

void checkop_make_linear_gelu(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, KIND_A, s->t, s->f));
    if (!s->plain) {
        add(c, matrix("pre", ROLE_OUT, KIND_A, s->t, s->f));
    }
    int in = add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    add(c, filled(matrix("w", ROLE_IN, KIND_A, s->f, s->h), FILL_NORMAL, 0.1));
    add(c, vector("bias", ROLE_IN, s->rounded ? KIND_A : KIND_W, s->f));
    if (s->fp8) {
        in_fp8(c, in, KIND_E4M3, false);
        in_fp8(c, in + 1, KIND_E4M3, false);
    }
    if (s->int8) {
        in_int8(c, in + 1);
        c->args[in + 1].amount = 6;
    }
    c->run = run_linear_gelu;
    c->bound_fp32 = c->bound_bf16_w = int8_bound(s);
    c->bound_bf16_a = 8e-3; /* the gelu of a rounded `pre` */
}

RUN(linear_backward_input)
{
    o->linear_backward_input(x, t[0], t[1], t[2], !c->shape.plain);
}

static void forward_linear_input(const struct checkop_case *c, const struct ops *o, struct exec *x,
                                 const tensor *t)
{
    (void)c;
    o->linear(x, t[4], t[3], t[2], NULL_TENSOR);
}

void checkop_make_linear_backward_input(struct checkop_case *c, const struct checkop_shape *s)
{
    enum checkop_role din = s->plain ? ROLE_OUT : ROLE_INOUT;
    add(c, gradient(matrix("din", din, KIND_A, s->t, s->h), 3));
    add(c, gapped(matrix("dout", ROLE_IN, KIND_A, s->t, s->f), s->strided ? 2 * s->f : 0));
    add(c, matrix("w", ROLE_IN, KIND_A, s->f, s->h));
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->t, s->f));
    c->seed = 1;
    if (s->fp8) {
        in_fp8(c, 1, KIND_E5M2, false);
        in_fp8(c, 2, KIND_E4M3, true);
    }
    c->run = run_linear_backward_input;
    c->bound_fp32 = c->bound_bf16_w = PRODUCT_BOUND;
    c->forward = forward_linear_input;
}

RUN(linear_backward_weight)
{
    o->linear_backward_weight(x, t[0], c->shape.plain ? NULL_TENSOR : t[1], t[2], t[3], !c->shape.shared);
}

static void forward_linear_weight(const struct checkop_case *c, const struct ops *o, struct exec *x,
                                  const tensor *t)
{
    o->linear(x, t[6], t[3], t[4], c->shape.plain ? NULL_TENSOR : t[5]);
}

void checkop_make_linear_backward_weight(struct checkop_case *c, const struct checkop_shape *s)
{
    enum checkop_role dw = s->shared ? ROLE_OUT : ROLE_INOUT;
    add(c, gradient(matrix("dw", dw, KIND_W, s->f, s->h), 4));
    add(c, gradient(vector("dbias", ROLE_INOUT, KIND_W, s->f), s->plain ? -1 : 5));
    add(c, gapped(matrix("dout", ROLE_IN, KIND_A, s->t, s->f), s->strided ? 2 * s->f : 0));
    add(c, gapped(matrix("in", ROLE_IN, KIND_A, s->t, s->h), s->strided ? s->h : 0));
    add(c, matrix("w", ROLE_IN, KIND_A, s->f, s->h));
    add(c, vector("bias", ROLE_IN, KIND_W, s->f));
    c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->t, s->f));
    c->seed = 2;
    if (s->fp8) {
        in_fp8(c, 2, KIND_E5M2, true);
        in_fp8(c, 3, KIND_E4M3, true);
    }
    c->run = run_linear_backward_weight;
    c->bound_fp32 = c->bound_bf16_w = PRODUCT_BOUND;
    c->forward = forward_linear_weight;
}

RUN(gelu_backward)
{
    (void)c;
    o->gelu_backward(x, t[0], t[1], t[2], t[3]);
}

/* gelu(pre + bias) as a linear layer of the unit matrix. */
static void forward_gelu(const struct checkop_case *c, const struct ops *o, struct exec *x, const tensor *t)
{
    (void)c;
    o->linear_gelu(x, t[4], t[5], t[3], t[6], t[7]);
}

void checkop_make_gelu_backward(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gradient(matrix("dpre", ROLE_OUT, KIND_A, s->t, s->h), 3));
    add(c, gradient(vector("dbias", ROLE_INOUT, KIND_W, s->h), s->f != 0 ? 7 : -1));
    add(c, matrix("dout", ROLE_IN, KIND_A, s->t, s->h));
    add(c, filled(matrix("pre", ROLE_IN, KIND_A, s->t, s->h), s->h < 100 ? FILL_NORMAL : FILL_SPREAD, 1.5));
    c->args[0].shares = s->shared ? 1 + 2 : 0;
    c->run = run_gelu_backward;
    c->bound_bf16_w = 4e-3; /* sums of slopes that are right to what bf16 holds */
    if (s->f != 0) {        /* a gradient check */
        c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->t, s->h));
        add(c, matrix("pre2", ROLE_IN, KIND_A, s->t, s->h));
        add(c, filled(matrix("unit", ROLE_IN, KIND_A, s->h, s->h), FILL_IDENTITY, 1));
        add(c, filled(vector("bias", ROLE_IN, KIND_W, s->h), FILL_NORMAL, 0));
        c->seed = 2;
        c->forward = forward_gelu;
    }
}

/* Activations whose gradient needs their output alone. */
#define ACTIVATION(op)                                                                                       \
    RUN(op)                                                                                                  \
    {                                                                                                        \
        (void)c;                                                                                             \
        o->op(x, t[0], t[1]);                                                                                \
    }                                                                                                        \
    void checkop_make_##op(struct checkop_case *c, const struct checkop_shape *s)                            \
    {                                                                                                        \
        add(c, matrix("out", ROLE_OUT, KIND_A, s->t, s->h));                                                 \
        add(c, filled(matrix("in", ROLE_IN, KIND_A, s->t, s->h), FILL_SPREAD, 1));                           \
        c->args[0].shares = s->shared ? 1 + 1 : 0;                                                           \
        c->run = run_##op;                                                                                   \
    }                                                                                                        \
    RUN(op##_backward)                                                                                       \
    {                                                                                                        \
        (void)c;                                                                                             \
        o->op##_backward(x, t[0], t[1], t[2]);                                                               \
    }                                                                                                        \
    static void forward_##op(const struct checkop_case *c, const struct ops *o, struct exec *x,              \
                             const tensor *t)                                                                \
    {                                                                                                        \
        (void)c;                                                                                             \
        o->op(x, t[2], t[3]);                                                                                \
    }                                                                                                        \
    void checkop_make_##op##_backward(struct checkop_case *c, const struct checkop_shape *s)                 \
    {                                                                                                        \
        add(c, gradient(matrix("din", ROLE_OUT, KIND_A, s->t, s->h), 3));                                    \
        add(c, matrix("dout", ROLE_IN, KIND_A, s->t, s->h));                                                 \
        c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->t, s->h));                                       \
        add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));                                                   \
        c->args[0].shares = s->shared ? 1 + 1 : 0;                                                           \
        c->seed = 1;                                                                                         \
        c->run = run_##op##_backward;                                                                        \
        c->forward = forward_##op;                                                                           \
    }

ACTIVATION(tanh)
ACTIVATION(relu)

RUN(gelu_tanh)
{
    (void)c;
    o->gelu_tanh(x, t[0], t[1]);
}

void checkop_make_gelu_tanh(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, KIND_A, s->t, s->h));
    add(c, filled(matrix("pre", ROLE_IN, KIND_A, s->t, s->h), FILL_SPREAD, 1));
    c->args[0].shares = s->shared ? 1 + 1 : 0;
    c->run = run_gelu_tanh;
}

RUN(gelu_tanh_backward)
{
    (void)c;
    o->gelu_tanh_backward(x, t[0], t[1], t[2]);
}

static void forward_gelu_tanh(const struct checkop_case *c, const struct ops *o, struct exec *x,
                              const tensor *t)
{
    (void)c;
    o->gelu_tanh(x, t[3], t[2]);
}

void checkop_make_gelu_tanh_backward(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gradient(matrix("dpre", ROLE_OUT, KIND_A, s->t, s->h), 2));
    add(c, matrix("dout", ROLE_IN, KIND_A, s->t, s->h));
    add(c, filled(matrix("pre", ROLE_IN, KIND_A, s->t, s->h), FILL_SPREAD, 1));
    c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->t, s->h));
    c->args[0].shares = s->shared ? 1 + 1 : 0;
    c->seed = 1;
    c->run = run_gelu_tanh_backward;
    c->forward = forward_gelu_tanh;
}

RUN(gated)
{
    o->gated(x, t[0], t[1], (enum gate_function)c->shape.kind);
}

void checkop_make_gated(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, KIND_A, s->t, s->h));
    add(c, filled(matrix("pre", ROLE_IN, KIND_A, s->t, 2 * s->h), FILL_SPREAD, 1));
    c->run = run_gated;
}

RUN(gated_backward)
{
    o->gated_backward(x, t[0], t[1], t[2], (enum gate_function)c->shape.kind);
}

static void forward_gated(const struct checkop_case *c, const struct ops *o, struct exec *x, const tensor *t)
{
    o->gated(x, t[3], t[2], (enum gate_function)c->shape.kind);
}

void checkop_make_gated_backward(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gradient(matrix("dpre", ROLE_OUT, KIND_A, s->t, 2 * s->h), 2));
    c->seed = add(c, matrix("dout", ROLE_IN, KIND_A, s->t, s->h));
    add(c, filled(matrix("pre", ROLE_IN, KIND_A, s->t, 2 * s->h), FILL_SPREAD, 1));
    c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->t, s->h));
    c->args[0].shares = s->shared ? 1 + 2 : 0;
    c->run = run_gated_backward;
    c->forward = forward_gated;
}

RUN(residual_add)
{
    (void)c;
    o->residual_add(x, t[0], t[1], t[2]);
}

void checkop_make_residual_add(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, stream_kind(s), s->t, s->h));
    add(c, matrix("residual", ROLE_IN, stream_kind(s), s->t, s->h));
    add(c, matrix("branch", ROLE_IN, KIND_A, s->t, s->h));
    c->args[0].shares = s->shared ? 1 + 1 : 0;
    c->run = run_residual_add;
}
