#include "ops/cuda/table/cuda_products.h"

#include "core/fp8.h"
#include "core/hash.h"
#include "core/log.h"
#include "ops/cuda/choice/cuda_algorithms.h"
#include "ops/cuda/table/cuda_context.h"
#include "ops/workspace.h"

#include <stdio.h>
#include <stdlib.h>

_Static_assert(CUDA_PRODUCTS_ROOM == PRODUCT_ROOM * sizeof(float), "room for the longest bias");
_Static_assert(sizeof(cublasLtMatmulAlgo_t) == PRODUCT_ALGORITHM_BYTES, "an algorithm is kept as its bytes");

static const char *const SERVED_BY[PRODUCT_FORMS] = {
    [PRODUCT_ALONE] = "cuBLASLt",
    [PRODUCT_EPILOGUE] = "cuBLASLt with its epilogue",
    [PRODUCT_BROADCAST] = "cuBLASLt onto the broadcast bias",
    [PRODUCT_SHORT] = "own kernel, cuda: product of few rows by wgmma",
};

struct cuda_products {
    struct product_tools tools, beside; /* beside: separate memory for work beside */
    struct product_plan **plans;        /* [capacity] by hash of the shape; NULL: free */
    size_t n_plans, capacity;           /* a power of two */
    struct cuda_choices *choices;       /* the context's */
    int asked_for;                      /* product_asked_for */
};

static struct status refused(const char *what, cublasStatus_t e)
{
    return status_error(STATUS_INTERNAL, "cuBLASLt: %s: %s", what, cublasLtGetStatusString(e));
}

static struct status allocate_tools(struct product_tools *t)
{
    t->workspace_bytes = CUDA_PRODUCTS_WORKSPACE;
    if (cudaMalloc(&t->workspace, CUDA_PRODUCTS_WORKSPACE) != cudaSuccess ||
        cudaMalloc(&t->room, CUDA_PRODUCTS_ROOM) != cudaSuccess) {
        return status_error(STATUS_MEMORY, "the GPU has less than %zu MiB free for the workspace of cuBLASLt",
                            (size_t)(CUDA_PRODUCTS_WORKSPACE + CUDA_PRODUCTS_ROOM) >> 20);
    }
    return status_ok();
}

static struct status open_tools(struct cuda_products *p)
{
    TRY(allocate_tools(&p->tools));
    TRY(allocate_tools(&p->beside));
    cublasStatus_t e = cublasLtCreate(&p->tools.handle);
    p->beside.handle = p->tools.handle;
    return e == CUBLAS_STATUS_SUCCESS ? status_ok() : refused("the library cannot be opened", e);
}

struct status cuda_products_open(struct cuda_products **products, struct cuda_choices *choices)
{
    struct cuda_products *p = calloc(1, sizeof *p);
    *products = p;
    if (p == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for cuBLASLt");
    }
    p->choices = choices;
    TRY(product_asked_for(&p->asked_for));
    return open_tools(p);
}

void cuda_products_close(struct cuda_products *p)
{
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->capacity; i++) {
        if (p->plans[i] != NULL) {
            cuda_plan_close(p->plans[i]);
            free(p->plans[i]);
        }
    }
    free(p->plans);
    if (p->tools.handle != NULL) {
        cublasLtDestroy(p->tools.handle);
    }
    cudaFree(p->tools.room);
    cudaFree(p->tools.workspace);
    cudaFree(p->beside.room);
    cudaFree(p->beside.workspace);
    free(p);
}

/* The slot of a shape in the hash table of plans: its own, or a free one. */
static struct product_plan **place_of(struct product_plan **plans, size_t capacity,
                                      const struct product_shape *s)
{
    size_t i = hash_fnv1a(s, sizeof *s) & (capacity - 1);
    while (plans[i] != NULL && memcmp(&plans[i]->shape, s, sizeof *s) != 0) {
        i = (i + 1) & (capacity - 1);
    }
    return &plans[i];
}

/* Plans never move: graphs may hold pointers into them. */
static struct status make_place(struct cuda_products *p)
{
    if (2 * (p->n_plans + 1) <= p->capacity) {
        return status_ok();
    }
    size_t capacity = p->capacity > 0 ? 2 * p->capacity : 256;
    struct product_plan **plans = calloc(capacity, sizeof *plans);
    if (plans == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the plans of products");
    }
    for (size_t i = 0; i < p->capacity; i++) {
        if (p->plans[i] != NULL) {
            *place_of(plans, capacity, &p->plans[i]->shape) = p->plans[i];
        }
    }
    free(p->plans);
    p->plans = plans;
    p->capacity = capacity;
    return status_ok();
}

/* "MACHINE\t8192x4096x1024 bf16 = bf16 nt, strides 4096 1024 1024, aligned 256, bias gelu"; "bias in fp32"
 * where it is rounded first, "e5m2 e4m3" where the factors differ, "or own" where the own kernel competes: a
 * kiln without it has timed fewer candidates. */
static void make_key(char key[PRODUCT_KEY_BYTES], const char *machine, const struct product_shape *s)
{
    bool differ = s->a_dtype != s->b_dtype;
    snprintf(key, PRODUCT_KEY_BYTES,
             "%s\t%lldx%lldx%lld %s = %s%s%s%s %c%c, strides %lld %lld %lld, aligned %lld%s%s%s%s%s%s",
             machine, (long long)s->m, (long long)s->n, (long long)s->k, dtype_name(s->c_dtype),
             dtype_name(s->a_dtype), differ ? " " : "", differ ? dtype_name(s->b_dtype) : "",
             s->tf32 ? " in tf32" : "", s->a_transposed ? 't' : 'n', s->b_transposed ? 't' : 'n',
             (long long)s->c_stride, (long long)s->a_stride, (long long)s->b_stride, (long long)s->alignment,
             s->accumulate ? ", added" : "", s->has_bias ? ", bias" : "", s->casts_bias ? " in fp32" : "",
             s->has_gelu ? ", gelu" : "", s->has_bias_gradient ? ", bias gradient" : "",
             s->may_be_short ? ", or own" : "");
}

/* Opens the plan that was kept; false if there is none, or this library does not accept it. */
static bool open_kept(struct product_plan *plan, struct cuda_products *products, const char *key,
                      const struct product_shape *shape, const struct cuda_product *p)
{
    const struct product_choice *choice = product_cache_find(&products->choices->cache, key);
    if (choice == NULL || choice->form >= PRODUCT_FORMS ||
        !cuda_plan_fits(shape, (enum product_form)choice->form, p)) {
        return false;
    }
    cublasStatus_t e = cuda_plan_open(plan, &products->tools, shape, (enum product_form)choice->form);
    memcpy(&plan->algorithm, choice->algorithm, sizeof plan->algorithm);
    if (e == CUBLAS_STATUS_SUCCESS && cuda_plan_check(plan, &products->tools)) {
        return true;
    }
    cuda_plan_close(plan);
    return false;
}

/* Finds the fastest plan and keeps it. */
static cublasStatus_t open_fastest(struct product_plan *plan, struct cuda_products *products, const char *key,
                                   const struct launch *l, const struct product_shape *shape,
                                   const struct cuda_product *p)
{
    double micros = 0;
    cublasStatus_t e = cuda_algorithm_search(plan, &micros, &products->tools, products->choices, l, shape, p);
    if (e != CUBLAS_STATUS_SUCCESS) {
        cuda_plan_close(plan);
        return e;
    }
    struct product_choice choice = {.form = (int)plan->form, .micros = micros};
    memcpy(choice.algorithm, &plan->algorithm, sizeof choice.algorithm);
    struct status s = product_cache_keep(&products->choices->cache, key, &choice);
    if (failed(s)) {
        log_warning("the choice of an algorithm is not kept: %s", s.message);
    }
    return e;
}

static struct product_plan *make_plan(struct exec *x, const char *op, const struct launch *l,
                                      const struct product_shape *shape, const struct cuda_product *p)
{
    struct cuda_products *products = ((struct cuda_context *)x->context)->products;
    struct product_plan *plan = calloc(1, sizeof *plan);
    char key[PRODUCT_KEY_BYTES];
    if (plan == NULL || failed(make_place(products))) {
        free(plan);
        exec_fail(x, STATUS_MEMORY, op, "out of memory for the plan of a product");
        return NULL;
    }
    if (cuda_choices_is_capturing(l->stream)) {
        free(plan);
        exec_fail(x, STATUS_INTERNAL, op,
                  "a product of %lld x %lld x %lld is first met while a graph is captured", (long long)p->m,
                  (long long)p->n, (long long)p->k);
        return NULL;
    }
    make_key(key, products->choices->machine, shape);
    if (products->asked_for >= 0 && shape->may_be_short) { /* neither timed nor kept */
        cuda_plan_open_short(plan, shape, products->asked_for);
    } else if (!open_kept(plan, products, key, shape, p)) {
        cublasStatus_t e = open_fastest(plan, products, key, l, shape, p);
        if (e != CUBLAS_STATUS_SUCCESS) {
            free(plan);
            exec_fail(x, STATUS_INTERNAL, op, "cuBLASLt has no product of %lld x %lld x %lld: %s",
                      (long long)p->m, (long long)p->n, (long long)p->k, cublasLtGetStatusString(e));
            return NULL;
        }
    }
    product_cache_write(&products->choices->cache);
    *place_of(products->plans, products->capacity, shape) = plan;
    products->n_plans++;
    return plan;
}

static const struct product_plan *plan_of(struct exec *x, const char *op, const struct launch *l,
                                          const struct cuda_product *p)
{
    struct cuda_products *products = ((struct cuda_context *)x->context)->products;
    struct product_shape shape;
    cuda_plan_shape(&shape, p);
    shape.may_be_short = shape.may_be_short && products->asked_for != PRODUCT_LIBRARY;
    const struct product_plan *known =
        products->capacity > 0 ? *place_of(products->plans, products->capacity, &shape) : NULL;
    return known != NULL ? known : make_plan(x, op, l, &shape, p);
}

/* How a product's computation differs from the cpu's; `why` if it does not. */
static const char *why_of(const struct cuda_product *p, const char *why)
{
    if (dtype_is_fp8(p->a_dtype)) {
        return p->a_dtype == DTYPE_E5M2 ? "fp8, e5m2 x e4m3 under a scale each"
                                        : "fp8, e4m3 x e4m3 under a scale each";
    }
    return p->tf32 && p->a_dtype == DTYPE_F32 ? "TF32, factors of 10 bits of fraction" : why;
}

void cuda_product_run(struct exec *x, const char *op, const struct cuda_product *p)
{
    if (failed(x->status) || p->m == 0 || p->n == 0) {
        return;
    }
    struct cuda_context *c = x->context;
    struct launch l = c->launch;
    l.scratch = p->bias_gradient != NULL ? exec_scratch(x, workspace_column_sum(p->k, p->m)) : NULL;
    const struct product_plan *plan = plan_of(x, op, &l, p);
    if (plan == NULL) {
        return;
    }
    const struct product_tools *tools = x->beside ? &c->products->beside : &c->products->tools;
    cublasStatus_t e = cuda_plan_run(plan, tools, &l, p);
    x->served_by = SERVED_BY[plan->form];
    x->served_why = why_of(p, x->served_why);
    exec_queued(x, op);
    if (e != CUBLAS_STATUS_SUCCESS) {
        exec_fail(x, STATUS_INTERNAL, op, "cuBLASLt: %s", cublasLtGetStatusString(e));
    }
}
