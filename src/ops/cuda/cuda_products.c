#include "ops/cuda/cuda_products.h"

#include "ops/cuda/cuda_context.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>

enum { PRODUCTS_CACHE = 256 };
static const size_t WORKSPACE_BYTES = 32 << 20;

/* What decides an algorithm. */
struct product_shape {
    int64_t m, n, k, c_stride, a_stride, b_stride;
    enum dtype c_dtype, ab_dtype;
    bool a_transposed, b_transposed, accumulate, tf32;
};

struct product_plan {
    struct product_shape shape;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t left, right, out;
    cublasLtMatmulAlgo_t algorithm;
};

struct cuda_products {
    cublasLtHandle_t handle;
    void *workspace;
    struct product_plan *plans[PRODUCTS_CACHE]; /* by hash of the shape; a newer one takes the place */
};

static struct status refused(const char *what, cublasStatus_t e)
{
    return status_error(STATUS_INTERNAL, "cuBLASLt: %s: %s", what, cublasLtGetStatusString(e));
}

struct status cuda_products_open(struct cuda_products **products)
{
    struct cuda_products *p = calloc(1, sizeof *p);
    *products = p;
    if (p == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for cuBLASLt");
    }
    if (cudaMalloc(&p->workspace, WORKSPACE_BYTES) != cudaSuccess) {
        return status_error(STATUS_MEMORY, "the GPU has no %zu MiB for the workspace of cuBLASLt",
                            WORKSPACE_BYTES >> 20);
    }
    cublasStatus_t e = cublasLtCreate(&p->handle);
    return e == CUBLAS_STATUS_SUCCESS ? status_ok() : refused("the library cannot be opened", e);
}

static void free_plan(struct product_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    cublasLtMatmulDescDestroy(plan->operation);
    cublasLtMatrixLayoutDestroy(plan->left);
    cublasLtMatrixLayoutDestroy(plan->right);
    cublasLtMatrixLayoutDestroy(plan->out);
    free(plan);
}

void cuda_products_close(struct cuda_products *p)
{
    if (p == NULL) {
        return;
    }
    for (int i = 0; i < PRODUCTS_CACHE; i++) {
        free_plan(p->plans[i]);
    }
    if (p->handle != NULL) {
        cublasLtDestroy(p->handle);
    }
    cudaFree(p->workspace);
    free(p);
}

static cudaDataType_t type_of(enum dtype t)
{
    return t == DTYPE_BF16 ? CUDA_R_16BF : t == DTYPE_F16 ? CUDA_R_16F : CUDA_R_32F;
}

/* A stored matrix of `rows` x `cols` with row-major strides is one of cols x rows to the library, whose order
 * is by columns; so it is asked for C^T = B^T A^T. */
static cublasStatus_t make_layout(cublasLtMatrixLayout_t *layout, enum dtype dtype, int64_t rows,
                                  int64_t cols, int64_t stride)
{
    return cublasLtMatrixLayoutCreate(layout, type_of(dtype), (uint64_t)cols, (uint64_t)rows, stride);
}

static cublasStatus_t describe(struct product_plan *p)
{
    const struct product_shape *s = &p->shape;
    cublasOperation_t left = s->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t right = s->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasComputeType_t compute = s->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasStatus_t e = cublasLtMatmulDescCreate(&p->operation, compute, CUDA_R_32F);
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = cublasLtMatmulDescSetAttribute(p->operation, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof left);
    }
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = cublasLtMatmulDescSetAttribute(p->operation, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof right);
    }
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = make_layout(&p->left, s->ab_dtype, s->b_transposed ? s->n : s->k, s->b_transposed ? s->k : s->n,
                        s->b_stride);
    }
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = make_layout(&p->right, s->ab_dtype, s->a_transposed ? s->k : s->m, s->a_transposed ? s->m : s->k,
                        s->a_stride);
    }
    return e == CUBLAS_STATUS_SUCCESS ? make_layout(&p->out, s->c_dtype, s->m, s->n, s->c_stride) : e;
}

/* The library's first choice. */
static cublasStatus_t choose(struct product_plan *p, cublasLtHandle_t handle)
{
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t best;
    int n = 0;
    cublasStatus_t e = cublasLtMatmulPreferenceCreate(&preference);
    if (e != CUBLAS_STATUS_SUCCESS) {
        return e;
    }
    e = cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &WORKSPACE_BYTES, sizeof WORKSPACE_BYTES);
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = cublasLtMatmulAlgoGetHeuristic(handle, p->operation, p->left, p->right, p->out, p->out,
                                           preference, 1, &best, &n);
    }
    cublasLtMatmulPreferenceDestroy(preference);
    if (e == CUBLAS_STATUS_SUCCESS && n == 0) {
        e = CUBLAS_STATUS_NOT_SUPPORTED;
    }
    p->algorithm = best.algo;
    return e;
}

static size_t place_of(const struct product_shape *s)
{
    const unsigned char *bytes = (const unsigned char *)s;
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < sizeof *s; i++) {
        hash = (hash ^ bytes[i]) * 16777619U;
    }
    return hash % PRODUCTS_CACHE;
}

static const struct product_plan *plan_of(struct exec *x, const char *op, struct cuda_products *products,
                                          const struct product_shape *shape)
{
    struct product_plan **place = &products->plans[place_of(shape)];
    if (*place != NULL && memcmp(&(*place)->shape, shape, sizeof *shape) == 0) {
        return *place;
    }
    free_plan(*place);
    *place = calloc(1, sizeof **place);
    if (*place == NULL) {
        exec_fail(x, STATUS_MEMORY, op, "out of memory for the plan of a product");
        return NULL;
    }
    memcpy(&(*place)->shape, shape, sizeof *shape);
    cublasStatus_t e = describe(*place);
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = choose(*place, products->handle);
    }
    if (e != CUBLAS_STATUS_SUCCESS) {
        free_plan(*place);
        *place = NULL;
        exec_fail(x, STATUS_INTERNAL, op, "cuBLASLt has no product of %lld x %lld x %lld: %s",
                  (long long)shape->m, (long long)shape->n, (long long)shape->k, cublasLtGetStatusString(e));
        return NULL;
    }
    return *place;
}

void cuda_product_run(struct exec *x, const char *op, const struct cuda_product *p)
{
    if (failed(x->status) || p->m == 0 || p->n == 0) {
        return;
    }
    struct cuda_context *c = x->context;
    struct product_shape shape;
    memset(&shape, 0, sizeof shape); /* the gaps are compared too */
    shape.m = p->m, shape.n = p->n, shape.k = p->k;
    shape.c_stride = p->c_stride, shape.a_stride = p->a_stride, shape.b_stride = p->b_stride;
    shape.c_dtype = p->c_dtype, shape.ab_dtype = p->ab_dtype;
    shape.a_transposed = p->a_transposed, shape.b_transposed = p->b_transposed,
    shape.accumulate = p->accumulate, shape.tf32 = p->tf32 && p->ab_dtype == DTYPE_F32;
    const struct product_plan *plan = plan_of(x, op, c->products, &shape);
    if (plan == NULL) {
        return;
    }
    const float one = 1, beta = p->accumulate ? 1 : 0;
    cublasStatus_t e = cublasLtMatmul(c->products->handle, plan->operation, &one, p->b, plan->left, p->a,
                                      plan->right, &beta, p->c, plan->out, p->c, plan->out, &plan->algorithm,
                                      c->products->workspace, WORKSPACE_BYTES, c->launch.stream);
    exec_queued(x, op);
    if (e != CUBLAS_STATUS_SUCCESS) {
        exec_fail(x, STATUS_INTERNAL, op, "cuBLASLt: %s", cublasLtGetStatusString(e));
    }
}
