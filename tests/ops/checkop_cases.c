/* The table of ops, and those that copy, add and convert; the others are in checkop_*.c. */
#include "checkop_args.h"

#include <stddef.h>

RUN(fill)
{
    (void)c;
    o->fill(x, t[0], -2.5);
}

void checkop_make_fill(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gapped(matrix("out", ROLE_OUT, KIND_A, s->t, s->h), s->strided ? 5 : 0));
    c->run = run_fill;
}

RUN(cast)
{
    (void)c;
    o->cast(x, t[0], t[1]);
}

void checkop_make_cast(struct checkop_case *c, const struct checkop_shape *s)
{
    enum checkop_kind to = s->plain ? KIND_W : KIND_A, from = s->plain ? KIND_A : KIND_W;
    add(c, gapped(matrix("out", ROLE_OUT, to, s->t, s->h), s->strided ? 3 : 0));
    add(c, gapped(matrix("in", ROLE_IN, from, s->t, s->h), s->strided ? 7 : 0));
    c->run = run_cast;
}

RUN(quantize)
{
    if (c->shape.int8) {
        o->quantize(x, t[0], NULL_TENSOR, t[1], NULL_TENSOR, NULL_TENSOR, t[2], DTYPE_I8);
        return;
    }
    enum dtype format = c->shape.plain ? DTYPE_E5M2 : DTYPE_E4M3;
    o->quantize(x, t[0], c->shape.fp8 ? t[5] : NULL_TENSOR, t[1], c->shape.heads > 0 ? t[4] : NULL_TENSOR,
                c->shape.f > 0 ? t[2] : NULL_TENSOR, t[3], format);
}

/* plain: e5m2; f: 1 with sums of columns, 2 with infinities; heads: 1 + number of a history. */
void checkop_make_quantize(struct checkop_case *c, const struct checkop_shape *s)
{
    enum checkop_kind kind = s->plain ? KIND_E5M2 : KIND_E4M3;
    if (s->int8) {
        add(c, matrix("rows", ROLE_OUT, KIND_I8, s->t, s->h));
        c->args[0].scaled_by = 1 + add(c, vector("scales", ROLE_OUT, KIND_F32, s->t));
        add(c, filled(matrix("in", ROLE_IN, KIND_A, s->t, s->h), s->f == 2 ? FILL_HOLES : FILL_SPREAD, 1));
        c->run = run_quantize;
        return;
    }
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
    c->bound_fp32 = c->bound_bf16_w = PRODUCT_BOUND;
}

RUN(add)
{
    (void)c;
    o->add(x, t[0], t[1]);
}

void checkop_make_add(struct checkop_case *c, const struct checkop_shape *s)
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

void checkop_make_sum(struct checkop_case *c, const struct checkop_shape *s)
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

void checkop_make_find_nonfinite(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, vector("index", ROLE_OUT, KIND_I64, 1));
    int64_t middle = s->t * s->h / 2;
    add(c, filled(matrix("in", ROLE_IN, KIND_A, s->t, s->h), FILL_HOLES, s->plain ? -1 : (double)middle));
    c->run = run_find_nonfinite;
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
void checkop_make_dropout(struct checkop_case *c, const struct checkop_shape *s)
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

RUN(gather_rows)
{
    (void)c;
    o->gather_rows(x, t[0], t[1], t[2]);
    o->gather_rows(x, t[3], t[4], t[2]);
}

/* Of activations, and of their dropout addresses. */
void checkop_make_gather_rows(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, KIND_A, s->f, s->h));
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    add(c, indices("rows", s->f, FILL_INDEX, s->t));
    add(c, matrix("keys", ROLE_OUT, KIND_I32, s->f, 2));
    add(c, row_keys(s->t));
    if (s->int8) {
        in_int8(c, 1);
    }
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

void checkop_make_scatter_add_rows(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, gradient(matrix("din", ROLE_INOUT, s->plain ? KIND_W : KIND_A, s->t, s->h), 3));
    c->seed = add(c, matrix("dout", ROLE_IN, KIND_A, s->f, s->h));
    add(c, indices("rows", s->f, FILL_INDEX, s->t));
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    c->value = add(c, matrix("out", ROLE_IN, KIND_A, s->f, s->h));
    c->run = run_scatter_add_rows;
    c->forward = forward_gather;
    c->bound_bf16_a = 1e-2; /* rows that occur several times are rounded each time */
}

/* Rows of the whole table of which a slice is here. */
static int64_t rows_of_all(const struct checkop_case *c)
{
    return c->shape.first + 2 * c->shape.t;
}

RUN(gather_slice)
{
    o->gather_slice(x, t[0], t[1], t[2], c->shape.first, rows_of_all(c));
}

void checkop_make_gather_slice(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, KIND_A, s->f, s->h));
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    add(c, indices("rows", s->f, FILL_INDEX, rows_of_all(c)));
    if (s->int8) {
        in_int8(c, 1);
    }
    c->run = run_gather_slice;
}

RUN(scatter_add_slice)
{
    o->scatter_add_slice(x, t[0], t[1], t[2], c->shape.first, rows_of_all(c));
}

static void forward_gather_slice(const struct checkop_case *c, const struct ops *o, struct exec *x,
                                 const tensor *t)
{
    o->gather_slice(x, t[4], t[3], t[2], c->shape.first, rows_of_all(c));
}

void checkop_make_scatter_add_slice(struct checkop_case *c, const struct checkop_shape *s)
{
    checkop_make_scatter_add_rows(c, s);
    c->args[2] = indices("rows", s->f, FILL_INDEX, rows_of_all(c));
    c->run = run_scatter_add_slice;
    c->forward = forward_gather_slice;
}

#define FAMILY(name) {#name, offsetof(struct ops, name), checkop_make_##name},

static const struct family {
    const char *op;
    size_t slot;
    void (*make)(struct checkop_case *c, const struct checkop_shape *s);
} families[] = {CHECKOP_OPS(FAMILY)};

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
    char first[32], window[32];
    *c = (struct checkop_case){.shape = *s, .value = -1, .seed = -1, .drop = {s->p, 5}};
    c->bound_fp32 = 1e-6;
    c->bound_bf16_a = 4e-3; /* half a unit in the last of eight places, and as much again */
    c->bound_bf16_w = 1e-6;
    snprintf(first, sizeof first, " first=%lld", (long long)s->first);
    snprintf(window, sizeof window, " window=%lld", (long long)s->window);
    snprintf(c->title, sizeof c->title, "%s t=%lld h=%lld f=%lld%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s", s->op,
             (long long)s->t, (long long)s->h, (long long)s->f, s->first > 0 ? first : "",
             s->window > 0 ? window : "",
             s->fp8         ? " fp8"
             : s->int8_rows ? " int8 by int8"
             : s->int8      ? " int8"
                            : "",
             s->rounded ? " rounded" : "", s->p > 0 ? " dropout" : "", s->causal ? " causal" : "",
             s->alibi ? " alibi" : "", s->strided ? " strided" : "", s->plain ? " plain" : "",
             s->shared ? " in place" : "", s->adds ? " adds" : "", s->rest > 0 ? " rest" : "",
             s->bits ? " bits" : "", s->stream ? " fp32 stream" : "", s->rms ? " rms" : "",
             s->unshifted ? " without beta" : "");
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
