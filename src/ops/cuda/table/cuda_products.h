/* cuda_products: matrix products on the device, by cuBLASLt, with the algorithm and the form
 * (product_forms.h) that were fastest when the shape was first met. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_PRODUCTS_H
#define KILN_OPS_CUDA_TABLE_CUDA_PRODUCTS_H

#include "core/dtype.h"
#include "dev/exec.h"
#include "ops/cuda/table/cuda_overhead.h"

/* C = A B + bias, or C += A B.  A is [m, k], stored [k, m] if a_transposed; B is [k, n], stored [n, k] if
 * b_transposed.  Strides are those of stored rows, in elements.
 *
 * fp8 requires B transposed and A not, so that both are stored along k, in multiples of 16; not both e5m2;
 * and no bias gradient.  That is what cuBLASLt supports on Hopper (cuBLAS documentation, cublasLtMatmul). */
struct cuda_product {
    int64_t m, n, k;
    void *c;
    const void *a, *b;
    int64_t c_stride, a_stride, b_stride;
    enum dtype a_dtype, b_dtype;    /* both fp32, bf16 or fp16, or both fp8 */
    enum dtype c_dtype;             /* the same or fp32; of fp8 bf16, fp16 or fp32 */
    const float *a_scale, *b_scale; /* fp8: the factor of stored numbers, in device memory; NULL: 1 */
    bool a_transposed, b_transposed, accumulate;
    bool tf32; /* fp32 factors may be rounded to 10 bits of fraction */

    const void *bias;      /* [n], or NULL; not with `accumulate` */
    enum dtype bias_dtype; /* fp32 or that of C */
    void *gelu;            /* [m, n] = gelu(C), both dense; or NULL */
    uint32_t *gelu_maxima; /* maxima of gelu (core/tensor.h), or NULL */
    float *bias_gradient;  /* [m] += sums of A over k, with a_transposed; or NULL */
};

struct cuda_products;
struct cuda_choices; /* cuda_choices.h */

/* Opens the handles and workspace of a context; they must be closed even after a failure.  Borrows
 * `choices`. */
struct status cuda_products_open(struct cuda_products **products, struct cuda_choices *choices);
void cuda_products_close(struct cuda_products *products);

/* Queues the product on the exec's CUDA stream; a failure sticks in the exec under the name `op`.  The first
 * product of a shape is timed, which waits for the device and must not happen while a graph is captured. */
void cuda_product_run(struct exec *x, const char *op, const struct cuda_product *p);

#endif
