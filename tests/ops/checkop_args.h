/* checkop_args: the words in which checkop_*.c describe the arguments of an op, and the list of ops. */
#ifndef KILN_TESTS_CHECKOP_ARGS_H
#define KILN_TESTS_CHECKOP_ARGS_H

#include "checkop_cases.h"
#include "test.h"

/* fp32 sums over a whole inner dimension. */
#define PRODUCT_BOUND 2e-6

#define RUN(name)                                                                                            \
    static void run_##name(const struct checkop_case *c, const struct ops *o, struct exec *x, const tensor *t)

/* Appends an argument and returns its index. */
static inline int add(struct checkop_case *c, struct checkop_arg a)
{
    EXPECT(c->n_args < CHECKOP_MAX_ARGS, "%s has too many arguments", c->title);
    c->args[c->n_args] = a;
    return c->n_args++;
}

static inline struct checkop_arg vector(const char *name, enum checkop_role role, enum checkop_kind kind,
                                        int64_t n)
{
    return (struct checkop_arg){
        .name = name, .role = role, .kind = kind, .n_dims = 1, .dims = {n}, .amount = 1};
}

static inline struct checkop_arg matrix(const char *name, enum checkop_role role, enum checkop_kind kind,
                                        int64_t rows, int64_t cols)
{
    return (struct checkop_arg){
        .name = name, .role = role, .kind = kind, .n_dims = 2, .dims = {rows, cols}, .amount = 1};
}

static inline struct checkop_arg filled(struct checkop_arg a, enum checkop_fill fill, double amount)
{
    a.fill = fill;
    a.amount = amount;
    return a;
}

static inline struct checkop_arg gradient(struct checkop_arg a, int of)
{
    a.gradient_of = 1 + of;
    return a;
}

static inline struct checkop_arg gapped(struct checkop_arg a, int64_t gap)
{
    a.gap = gap;
    return a;
}

static inline struct checkop_arg indices(const char *name, int64_t n, enum checkop_fill fill, int64_t limit)
{
    return filled(vector(name, ROLE_IN, KIND_I32, n), fill, (double)limit);
}

/* Makes an argument one of fp8, by columns or rows; its scale is put behind all others. */
static inline void in_fp8(struct checkop_case *c, int arg, enum checkop_kind kind, bool by_columns)
{
    c->args[arg].kind = kind;
    c->args[arg].by_columns = by_columns;
    c->args[arg].scaled_by = 1 + add(c, filled(vector("scale", ROLE_IN, KIND_F32, 1), FILL_CONSTANT,
                                               kind == KIND_E4M3 ? 0x1p-6 : 0x1p-9));
}

/* Makes a matrix one of int8; the scales of its rows are put behind all others. */
static inline void in_int8(struct checkop_case *c, int arg)
{
    c->args[arg].kind = KIND_I8;
    c->args[arg].scaled_by =
        1 + add(c, filled(vector("scales", ROLE_IN, KIND_F32, c->args[arg].dims[0]), FILL_GAMMA, 0.2));
    c->args[arg].amount = 60;
}

static inline struct checkop_arg row_keys(int64_t t)
{
    return filled(matrix("row_keys", ROLE_IN, KIND_I32, t, 2), FILL_ROW_KEYS, 0);
}

/* Of a residual stream. */
static inline enum checkop_kind stream_kind(const struct checkop_shape *s)
{
    return s->stream ? KIND_W : KIND_A;
}

static inline int64_t total(const int64_t *lens, int n, int64_t *max)
{
    int64_t sum = 0;
    *max = 0;
    for (int i = 0; i < n; i++) {
        sum += lens[i];
        *max = lens[i] > *max ? lens[i] : *max;
    }
    return sum;
}

/* A line for each file. */
/* clang-format off */
#define CHECKOP_OPS(OP) \
    OP(fill) OP(cast) OP(quantize) OP(add) OP(sum) OP(find_nonfinite) OP(dropout) OP(gather_rows) \
    OP(scatter_add_rows) OP(linear) OP(linear_gelu) OP(linear_backward_input) OP(linear_backward_weight) \
    OP(gelu_tanh) OP(gelu_tanh_backward) OP(gated) OP(gated_backward) OP(rotate) OP(residual_add) \
    OP(gelu_backward) OP(tanh) OP(tanh_backward) OP(relu) OP(relu_backward) \
    OP(embed) OP(embed_backward) OP(layernorm) OP(layernorm_backward) \
    OP(bias_dropout_add_layernorm) OP(bias_dropout_add_layernorm_backward) \
    OP(attention) OP(attention_backward) OP(append_rows) OP(attention_cached) \
    OP(gather_slice) OP(scatter_add_slice) \
    OP(cross_entropy) OP(slice_maxima) OP(slice_sums) OP(slice_cross_entropy) OP(span_cross_entropy) \
    OP(pointwise) OP(choose_tokens) \
    OP(clear) OP(squares) OP(zeros) OP(norm_of) OP(lamb_direction) OP(lamb_apply) OP(lans_direction) \
    OP(lans_apply) \
    OP(adamw) OP(nesterov) OP(unit) OP(matrix_polynomial) OP(descend)
/* clang-format on */

/* Fills a case of the op from a row of the table of shapes. */
#define CHECKOP_DECLARE(name) void checkop_make_##name(struct checkop_case *c, const struct checkop_shape *s);

CHECKOP_OPS(CHECKOP_DECLARE)

#endif
