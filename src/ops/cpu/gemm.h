/* gemm: matrix products on the cpu, by the fastest library that is compiled in and supports the tile.
 *
 * A product is split into tiles of C by its shape alone, and each tile is computed by one thread from its
 * complete row and column panels: the bits do not depend on the number of threads, whatever the library does.
 * With exec.rows_alone, products of linear layers do not depend on the number of rows either: they are
 * computed by kernels of our own, which for few rows are also faster than the
 * libraries. */
#ifndef KILN_OPS_CPU_GEMM_H
#define KILN_OPS_CPU_GEMM_H

#include "core/dtype.h"
#include "dev/exec.h"

/* C = A B + bias, or C += A B.  A is [m, k], stored [k, m] if a_transposed; B is [k, n], stored [n, k] if
 * b_transposed. Strides are those of stored rows, in elements. */
struct gemm {
    int64_t m, n, k;
    void *c;
    const void *a, *b;
    const float *bias; /* [n] or NULL; never with accumulate */
    int64_t c_stride, a_stride, b_stride;
    int64_t a_block;     /* rows of a block of A that gemm_run has packed (gemm_amx.c); 0: it is as it was */
    enum dtype c_dtype;  /* fp32 or bf16 */
    enum dtype ab_dtype; /* fp32 or bf16; of A alone with b_scales */
    /* Not NULL: B is int8, stored [n, k], and its row i stands for b_scales[i] times it.  gemm_run then has A
     * in integers of 16 bits, of which row i stands for a_scales[i] times it; or, where ab_dtype is int8, in
     * bytes, each an integer plus a_zeros[i], and the sum of row i of B. */
    const float *a_scales, *b_scales;
    const int32_t *a_zeros, *b_sums;
    bool a_transposed, b_transposed;
    bool accumulate;
};

/* The largest tile of C. */
enum { GEMM_MAX_TILE_ROWS = 256, GEMM_MAX_TILE_COLS = 1024 };

/* Part of a product: rows [row, row + rows) and columns [col, col + cols) of C, summed over [inner, inner +
 * depth). */
struct gemm_part {
    int64_t row, rows, col, cols, inner, depth;
};

/* Called with each part when it is done and its operands are in the cache.  The inner dimension is split only
 * if C is fp32 and added to. */
typedef void gemm_after(const void *context, const struct gemm_part *part, void *lane);

/* Computes the product, and `after`, which may be NULL, on each part of it, with after_bytes of scratch.  A
 * failure sticks in the exec under the name `op`. */
void gemm_run(struct exec *x, const char *op, const struct gemm *g, gemm_after *after, size_t after_bytes,
              const void *context);

/* Whether the processor, by one of the libraries, has instructions for sums of products of int8 by int8. */
bool gemm_multiplies_int8(void);

/* The backend of products of this dtype: "oneDNN 2.6.3", "BLAS", "plain". */
const char *gemm_backend_name(enum dtype dtype);

/* One line for each backend, on or why not, for `kiln doctor`; NULL past the last. */
const char *gemm_backend_line(int i);

#endif
