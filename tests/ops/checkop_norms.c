/* Embeddings and layer normalisation. */
#include "checkop_args.h"

static tensor last(const struct checkop_case *c, const tensor *t)
{
    return t[c->n_args - 1];
}

enum { N_WORDS = 37, N_POSITIONS = 512, N_TYPES = 2 };

static const double embed_eps = 1e-12;

/* The arguments behind `out` that only a backward reads; plain: they are null. */
static const tensor not_kept[3];

static const tensor *kept_of(const struct checkop_case *c, const tensor *t)
{
    return c->shape.plain ? not_kept : t + 1;
}

/* Rows of a norm: of heads, if there are heads. */
static int64_t norm_rows(const struct checkop_shape *s)
{
    return s->heads > 0 ? s->t * s->heads : s->t;
}

static int64_t norm_cols(const struct checkop_shape *s)
{
    return s->heads > 0 ? s->h / s->heads : s->h;
}

/* [T, H], or heads [T, N, D]; strided: columns of a product. */
static struct checkop_arg rows(const char *name, enum checkop_role role, enum checkop_kind kind,
                               const struct checkop_shape *s)
{
    struct checkop_arg a = gapped(matrix(name, role, kind, s->t, s->h), s->strided ? s->h + 8 : 0);
    if (s->heads > 0) {
        a.n_dims = 3;
        a.dims[1] = s->heads, a.dims[2] = norm_cols(s);
    }
    return a;
}

static void add_statistics(struct checkop_case *c, const struct checkop_shape *s, bool sum)
{
    if (s->plain) {
        return;
    }
    if (sum) {
        add(c, matrix("sum", ROLE_OUT, stream_kind(s), s->t, s->h));
    }
    add(c, vector("mean", ROLE_OUT, KIND_W, norm_rows(s)));
    add(c, vector("rstd", ROLE_OUT, KIND_W, norm_rows(s)));
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

void checkop_make_embed(struct checkop_case *c, const struct checkop_shape *s)
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

void checkop_make_embed_backward(struct checkop_case *c, const struct checkop_shape *s)
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

/* A mean or a bias, and its gradient: the RMS norm of a layer without biases has none. */
static tensor unless_rms(const struct checkop_case *c, tensor t)
{
    return c->shape.rms ? NULL_TENSOR : t;
}

/* A beta, or its gradient. */
static tensor beta_of(const struct checkop_case *c, tensor t)
{
    return c->shape.rms || c->shape.unshifted ? NULL_TENSOR : t;
}

RUN(layernorm)
{
    const tensor *kept = kept_of(c, t), *in = t + (c->shape.plain ? 1 : 3);
    o->layernorm(x, t[0], unless_rms(c, kept[0]), kept[1], in[0], in[1], beta_of(c, in[2]), norm_eps);
}

void checkop_make_layernorm(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, rows("out", ROLE_OUT, KIND_A, s));
    add_statistics(c, s, false);
    int in = add(c, rows("in", ROLE_IN, stream_kind(s), s));
    c->args[0].shares = s->shared ? 1 + in : 0;
    add(c, filled(vector("gamma", ROLE_IN, KIND_W, norm_cols(s)), FILL_GAMMA, 0.2));
    add(c, vector("beta", ROLE_IN, KIND_W, norm_cols(s)));
    c->run = run_layernorm;
}

RUN(layernorm_backward)
{
    o->layernorm_backward(x, t[0], t[1], beta_of(c, t[2]), t[3], t[4], unless_rms(c, t[5]), t[6], t[7]);
}

static void forward_layernorm(const struct checkop_case *c, const struct ops *o, struct exec *x,
                              const tensor *t)
{
    o->layernorm(x, t[9], unless_rms(c, t[5]), t[6], t[4], t[7], beta_of(c, t[8]), norm_eps);
}

void checkop_make_layernorm_backward(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gradient(rows("din", ROLE_OUT, KIND_A, s), 4));
    add(c, gradient(vector("dgamma", ROLE_INOUT, KIND_W, norm_cols(s)), 7));
    add(c, gradient(vector("dbeta", ROLE_INOUT, KIND_W, norm_cols(s)), 8));
    c->seed = add(c, rows("dout", ROLE_IN, KIND_A, s));
    c->args[0].shares = s->shared ? 1 + c->seed : 0;
    add(c, rows("in", ROLE_IN, stream_kind(s), s));
    add(c, vector("mean", ROLE_IN, KIND_W, norm_rows(s)));
    add(c, vector("rstd", ROLE_IN, KIND_W, norm_rows(s)));
    add(c, filled(vector("gamma", ROLE_IN, KIND_W, norm_cols(s)), FILL_GAMMA, 0.2));
    add(c, vector("beta", ROLE_IN, KIND_W, norm_cols(s)));
    c->value = add(c, rows("out", ROLE_IN, KIND_A, s));
    c->run = run_layernorm_backward;
    c->bound_fp32 = PRODUCT_BOUND; /* three terms of few columns may nearly cancel */
    c->forward = forward_layernorm;
}

RUN(bias_dropout_add_layernorm)
{
    const tensor *kept = kept_of(c, t), *in = t + (c->shape.plain ? 1 : 4);
    o->bias_dropout_add_layernorm(x, t[0], kept[0], unless_rms(c, kept[1]), kept[2], in[0],
                                  unless_rms(c, in[1]), in[2], in[3], beta_of(c, in[4]), norm_eps, last(c, t),
                                  c->drop);
}

void checkop_make_bias_dropout_add_layernorm(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, KIND_A, s->t, s->h));
    add_statistics(c, s, true);
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    add(c, vector("bias", ROLE_IN, KIND_W, s->h));
    add(c, matrix("residual", ROLE_IN, stream_kind(s), s->t, s->h));
    add(c, filled(vector("gamma", ROLE_IN, KIND_W, s->h), FILL_GAMMA, 0.2));
    add(c, vector("beta", ROLE_IN, KIND_W, s->h));
    add(c, row_keys(s->t));
    c->run = run_bias_dropout_add_layernorm;
}

RUN(bias_dropout_add_layernorm_backward)
{
    o->bias_dropout_add_layernorm_backward(x, t[0], t[1], unless_rms(c, t[2]), t[3], beta_of(c, t[4]), t[5],
                                           t[6], unless_rms(c, t[7]), t[8], t[9], last(c, t), c->drop,
                                           c->shape.adds);
}

static void forward_bias_dropout(const struct checkop_case *c, const struct ops *o, struct exec *x,
                                 const tensor *t)
{
    o->bias_dropout_add_layernorm(x, t[14], t[6], unless_rms(c, t[7]), t[8], t[11], unless_rms(c, t[12]),
                                  t[13], t[9], beta_of(c, t[10]), norm_eps, last(c, t), c->drop);
}

void checkop_make_bias_dropout_add_layernorm_backward(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gradient(matrix("dresidual", s->adds ? ROLE_INOUT : ROLE_OUT, stream_kind(s), s->t, s->h), 13));
    add(c, gradient(matrix("din", ROLE_OUT, KIND_A, s->t, s->h), 11));
    add(c, gradient(vector("dbias", ROLE_INOUT, KIND_W, s->h), 12));
    add(c, gradient(vector("dgamma", ROLE_INOUT, KIND_W, s->h), 9));
    add(c, gradient(vector("dbeta", ROLE_INOUT, KIND_W, s->h), 10));
    c->seed = add(c, matrix("dout", ROLE_IN, KIND_A, s->t, s->h));
    c->args[0].shares = s->shared ? 1 + c->seed : 0;
    add(c, matrix("sum", ROLE_IN, stream_kind(s), s->t, s->h));
    add(c, vector("mean", ROLE_IN, KIND_W, s->t));
    add(c, vector("rstd", ROLE_IN, KIND_W, s->t));
    add(c, filled(vector("gamma", ROLE_IN, KIND_W, s->h), FILL_GAMMA, 0.2));
    add(c, vector("beta", ROLE_IN, KIND_W, s->h));
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    add(c, vector("bias", ROLE_IN, KIND_W, s->h));
    add(c, matrix("residual", ROLE_IN, stream_kind(s), s->t, s->h));
    c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->t, s->h));
    add(c, row_keys(s->t));
    c->run = run_bias_dropout_add_layernorm_backward;
    c->forward = forward_bias_dropout;
}
