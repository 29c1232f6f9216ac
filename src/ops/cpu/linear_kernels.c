/* Linear layers: products by ops/cpu/gemm.h, the activation on each tile while it is in the cache, and bias
 * gradients as ordered sums over rows. */
#include "ops/cpu/gemm.h"
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/vmath.h"
#include "ops/workspace.h"

/* Rows of a matrix may be strided; everything else is dense. */
static int64_t stride_of(tensor t)
{
    return rows_offset(t, 1);
}

/* Matrices of a forward product: w has the dtype of `in`, or int8. */
static bool accept_factors(struct exec *x, const char *op, tensor in, tensor w)
{
    return w.dtype == DTYPE_I8 ? accept_tensors(x, op, ACCEPT_LIST(in), NULL, 0) && accept_int8(x, op, w)
                               : accept_tensors(x, op, ACCEPT_LIST(in, w), NULL, 0);
}

static void cpu_linear(struct exec *x, tensor out, tensor in, tensor w, tensor bias)
{
    if (!accept_factors(x, "linear", in, w) ||
        !accept_tensors(x, "linear", ACCEPT_LIST(out), ACCEPT_LIST(bias))) {
        return;
    }
    struct gemm g = {
        .m = tensor_rows(in),
        .n = tensor_rows(w),
        .k = tensor_cols(in),
        .c = out.data,
        .a = in.data,
        .b = w.data,
        .bias = bias.data,
        .c_stride = stride_of(out),
        .a_stride = stride_of(in),
        .b_stride = stride_of(w),
        .c_dtype = out.dtype,
        .ab_dtype = in.dtype,
        .b_scales = w.dtype == DTYPE_I8 ? w.scale : NULL,
        .b_transposed = true,
    };
    gemm_run(x, "linear", &g, NULL, 0, NULL);
}

struct gelu_call {
    tensor out, pre;
};

static void gelu_row(float *out, const float *z, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = z[i] * vmath_normal(z[i]).cdf;
    }
}

/* Piece by piece, so that the fp32 values between two conversions stay in registers. */
static void gelu_row_bf16(uint16_t *out, const uint16_t *z, int64_t n)
{
    for (int64_t i = 0; i < n; i += ROWS_PIECE) {
        int64_t here = kernel_min(ROWS_PIECE, n - i);
        float piece[ROWS_PIECE];
        rows_piece_from_bf16(piece, z + i, here);
#pragma omp simd
        for (int k = 0; k < ROWS_PIECE; k++) {
            piece[k] *= vmath_cdf_bf16(piece[k]);
        }
        rows_piece_to_bf16(out + i, piece, here);
    }
}

static void gelu_part(const void *context, const struct gemm_part *p, void *lane)
{
    const struct gelu_call *c = context;
    (void)lane;
    for (int64_t r = p->row; r < p->row + p->rows; r++) {
        if (c->out.dtype == DTYPE_BF16) {
            gelu_row_bf16(rows_bf16(c->out, r) + p->col, rows_bf16(c->pre, r) + p->col, p->cols);
        } else {
            gelu_row(rows_f32(c->out, r) + p->col, rows_f32(c->pre, r) + p->col, p->cols);
        }
    }
}

static void cpu_linear_gelu(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias)
{
    if (!accept_factors(x, "linear_gelu", in, w) ||
        !accept_tensors(x, "linear_gelu", ACCEPT_LIST(in, out, pre), ACCEPT_LIST(bias))) {
        return;
    }
    pre = tensor_is_null(pre) ? out : pre;
    struct gemm g = {
        .m = tensor_rows(in),
        .n = tensor_rows(w),
        .k = tensor_cols(in),
        .c = pre.data,
        .a = in.data,
        .b = w.data,
        .bias = bias.data,
        .c_stride = stride_of(pre),
        .a_stride = stride_of(in),
        .b_stride = stride_of(w),
        .c_dtype = pre.dtype,
        .ab_dtype = in.dtype,
        .b_scales = w.dtype == DTYPE_I8 ? w.scale : NULL,
        .b_transposed = true,
    };
    struct gelu_call c = {out, pre};
    gemm_run(x, "linear_gelu", &g, gelu_part, 0, &c);
}

enum { INNER_PER_RUN = 1024 };

/* Computes the product in consecutive ranges of the inner dimension, so that all threads read the same part
 * of the operands while it is in the cache; sums are in fp32. */
static void product_in_runs(struct exec *x, const char *op, const struct gemm *g)
{
    struct gemm run = *g;
    run.c = exec_scratch(x, workspace_linear_backward_input(g->m, g->n, g->k));
    run.c_dtype = DTYPE_F32;
    run.c_stride = g->n;
    for (int64_t first = 0; first < g->k; first += INNER_PER_RUN) {
        run.accumulate = first > 0;
        run.k = kernel_min(INNER_PER_RUN, g->k - first);
        run.a = (const uint16_t *)g->a + first;
        run.b = (const uint16_t *)g->b + first * g->b_stride;
        gemm_run(x, op, &run, NULL, 0, NULL);
    }
    for (int64_t i = 0; i < g->m && !failed(x->status); i++) {
        rows_to_bf16((uint16_t *)g->c + i * g->c_stride, (const float *)run.c + i * run.c_stride, g->n);
    }
}

static void cpu_linear_backward_input(struct exec *x, tensor din, tensor dout, tensor w, bool accumulate)
{
    if (!accept_tensors(x, "linear_backward_input", ACCEPT_LIST(din, dout, w), NULL, 0)) {
        return;
    }
    struct gemm g = {
        .m = tensor_rows(dout),
        .n = tensor_cols(w),
        .k = tensor_rows(w),
        .c = din.data,
        .a = dout.data,
        .b = w.data,
        .c_stride = stride_of(din),
        .a_stride = stride_of(dout),
        .b_stride = stride_of(w),
        .c_dtype = din.dtype,
        .ab_dtype = dout.dtype,
        .accumulate = accumulate,
    };
    if (workspace_linear_backward_input(g.m, g.n, g.k) > 0 && g.c_dtype == DTYPE_BF16 && !accumulate) {
        product_in_runs(x, "linear_backward_input", &g);
    } else {
        gemm_run(x, "linear_backward_input", &g, NULL, 0, NULL);
    }
}

enum { ROWS_AT_ONCE = 8 };

struct bias_gradient_call {
    tensor dbias, dout;
};

/* sum += columns [first, first + n) of `rows` rows, a constant. */
static inline __attribute__((always_inline)) void add_rows(float *restrict sum, tensor t, int64_t row,
                                                           const int rows, int64_t first, int64_t n)
{
    int64_t stride = rows_offset(t, 1);
    if (t.dtype == DTYPE_F32) {
        const float *in = rows_f32(t, row) + first;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            for (int r = 0; r < rows; r++) {
                sum[i] += in[i + r * stride];
            }
        }
    } else {
        const uint16_t *in = rows_bf16(t, row) + first;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            for (int r = 0; r < rows; r++) {
                sum[i] += bf16_to_f32(in[i + r * stride]);
            }
        }
    }
}

/* Rows of the weight are columns of dout: the first tile of each row of tiles sums them right after reading
 * them. */
static void bias_gradient_part(const void *context, const struct gemm_part *p, void *lane)
{
    const struct bias_gradient_call *c = context;
    float *sum = lane, *dbias = (float *)c->dbias.data + p->row;
    if (p->col > 0) {
        return;
    }
    memset(sum, 0, (size_t)p->rows * sizeof *sum);
    int64_t row = p->inner, end = p->inner + p->depth;
    for (; row + ROWS_AT_ONCE <= end; row += ROWS_AT_ONCE) {
        add_rows(sum, c->dout, row, ROWS_AT_ONCE, p->row, p->rows);
    }
    for (; row < end; row++) {
        add_rows(sum, c->dout, row, 1, p->row, p->rows);
    }
    for (int64_t i = 0; i < p->rows; i++) {
        dbias[i] += sum[i];
    }
}

static void cpu_linear_backward_weight(struct exec *x, tensor dw, tensor dbias, tensor dout, tensor in,
                                       bool accumulate)
{
    const char *op = "linear_backward_weight";
    if (!accept_tensors(x, op, ACCEPT_LIST(dout, in), ACCEPT_LIST(dw, dbias))) {
        return;
    }
    int64_t rows = tensor_rows(dout);
    if (rows == 0) {
        if (!accumulate) {
            x->ops->fill(x, dw, 0);
        }
        return;
    }
    struct gemm g = {
        .m = tensor_cols(dout),
        .n = tensor_cols(in),
        .k = rows,
        .c = dw.data,
        .a = dout.data,
        .b = in.data,
        .c_stride = stride_of(dw),
        .a_stride = stride_of(dout),
        .b_stride = stride_of(in),
        .c_dtype = dw.dtype,
        .ab_dtype = in.dtype,
        .a_transposed = true,
        .accumulate = accumulate,
    };
    struct bias_gradient_call c = {dbias, dout};
    gemm_run(x, op, &g, tensor_is_null(dbias) ? NULL : bias_gradient_part, GEMM_MAX_TILE_ROWS * sizeof(float),
             &c);
}

KERNEL_FILL(linear, struct ops)
{
    t->linear = cpu_linear;
    t->linear_gelu = cpu_linear_gelu;
    t->linear_backward_input = cpu_linear_backward_input;
    t->linear_backward_weight = cpu_linear_backward_weight;
}
