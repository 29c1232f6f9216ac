/* cuda_algorithms: how one shape of product is computed: cuBLASLt's descriptors, the candidates, which are
 * the library's algorithms and the tiles of our kernel for few rows, and the search for the fastest on this
 * device.
 *
 * Every candidate of every form runs on the real operands, with the launches before and after it.  Results
 * that are only written go to their real place, since the last run is the real one; results that are added to
 * go to scratch. */
#ifndef KILN_OPS_CUDA_CHOICE_CUDA_ALGORITHMS_H
#define KILN_OPS_CUDA_CHOICE_CUDA_ALGORITHMS_H

#include "ops/cuda/choice/cuda_choices.h"
#include "ops/cuda/choice/product_forms.h"

#include <cublasLt.h>

/* Everything that the choice of an algorithm depends on. */
struct product_shape {
    int64_t m, n, k, c_stride, a_stride, b_stride;
    int64_t alignment; /* alignment of all pointers, in bytes: 256 or less */
    enum dtype c_dtype, a_dtype, b_dtype;
    bool a_transposed, b_transposed, tf32, accumulate, has_bias, has_gelu, has_bias_gradient;
    bool casts_bias;   /* the bias is fp32 and C is not */
    bool may_be_short; /* our own kernel competes (cuda_short_product.cu) */
};

struct product_plan {
    struct product_shape shape;
    enum product_form form;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t left, right, out;
    cublasLtMatmulAlgo_t algorithm;
};

/* Shared by the plans of a context that run one after the other. */
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

/* Makes the descriptors of a shape in a form; `plan` must be closed even after a failure. */
cublasStatus_t cuda_plan_open(struct product_plan *plan, const struct product_tools *t,
                              const struct product_shape *s, enum product_form form);
void cuda_plan_close(struct product_plan *plan);

/* The plan of PRODUCT_SHORT with this tile. */
void cuda_plan_open_short(struct product_plan *plan, const struct product_shape *s, int tile);

/* Whether the plan's algorithm can run on this device. */
bool cuda_plan_check(const struct product_plan *plan, const struct product_tools *t);

/* Launches the product and the kernels before and after it; l->scratch has space for the sums of a bias's
 * gradient. */
cublasStatus_t cuda_plan_run(const struct product_plan *plan, const struct product_tools *t,
                             const struct launch *l, const struct cuda_product *p);

/* Opens `best` as the fastest plan for the product, and returns its median time.  The time is 0 if there was
 * no memory for timing; the library's first candidate is then used, and the log says so. */
cublasStatus_t cuda_algorithm_search(struct product_plan *best, double *micros, const struct product_tools *t,
                                     struct cuda_choices *choices, const struct launch *l,
                                     const struct product_shape *shape, const struct cuda_product *p);

#endif
