/* Elementwise activations and their gradients. */
#include "ops/cpu/kernel.h"
#include "ops/cpu/norm_row.h"
#include "ops/cpu/row_runs.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/vmath.h"

enum { ELEMENTS_PER_BLOCK = 1024, BLOCKS_PER_ITEM = 8 };

/* Computes one block of out from a and, if the op has a second input, b. */
typedef void block_function(float *out, const float *a, const float *b, int64_t n);

struct activation_call {
    tensor out, a, b;
    int64_t n;
    block_function *apply;
};

static void tanh_block(float *out, const float *a, const float *b, int64_t n)
{
    (void)b;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = vmath_tanh(a[i]);
    }
}

static void tanh_backward_block(float *out, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] * (1.0f - b[i] * b[i]);
    }
}

static void relu_block(float *out, const float *a, const float *b, int64_t n)
{
    (void)b;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] > 0.0f ? a[i] : 0.0f;
    }
}

static void relu_backward_block(float *out, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = b[i] > 0.0f ? a[i] : 0.0f;
    }
}

static void gelu_tanh_block(float *out, const float *a, const float *b, int64_t n)
{
    (void)b;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = 0.5f * a[i] * (1.0f + vmath_tanh(vmath_gelu_tanh_argument(a[i])));
    }
}

static void gelu_tanh_backward_block(float *out, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] * vmath_gelu_tanh_slope(b[i], vmath_tanh(vmath_gelu_tanh_argument(b[i])));
    }
}

static void add_block(float *out, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] + b[i];
    }
}

/* The tensor as one long row. */
static tensor flat(tensor t)
{
    return tensor_1d(t.data, t.dtype, tensor_count(t));
}

static void activation_item(const void *context, int64_t item, void *lane)
{
    const struct activation_call *c = context;
    float *buffer = lane;
    int64_t end = kernel_min(c->n, (item + 1) * BLOCKS_PER_ITEM * ELEMENTS_PER_BLOCK);
    for (int64_t i = item * BLOCKS_PER_ITEM * ELEMENTS_PER_BLOCK; i < end; i += ELEMENTS_PER_BLOCK) {
        int64_t n = kernel_min(ELEMENTS_PER_BLOCK, end - i);
        const float *a = rows_load(c->a, 0, i, n, buffer);
        const float *b = tensor_is_null(c->b) ? NULL : rows_load(c->b, 0, i, n, buffer + ELEMENTS_PER_BLOCK);
        float *out = rows_target(c->out, 0, i, buffer);
        c->apply(out, a, b, n);
        rows_store(c->out, 0, i, n, out);
    }
}

/* Runs `apply` on the blocks of tensors that were accepted. */
static void run_accepted(struct exec *x, const char *op, tensor out, tensor a, tensor b,
                         block_function *apply)
{
    if (!tensor_is_dense(out) || !tensor_is_dense(a) || !tensor_is_dense(b)) {
        exec_fail(x, STATUS_USAGE, op, "the tensors must be dense");
        return;
    }
    struct activation_call c = {flat(out), flat(a), tensor_is_null(b) ? b : flat(b), tensor_count(out),
                                apply};
    lanes_run(x, op, kernel_blocks(c.n, BLOCKS_PER_ITEM * ELEMENTS_PER_BLOCK),
              2 * ELEMENTS_PER_BLOCK * sizeof(float), activation_item, &c);
}

static void run(struct exec *x, const char *op, tensor out, tensor a, tensor b, block_function *apply)
{
    if (accept_tensors(x, op, ACCEPT_LIST(out, a, b), NULL, 0)) {
        run_accepted(x, op, out, a, b, apply);
    }
}

struct gelu_backward_call {
    tensor dpre, dout, pre;
    float *partials; /* [runs][cols]: of dbias */
};

/* dpre may be dout. */
static void gelu_backward_row(float *dpre, float *restrict dbias, const float *dout, const float *pre,
                              int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        struct vmath_normal p = vmath_normal(pre[i]);
        dpre[i] = dout[i] * (p.cdf + pre[i] * p.density);
        dbias[i] += dpre[i];
    }
}

static void gelu_backward_row_bf16(uint16_t *dpre, float *restrict dbias, const uint16_t *dout,
                                   const uint16_t *pre, int64_t n)
{
    for (int64_t i = 0; i < n; i += ROWS_PIECE) {
        int64_t here = kernel_min(ROWS_PIECE, n - i);
        float g[ROWS_PIECE], z[ROWS_PIECE];
        rows_piece_from_bf16(g, dout + i, here);
        rows_piece_from_bf16(z, pre + i, here);
#pragma omp simd
        for (int k = 0; k < ROWS_PIECE; k++) {
            g[k] *= vmath_gelu_slope_bf16(z[k]);
        }
        rows_piece_add(dbias + i, g, here);
        rows_piece_to_bf16(dpre + i, g, here);
    }
}

static void gelu_backward_run(const void *context, int64_t run, void *lane)
{
    const struct gelu_backward_call *c = context;
    int64_t rows = tensor_rows(c->pre), cols = tensor_cols(c->pre), end = row_run_begin(rows, run + 1);
    float *dbias = c->partials + run * cols;
    (void)lane;
    memset(dbias, 0, (size_t)cols * sizeof(float));
    for (int64_t row = row_run_begin(rows, run); row < end; row++) {
        if (c->pre.dtype == DTYPE_BF16) {
            gelu_backward_row_bf16(rows_bf16(c->dpre, row), dbias, rows_bf16(c->dout, row),
                                   rows_bf16(c->pre, row), cols);
        } else {
            gelu_backward_row(rows_f32(c->dpre, row), dbias, rows_f32(c->dout, row), rows_f32(c->pre, row),
                              cols);
        }
    }
}

static void cpu_gelu_backward(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre)
{
    const char *op = "gelu_backward";
    int64_t rows = tensor_rows(pre), cols = tensor_cols(pre), runs = row_runs(rows);
    if (!accept_tensors(x, op, ACCEPT_LIST(dpre, dout, pre), ACCEPT_LIST(dbias))) {
        return;
    }
    struct gelu_backward_call c = {
        .dpre = dpre,
        .dout = dout,
        .pre = pre,
        .partials = exec_scratch(x, workspace_column_sum(rows, cols)),
    };
    lanes_run(x, op, runs, 0, gelu_backward_run, &c);
    if (runs > 0 && !failed(x->status)) {
        row_runs_add(dbias.data, c.partials, runs, cols, cols);
    }
}

static void cpu_tanh(struct exec *x, tensor out, tensor in)
{
    run(x, "tanh", out, in, NULL_TENSOR, tanh_block);
}

static void cpu_tanh_backward(struct exec *x, tensor din, tensor dout, tensor out)
{
    run(x, "tanh_backward", din, dout, out, tanh_backward_block);
}

static void cpu_relu(struct exec *x, tensor out, tensor in)
{
    run(x, "relu", out, in, NULL_TENSOR, relu_block);
}

static void cpu_relu_backward(struct exec *x, tensor din, tensor dout, tensor out)
{
    run(x, "relu_backward", din, dout, out, relu_backward_block);
}

static void cpu_gelu_tanh(struct exec *x, tensor out, tensor pre)
{
    run(x, "gelu_tanh", out, pre, NULL_TENSOR, gelu_tanh_block);
}

static void cpu_gelu_tanh_backward(struct exec *x, tensor dpre, tensor dout, tensor pre)
{
    run(x, "gelu_tanh_backward", dpre, dout, pre, gelu_tanh_backward_block);
}

static void cpu_residual_add(struct exec *x, tensor out, tensor residual, tensor branch)
{
    const char *op = "residual_add";
    if (accept_tensors(x, op, ACCEPT_LIST(branch), NULL, 0) &&
        accept_stream(x, op, branch.dtype, ACCEPT_LIST(out, residual))) {
        run_accepted(x, op, out, residual, branch, add_block);
    }
}

struct dropout_call {
    tensor out, in;
    struct dropout_bits bits;
    uint32_t threshold;
    float scale;
};

static void dropout_row(const void *context, int64_t row, void *lane)
{
    const struct dropout_call *c = context;
    int64_t cols = tensor_cols(c->in);
    float *buffer = lane;
    uint16_t *numbers = (uint16_t *)(buffer + cols);
    struct dropout_bits d = c->bits;
    const float *in = rows_load(c->in, row, 0, cols, buffer);
    float *out = rows_target(c->out, row, 0, buffer);
    d.row_keys += 2 * row;
    dropout_bits(numbers, d, 1);
    norm_row_dropout(out, in, numbers, c->threshold, c->scale, cols);
    rows_store(c->out, row, 0, cols, out);
}

static void cpu_dropout(struct exec *x, tensor out, tensor in, tensor row_keys, struct dropout drop)
{
    const char *op = "dropout";
    int64_t blocks = kernel_blocks(tensor_cols(in), DROPOUT_COLUMNS);
    if (!accept_tensors(x, op, ACCEPT_LIST(out, in), NULL, 0) ||
        !accept_indices(x, op, "row key", row_keys, INT32_MIN, INT64_MAX)) {
        return;
    }
    struct dropout_call c = {.out = out,
                             .in = in,
                             .bits = {exec_dropout_key(x), drop.site, 0, blocks, row_keys.data},
                             .threshold = dropout_threshold(drop),
                             .scale = (float)dropout_scale(drop)};
    size_t lane =
        (size_t)tensor_cols(in) * sizeof(float) + (size_t)dropout_bits_count(1, blocks) * sizeof(uint16_t);
    lanes_run(x, op, tensor_rows(in), lane, dropout_row, &c);
}

KERNEL_FILL(activation, struct ops)
{
    t->gelu_tanh = cpu_gelu_tanh;
    t->gelu_tanh_backward = cpu_gelu_tanh_backward;
    t->residual_add = cpu_residual_add;
    t->dropout = cpu_dropout;
    t->gelu_backward = cpu_gelu_backward;
    t->tanh = cpu_tanh;
    t->tanh_backward = cpu_tanh_backward;
    t->relu = cpu_relu;
    t->relu_backward = cpu_relu_backward;
}
