/* cuda_algorithms: how cuBLASLt is to compute one shape of product: the descriptors, the library's candidates, the tiles of
 * the own kernel for few rows beside them, and which of all was fastest on this device.
 *
 * Every candidate of every form runs on the real operands with what surrounds it.  Results that are only written
 * are written where they belong, since the last run is the real one; what is added to is replaced by scratch. */
#ifndef KILN_OPS_CUDA_CHOICE_CUDA_ALGORITHMS_H
#define KILN_OPS_CUDA_CHOICE_CUDA_ALGORITHMS_H

#include "ops/cuda/choice/cuda_choices.h"
#include "ops/cuda/choice/product_forms.h"

#include <cublasLt.h>

/* What decides an algorithm. */
struct product_shape {
    int64_t m, n, k, c_stride, a_stride, b_stride;
    int64_t alignment; /* of all pointers, in bytes: 256 or less */
    enum dtype c_dtype, a_dtype, b_dtype;
    bool a_transposed, b_transposed, tf32, accumulate, has_bias, has_gelu, has_bias_gradient;
    bool casts_bias;   /* it is fp32 and C is not */
    bool may_be_short; /* an own kernel competes (cuda_short_product.cu) */
};

struct product_plan {
    struct product_shape shape;
    enum product_form form;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t left, right, out;
    cublasLtMatmulAlgo_t algorithm;
};

/* What plans of a context share that run one after the other. */
struct product_tools {
    cublasLtHandle_t handle;
    void *workspace;
    size_t workspace_bytes;
    void *room; /* product_forms.h */
};

/* The shape of a product; bytes between its fields are zero. */
void cuda_plan_shape(struct product_shape *s, const struct cuda_product *p);

/* Whether a form is a candidate for the shape, of this product, on this device. */
bool cuda_plan_fits(const struct product_shape *s, enum product_form form, const struct cuda_product *p);

/* Descriptors of a shape in a form; `plan` can be closed whatever comes of it. */
cublasStatus_t cuda_plan_open(struct product_plan *plan, const struct product_tools *t,
                              const struct product_shape *s, enum product_form form);
void cuda_plan_close(struct product_plan *plan);

/* The plan of PRODUCT_SHORT with this tile. */
void cuda_plan_open_short(struct product_plan *plan, const struct product_shape *s, int tile);

/* Whether the plan's algorithm can run on this device. */
bool cuda_plan_check(const struct product_plan *plan, const struct product_tools *t);

/* Launches the product and what surrounds it; l->scratch has room for the sums of a bias's gradient. */
cublasStatus_t cuda_plan_run(const struct product_plan *plan, const struct product_tools *t,
                             const struct launch *l, const struct cuda_product *p);

/* Opens `best` as the fastest plan for the product, and says its median time; 0 if there was no memory to time it
 * and the library's first candidate was taken, which the log tells. */
cublasStatus_t cuda_algorithm_search(struct product_plan *best, double *micros, const struct product_tools *t,
                                     struct cuda_choices *choices, const struct launch *l,
                                     const struct product_shape *shape, const struct cuda_product *p);

#endif
