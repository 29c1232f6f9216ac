#include "checkop_args.h"

#include "ops/attention_bits.h"

#include <stddef.h>

/* fp32 sums over a whole inner dimension. */
static const double product_bound = 2e-6;

static tensor last(const struct checkop_case *c, const tensor *t)
{
    return t[c->n_args - 1];
}

RUN(fill)
{
    (void)c;
    o->fill(x, t[0], -2.5);
}

static void make_fill(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gapped(matrix("out", ROLE_OUT, KIND_A, s->t, s->h), s->strided ? 5 : 0));
    c->run = run_fill;
}

RUN(cast)
{
    (void)c;
    o->cast(x, t[0], t[1]);
}

static void make_cast(struct checkop_case *c, const struct checkop_shape *s)
{
    enum checkop_kind to = s->plain ? KIND_W : KIND_A, from = s->plain ? KIND_A : KIND_W;
    add(c, gapped(matrix("out", ROLE_OUT, to, s->t, s->h), s->strided ? 3 : 0));
    add(c, gapped(matrix("in", ROLE_IN, from, s->t, s->h), s->strided ? 7 : 0));
    c->run = run_cast;
}

RUN(quantize)
{
    enum dtype format = c->shape.plain ? DTYPE_E5M2 : DTYPE_E4M3;
    o->quantize(x, t[0], c->shape.fp8 ? t[5] : NULL_TENSOR, t[1], c->shape.heads > 0 ? t[4] : NULL_TENSOR,
                c->shape.f > 0 ? t[2] : NULL_TENSOR, t[3], format);
}

/* plain: e5m2; f: 1 with sums of columns, 2 with infinities; heads: 1 + number of a history. */
static void make_quantize(struct checkop_case *c, const struct checkop_shape *s)
{
    enum checkop_kind kind = s->plain ? KIND_E5M2 : KIND_E4M3;
    add(c, gapped(matrix("rows", ROLE_OUT, s->fp8 ? kind : KIND_A, s->t, s->h), s->strided ? 16 : 0));
    int scale = add(c, vector("scale", ROLE_OUT, KIND_F32, 1));
    add(c, vector("dbias", ROLE_INOUT, KIND_W, s->h));
    add(c, gapped(matrix("in", ROLE_IN, KIND_A, s->t, s->h), s->strided ? 8 : 0));
    c->args[3].fill = s->f == 2 ? FILL_HOLES : FILL_SPREAD;
    bool has_history = s->heads > 0;
    add(c, filled(vector("history", has_history ? ROLE_INOUT : ROLE_IN, KIND_F32, 2), FILL_HISTORY,
                  has_history ? (double)(s->heads - 1) : 0));
    if (s->fp8) {
        int columns = add(c, matrix("columns", ROLE_OUT, kind, s->t, s->h));
        c->args[columns].by_columns = true;
        c->args[columns].scaled_by = c->args[0].scaled_by = 1 + scale;
    }
    c->run = run_quantize;
    c->bound_bf16_a = 0;
    c->bound_fp32 = c->bound_bf16_w = product_bound;
}

RUN(add)
{
    (void)c;
    o->add(x, t[0], t[1]);
}

static void make_add(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, vector("out", ROLE_INOUT, KIND_W, s->t));
    add(c, vector("in", ROLE_IN, KIND_W, s->t));
    c->run = run_add;
}

RUN(sum)
{
    (void)c;
    o->sum(x, t[0], t[1]);
}

static void make_sum(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, vector("total", ROLE_INOUT, KIND_F64, 1));
    add(c, s->plain ? indices("in", s->t, FILL_INDEX, 2) : vector("in", ROLE_IN, KIND_W, s->t));
    c->run = run_sum;
}

RUN(find_nonfinite)
{
    (void)c;
    o->find_nonfinite(x, t[0], t[1]);
}

static void make_find_nonfinite(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, vector("index", ROLE_OUT, KIND_I64, 1));
    add(c, filled(matrix("in", ROLE_IN, KIND_A, s->t, s->h), FILL_HOLES,
                  s->plain ? -1 : (double)(s->t * s->h / 2)));
    c->run = run_find_nonfinite;
}

RUN(linear)
{
    o->linear(x, t[0], t[1], t[2], c->shape.plain ? NULL_TENSOR : t[3]);
}

/* out in W, as logits are, where the rows are strided. */
static void make_linear(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gapped(matrix("out", ROLE_OUT, s->strided ? KIND_W : KIND_A, s->t, s->f), s->strided ? 9 : 0));
    add(c, gapped(matrix("in", ROLE_IN, KIND_A, s->t, s->h), s->strided ? 2 * s->h : 0));
    add(c, matrix("w", ROLE_IN, KIND_A, s->f, s->h));
    add(c, vector("bias", ROLE_IN, s->rounded ? KIND_A : KIND_W, s->f));
    if (s->fp8) {
        in_fp8(c, 1, KIND_E4M3, false);
        in_fp8(c, 2, KIND_E4M3, false);
    }
    c->run = run_linear;
    c->bound_fp32 = c->bound_bf16_w = product_bound;
}

RUN(linear_gelu)
{
    const tensor *in = t + (c->shape.plain ? 1 : 2);
    o->linear_gelu(x, t[0], c->shape.plain ? NULL_TENSOR : t[1], in[0], in[1], in[2]);
}

static void make_linear_gelu(struct checkop_case *c, const struct checkop_shape *s)
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
    c->run = run_linear_gelu;
    c->bound_fp32 = c->bound_bf16_w = product_bound;
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

static void make_linear_backward_input(struct checkop_case *c, const struct checkop_shape *s)
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
    c->bound_fp32 = c->bound_bf16_w = product_bound;
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

static void make_linear_backward_weight(struct checkop_case *c, const struct checkop_shape *s)
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
    c->bound_fp32 = c->bound_bf16_w = product_bound;
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

static void make_gelu_backward(struct checkop_case *c, const struct checkop_shape *s)
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

RUN(tanh)
{
    (void)c;
    o->tanh(x, t[0], t[1]);
}

static void make_tanh(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, KIND_A, s->t, s->h));
    add(c, filled(matrix("in", ROLE_IN, KIND_A, s->t, s->h), FILL_SPREAD, 1));
    c->args[0].shares = s->shared ? 1 + 1 : 0;
    c->run = run_tanh;
}

RUN(tanh_backward)
{
    (void)c;
    o->tanh_backward(x, t[0], t[1], t[2]);
}

static void forward_tanh(const struct checkop_case *c, const struct ops *o, struct exec *x, const tensor *t)
{
    (void)c;
    o->tanh(x, t[2], t[3]);
}

static void make_tanh_backward(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gradient(matrix("din", ROLE_OUT, KIND_A, s->t, s->h), 3));
    add(c, matrix("dout", ROLE_IN, KIND_A, s->t, s->h));
    c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->t, s->h));
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    c->args[0].shares = s->shared ? 1 + 1 : 0;
    c->seed = 1;
    c->run = run_tanh_backward;
    c->forward = forward_tanh;
}

RUN(dropout)
{
    o->dropout(x, t[0], t[1], t[2], c->drop);
}

static void forward_dropout(const struct checkop_case *c, const struct ops *o, struct exec *x,
                            const tensor *t)
{
    o->dropout(x, t[3], t[4], t[2], c->drop);
}

/* Its gradient is itself. */
static void make_dropout(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gradient(matrix("out", ROLE_OUT, KIND_A, s->t, s->h), 4));
    c->seed = add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    add(c, row_keys(s->t));
    c->value = add(c, matrix("out2", ROLE_IN, KIND_A, s->t, s->h));
    add(c, matrix("in2", ROLE_IN, KIND_A, s->t, s->h));
    c->args[0].shares = s->shared ? 1 + 1 : 0;
    c->run = run_dropout;
    c->forward = forward_dropout;
}

enum { N_WORDS = 37, N_POSITIONS = 512, N_TYPES = 2 };

static const double embed_eps = 1e-12;

/* The arguments behind `out` that only a backward reads; plain: they are null. */
static const tensor not_kept[3];

static const tensor *kept_of(const struct checkop_case *c, const tensor *t)
{
    return c->shape.plain ? not_kept : t + 1;
}

static void add_statistics(struct checkop_case *c, const struct checkop_shape *s, bool sum)
{
    if (s->plain) {
        return;
    }
    if (sum) {
        add(c, matrix("sum", ROLE_OUT, KIND_A, s->t, s->h));
    }
    add(c, vector("mean", ROLE_OUT, KIND_W, s->t));
    add(c, vector("rstd", ROLE_OUT, KIND_W, s->t));
}

RUN(embed)
{
    const tensor *kept = kept_of(c, t), *in = t + (c->shape.plain ? 1 : 4);
    o->embed(x, t[0], kept[0], kept[1], kept[2], in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7],
             embed_eps, in[8], c->drop);
}

/* The part of the arguments that embed and its backward have in common, from `ids` on. */
static void add_embed_inputs(struct checkop_case *c, const struct checkop_shape *s, bool small)
{
    int64_t words = s->f != 0 ? s->f : N_WORDS, positions = small ? 7 : N_POSITIONS;
    add(c, indices("ids", s->t, FILL_INDEX, words));
    add(c, indices("types", s->t, FILL_INDEX, N_TYPES));
    add(c, indices("positions", s->t, FILL_INDEX, positions));
    add(c, matrix("word", ROLE_IN, KIND_A, words, s->h));
    add(c, matrix("position", ROLE_IN, KIND_A, positions, s->h));
    add(c, matrix("type", ROLE_IN, KIND_A, N_TYPES, s->h));
    add(c, filled(vector("gamma", ROLE_IN, KIND_W, s->h), FILL_GAMMA, 0.2));
    add(c, filled(vector("beta", ROLE_IN, KIND_W, s->h), FILL_NORMAL, 0.2));
    add(c, row_keys(s->t));
}

static void make_embed(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, KIND_A, s->t, s->h));
    add_statistics(c, s, true);
    add_embed_inputs(c, s, false);
    c->run = run_embed;
}

RUN(embed_backward)
{
    o->embed_backward(x, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[9], t[11], t[12], t[13],
                      t[17], t[19], c->drop);
}

static void forward_embed(const struct checkop_case *c, const struct ops *o, struct exec *x, const tensor *t)
{
    o->embed(x, t[10], t[7], t[8], t[9], t[11], t[12], t[13], t[14], t[15], t[16], t[17], t[18], embed_eps,
             t[19], c->drop);
}

static void make_embed_backward(struct checkop_case *c, const struct checkop_shape *s)
{
    bool small = s->t < 16;
    int64_t words = s->f != 0 ? s->f : N_WORDS;
    add(c, matrix("dsum", ROLE_OUT, KIND_A, s->t, s->h));
    add(c, gradient(matrix("dword", ROLE_INOUT, KIND_W, words, s->h), 14));
    add(c, gradient(matrix("dposition", ROLE_INOUT, KIND_W, small ? 7 : N_POSITIONS, s->h), 15));
    add(c, gradient(matrix("dtype", ROLE_INOUT, KIND_W, N_TYPES, s->h), 16));
    add(c, gradient(vector("dgamma", ROLE_INOUT, KIND_W, s->h), 17));
    add(c, gradient(vector("dbeta", ROLE_INOUT, KIND_W, s->h), 18));
    c->seed = add(c, matrix("dout", ROLE_IN, KIND_A, s->t, s->h));
    c->args[0].shares = s->shared ? 1 + c->seed : 0;
    add(c, matrix("sum", ROLE_IN, KIND_A, s->t, s->h));
    add(c, vector("mean", ROLE_IN, KIND_W, s->t));
    add(c, vector("rstd", ROLE_IN, KIND_W, s->t));
    c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->t, s->h));
    add_embed_inputs(c, s, small);
    c->run = run_embed_backward;
    c->forward = forward_embed;
    c->bound_bf16_w = 4e-3; /* sums of rounded rows */
}

static const double norm_eps = 1e-5;

RUN(layernorm)
{
    const tensor *kept = kept_of(c, t), *in = t + (c->shape.plain ? 1 : 3);
    o->layernorm(x, t[0], kept[0], kept[1], in[0], in[1], in[2], norm_eps);
}

static void make_layernorm(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, KIND_A, s->t, s->h));
    add_statistics(c, s, false);
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    add(c, filled(vector("gamma", ROLE_IN, KIND_W, s->h), FILL_GAMMA, 0.2));
    add(c, vector("beta", ROLE_IN, KIND_W, s->h));
    c->run = run_layernorm;
}

RUN(layernorm_backward)
{
    (void)c;
    o->layernorm_backward(x, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]);
}

static void forward_layernorm(const struct checkop_case *c, const struct ops *o, struct exec *x,
                              const tensor *t)
{
    (void)c;
    o->layernorm(x, t[9], t[5], t[6], t[4], t[7], t[8], norm_eps);
}

static void make_layernorm_backward(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gradient(matrix("din", ROLE_OUT, KIND_A, s->t, s->h), 4));
    add(c, gradient(vector("dgamma", ROLE_INOUT, KIND_W, s->h), 7));
    add(c, gradient(vector("dbeta", ROLE_INOUT, KIND_W, s->h), 8));
    c->seed = add(c, matrix("dout", ROLE_IN, KIND_A, s->t, s->h));
    c->args[0].shares = s->shared ? 1 + c->seed : 0;
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    add(c, vector("mean", ROLE_IN, KIND_W, s->t));
    add(c, vector("rstd", ROLE_IN, KIND_W, s->t));
    add(c, filled(vector("gamma", ROLE_IN, KIND_W, s->h), FILL_GAMMA, 0.2));
    add(c, vector("beta", ROLE_IN, KIND_W, s->h));
    c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->t, s->h));
    c->run = run_layernorm_backward;
    c->bound_fp32 = product_bound; /* three terms of few columns may nearly cancel */
    c->forward = forward_layernorm;
}

RUN(bias_dropout_add_layernorm)
{
    const tensor *kept = kept_of(c, t), *in = t + (c->shape.plain ? 1 : 4);
    o->bias_dropout_add_layernorm(x, t[0], kept[0], kept[1], kept[2], in[0], in[1], in[2], in[3], in[4],
                                  norm_eps, last(c, t), c->drop);
}

static void make_bias_dropout_add_layernorm(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, KIND_A, s->t, s->h));
    add_statistics(c, s, true);
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    add(c, vector("bias", ROLE_IN, KIND_W, s->h));
    add(c, matrix("residual", ROLE_IN, KIND_A, s->t, s->h));
    add(c, filled(vector("gamma", ROLE_IN, KIND_W, s->h), FILL_GAMMA, 0.2));
    add(c, vector("beta", ROLE_IN, KIND_W, s->h));
    add(c, row_keys(s->t));
    c->run = run_bias_dropout_add_layernorm;
}

RUN(bias_dropout_add_layernorm_backward)
{
    o->bias_dropout_add_layernorm_backward(x, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[9],
                                           last(c, t), c->drop, c->shape.adds);
}

static void forward_bias_dropout(const struct checkop_case *c, const struct ops *o, struct exec *x,
                                 const tensor *t)
{
    o->bias_dropout_add_layernorm(x, t[14], t[6], t[7], t[8], t[11], t[12], t[13], t[9], t[10], norm_eps,
                                  last(c, t), c->drop);
}

static void make_bias_dropout_add_layernorm_backward(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gradient(matrix("dresidual", s->adds ? ROLE_INOUT : ROLE_OUT, KIND_A, s->t, s->h), 13));
    add(c, gradient(matrix("din", ROLE_OUT, KIND_A, s->t, s->h), 11));
    add(c, gradient(vector("dbias", ROLE_INOUT, KIND_W, s->h), 12));
    add(c, gradient(vector("dgamma", ROLE_INOUT, KIND_W, s->h), 9));
    add(c, gradient(vector("dbeta", ROLE_INOUT, KIND_W, s->h), 10));
    c->seed = add(c, matrix("dout", ROLE_IN, KIND_A, s->t, s->h));
    c->args[0].shares = s->shared ? 1 + c->seed : 0;
    add(c, matrix("sum", ROLE_IN, KIND_A, s->t, s->h));
    add(c, vector("mean", ROLE_IN, KIND_W, s->t));
    add(c, vector("rstd", ROLE_IN, KIND_W, s->t));
    add(c, filled(vector("gamma", ROLE_IN, KIND_W, s->h), FILL_GAMMA, 0.2));
    add(c, vector("beta", ROLE_IN, KIND_W, s->h));
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    add(c, vector("bias", ROLE_IN, KIND_W, s->h));
    add(c, matrix("residual", ROLE_IN, KIND_A, s->t, s->h));
    c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->t, s->h));
    add(c, row_keys(s->t));
    c->run = run_bias_dropout_add_layernorm_backward;
    c->forward = forward_bias_dropout;
}

static int64_t total(const int64_t *lens, int n, int64_t *max)
{
    int64_t sum = 0;
    *max = 0;
    for (int i = 0; i < n; i++) {
        sum += lens[i];
        *max = lens[i] > *max ? lens[i] : *max;
    }
    return sum;
}

/* Its tensors are the last four arguments, and the one before where there are bits. */
static struct attention attention_of(const struct checkop_case *c, const tensor *t)
{
    const tensor *p = t + c->n_args - 4;
    struct attention a = {.cu_seqlens_q = p[0], .cu_seqlens_kv = p[1], .row_keys = p[3], .dropout = c->drop};
    total(c->lens_q, c->n_sequences, &a.max_seqlen_q);
    total(c->lens_kv, c->n_sequences, &a.max_seqlen_kv);
    for (int i = 0; i < c->n_sequences; i++) {
        a.n_pairs += (double)c->lens_q[i] * (double)c->lens_kv[i];
    }
    a.scale = 1.0 / sqrt((double)(c->shape.h / c->shape.heads));
    a.causal = c->shape.causal;
    a.alibi_slopes = c->shape.alibi ? p[2] : NULL_TENSOR;
    a.bits = c->shape.bits ? p[-1] : NULL_TENSOR;
    return a;
}

static void add_attention_inputs(struct checkop_case *c, const struct checkop_shape *s, int64_t rows,
                                 enum checkop_role of_bits)
{
    int64_t max;
    total(c->lens_kv, c->n_sequences, &max);
    if (s->bits) {
        add(c, matrix("bits", of_bits, KIND_I32, attention_bits_rows(s->heads, max),
                      attention_bits_cols(rows, c->n_sequences)));
    }
    add(c, indices("cu_seqlens_q", c->n_sequences + 1, FILL_BOUNDS_Q, 0));
    add(c, indices("cu_seqlens_kv", c->n_sequences + 1, FILL_BOUNDS_KV, 0));
    add(c, filled(vector("slopes", ROLE_IN, KIND_W, s->heads), FILL_SLOPES, 0));
    add(c, row_keys(rows));
}

static struct checkop_arg heads(const char *name, enum checkop_role role, const struct checkop_shape *s,
                                int64_t rows)
{
    struct checkop_arg a = {
        .name = name, .role = role, .n_dims = 3, .dims = {rows, s->heads, s->h / s->heads}};
    a.amount = 1;
    a.gap = s->strided ? 2 * s->h + s->f : 0; /* a view of one product, or of nothing known */
    return a;
}

RUN(attention)
{
    o->attention(x, t[0], t[1], t[2], t[3], t[4], attention_of(c, t));
}

static void make_attention(struct checkop_case *c, const struct checkop_shape *s)
{
    int64_t max, rows_q = total(c->lens_q, c->n_sequences, &max),
                 rows_kv = total(c->lens_kv, c->n_sequences, &max);
    rows_q += s->rest, rows_kv += s->rest;
    add(c, heads("out", ROLE_OUT, s, rows_q));
    c->args[0].gap = 0;
    add(c, matrix("lse", ROLE_OUT, KIND_W, rows_q, s->heads));
    add(c, heads("q", ROLE_IN, s, rows_q));
    add(c, heads("k", ROLE_IN, s, rows_kv));
    add(c, heads("v", ROLE_IN, s, rows_kv));
    add_attention_inputs(c, s, rows_q, ROLE_SCRATCH);
    c->run = run_attention;
    c->bound_fp32 = c->bound_bf16_w = 4e-6; /* exponentials of scores that were rounded to fp32 */
}

RUN(attention_backward)
{
    o->attention_backward(x, t[0], t[1], t[2], c->shape.plain ? NULL_TENSOR : t[3], t[4], t[5], t[6], t[7],
                          t[8], t[9], attention_of(c, t));
}

static void forward_attention(const struct checkop_case *c, const struct ops *o, struct exec *x,
                              const tensor *t)
{
    o->attention(x, t[5], t[6], t[7], t[8], t[9], attention_of(c, t));
}

static void make_attention_backward(struct checkop_case *c, const struct checkop_shape *s)
{
    int64_t max, rows_q = total(c->lens_q, c->n_sequences, &max),
                 rows_kv = total(c->lens_kv, c->n_sequences, &max);
    rows_q += s->rest, rows_kv += s->rest;
    add(c, gradient(heads("dq", ROLE_OUT, s, rows_q), 7));
    add(c, gradient(heads("dk", ROLE_OUT, s, rows_kv), 8));
    add(c, gradient(heads("dv", ROLE_OUT, s, rows_kv), 9));
    add(c, vector("dbias", ROLE_INOUT, KIND_W, 3 * s->h));
    c->seed = add(c, heads("dout", ROLE_IN, s, rows_q));
    c->args[c->seed].gap = 0;
    c->value = add(c, heads("out", ROLE_IN, s, rows_q));
    c->args[c->value].gap = 0;
    add(c, matrix("lse", ROLE_IN, KIND_W, rows_q, s->heads));
    add(c, heads("q", ROLE_IN, s, rows_q));
    add(c, heads("k", ROLE_IN, s, rows_kv));
    add(c, heads("v", ROLE_IN, s, rows_kv));
    add_attention_inputs(c, s, rows_q, ROLE_IN);
    c->run = run_attention_backward;
    c->forward = forward_attention;
    c->bound_fp32 = 1e-5; /* lse is rounded to fp32, and enters an exponential */
    c->bound_bf16_a = c->bound_bf16_w =
        6e-3; /* probabilities and gradients of scores are rounded too; the terms cancel */
}

RUN(gather_rows)
{
    (void)c;
    o->gather_rows(x, t[0], t[1], t[2]);
}

static void make_gather_rows(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, KIND_A, s->f, s->h));
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    add(c, indices("rows", s->f, FILL_INDEX, s->t));
    c->run = run_gather_rows;
}

RUN(scatter_add_rows)
{
    (void)c;
    o->scatter_add_rows(x, t[0], t[1], t[2]);
}

static void forward_gather(const struct checkop_case *c, const struct ops *o, struct exec *x, const tensor *t)
{
    (void)c;
    o->gather_rows(x, t[4], t[3], t[2]);
}

static void make_scatter_add_rows(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gradient(matrix("din", ROLE_INOUT, KIND_A, s->t, s->h), 3));
    c->seed = add(c, matrix("dout", ROLE_IN, KIND_A, s->f, s->h));
    add(c, indices("rows", s->f, FILL_INDEX, s->t));
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->f, s->h));
    c->run = run_scatter_add_rows;
    c->forward = forward_gather;
    c->bound_bf16_a = 1e-2; /* rows that occur several times are rounded each time */
}

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

static void make_cross_entropy(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, vector("loss", ROLE_OUT, KIND_W, s->t));
    add(c, vector("correct", ROLE_OUT, KIND_I32, s->t));
    add(c, gradient(
               matrix("dlogits", s->plain ? ROLE_SCRATCH : ROLE_OUT, s->shared ? KIND_W : KIND_A, s->t, s->h),
               3));
    add(c, filled(matrix("logits", ROLE_IN, KIND_W, s->t, s->h), FILL_NORMAL, 3));
    c->args[2].shares = s->shared ? 1 + 3 : 0;
    add(c, indices("labels", s->t, FILL_LABEL, s->f));
    c->value = add(c, vector("loss2", ROLE_IN, KIND_W, s->t));
    add(c, vector("correct2", ROLE_IN, KIND_I32, s->t));
    add(c, filled(vector("scale", ROLE_IN, KIND_F64, 1), FILL_CONSTANT, loss_scale));
    c->seed_value = loss_scale;
    c->run = run_cross_entropy;
    c->forward = forward_cross_entropy;
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
static void make_span_cross_entropy(struct checkop_case *c, const struct checkop_shape *s)
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
static void make_pointwise(struct checkop_case *c, const struct checkop_shape *s)
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

#define FAMILY(name)                                                                                         \
    {                                                                                                        \
#        name, offsetof(struct ops, name), make_##name                                                       \
    }

/* In checkop_optim.c. */
#define OPTIM_FAMILY(name)                                                                                   \
    {                                                                                                        \
#        name, offsetof(struct ops, name), checkop_make_##name                                               \
    }

static const struct family {
    const char *op;
    size_t slot;
    void (*make)(struct checkop_case *c, const struct checkop_shape *s);
} families[] = {
    FAMILY(fill),
    FAMILY(cast),
    FAMILY(quantize),
    FAMILY(add),
    FAMILY(sum),
    FAMILY(find_nonfinite),
    FAMILY(linear),
    FAMILY(linear_gelu),
    FAMILY(linear_backward_input),
    FAMILY(linear_backward_weight),
    FAMILY(gelu_backward),
    FAMILY(tanh),
    FAMILY(tanh_backward),
    FAMILY(dropout),
    FAMILY(embed),
    FAMILY(embed_backward),
    FAMILY(layernorm),
    FAMILY(layernorm_backward),
    FAMILY(bias_dropout_add_layernorm),
    FAMILY(bias_dropout_add_layernorm_backward),
    FAMILY(attention),
    FAMILY(attention_backward),
    FAMILY(gather_rows),
    FAMILY(scatter_add_rows),
    FAMILY(cross_entropy),
    FAMILY(span_cross_entropy),
    FAMILY(pointwise),
    OPTIM_FAMILY(clear),
    OPTIM_FAMILY(squares),
    OPTIM_FAMILY(norm_of),
    OPTIM_FAMILY(lamb_direction),
    OPTIM_FAMILY(lamb_apply),
    OPTIM_FAMILY(lans_direction),
    OPTIM_FAMILY(lans_apply),
    OPTIM_FAMILY(adamw),
};

static void set_lengths(struct checkop_case *c, const struct checkop_shape *s)
{
    c->n_sequences = s->lens_q == NULL ? 1 : 0;
    c->lens_q[0] = c->lens_kv[0] = s->t;
    for (const int32_t *l = s->lens_q; l != NULL && *l >= 0; l++) {
        EXPECT(c->n_sequences < CHECKOP_MAX_SEQUENCES, "too many sequences");
        c->lens_q[c->n_sequences] = *l;
        c->lens_kv[c->n_sequences] = s->lens_kv == NULL ? *l : s->lens_kv[c->n_sequences];
        c->n_sequences++;
    }
}

void checkop_make(struct checkop_case *c, const struct checkop_shape *s)
{
    *c = (struct checkop_case){.shape = *s, .value = -1, .seed = -1, .drop = {s->p, 5}};
    c->bound_fp32 = 1e-6;
    c->bound_bf16_a = 4e-3; /* half a unit in the last of eight places, and as much again */
    c->bound_bf16_w = 1e-6;
    snprintf(c->title, sizeof c->title, "%s t=%lld h=%lld f=%lld%s%s%s%s%s%s%s%s%s%s%s", s->op,
             (long long)s->t, (long long)s->h, (long long)s->f, s->fp8 ? " fp8" : "",
             s->rounded ? " rounded" : "", s->p > 0 ? " dropout" : "", s->causal ? " causal" : "",
             s->alibi ? " alibi" : "", s->strided ? " strided" : "", s->plain ? " plain" : "",
             s->shared ? " in place" : "", s->adds ? " adds" : "", s->rest > 0 ? " rest" : "",
             s->bits ? " bits" : "");
    set_lengths(c, s);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (strcmp(families[i].op, s->op) == 0) {
            c->slot = families[i].slot;
            families[i].make(c, s);
            return;
        }
    }
    EXPECT(false, "no op is called %s", s->op);
}
