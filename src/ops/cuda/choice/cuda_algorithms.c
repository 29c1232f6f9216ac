#include "ops/cuda/choice/cuda_algorithms.h"

#include "core/fp8.h"
#include "core/log.h"
#include "ops/workspace.h"

#include <math.h>
#include <string.h>

/* For few rows there are more ways to fill the multiprocessors than for many: small tiles, and sums split
 * into parts. */
enum { CANDIDATES = 8, SHORT_CANDIDATES = 24, SHORT_ROWS = PRODUCT_SHORT_ROWS, MOST_ALIGNMENT = 256 };

/* The candidates for one form: the library's algorithms, or tiles of our kernel. */
struct candidates {
    int n;
    cublasLtMatmulHeuristicResult_t results[SHORT_CANDIDATES];
};

void cuda_plan_shape(struct product_shape *s, const struct cuda_product *p)
{
    bool rounded = p->bias != NULL && p->bias_dtype == p->c_dtype;
    uintptr_t bits = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c | MOST_ALIGNMENT;
    bits |= rounded ? (uintptr_t)p->bias : 0;
    memset(s, 0, sizeof *s); /* the gaps are compared too */
    s->m = p->m, s->n = p->n, s->k = p->k;
    s->c_stride = p->c_stride, s->a_stride = p->a_stride, s->b_stride = p->b_stride;
    s->alignment = (int64_t)(bits & (~bits + 1)); /* the lowest bit */
    s->c_dtype = p->c_dtype, s->a_dtype = p->a_dtype, s->b_dtype = p->b_dtype;
    s->a_transposed = p->a_transposed, s->b_transposed = p->b_transposed, s->accumulate = p->accumulate;
    s->tf32 = p->tf32 && p->a_dtype == DTYPE_F32;
    s->has_bias = p->bias != NULL, s->casts_bias = p->bias != NULL && !rounded, s->has_gelu = p->gelu != NULL,
    s->has_bias_gradient = p->bias_gradient != NULL;
    s->may_be_short = product_form_is_short(p) && cuda_short_product_is_possible();
}

bool cuda_plan_fits(const struct product_shape *s, enum product_form form, const struct cuda_product *p)
{
    return form == PRODUCT_SHORT ? s->may_be_short : product_form_fits(form, p);
}

/* For our own kernel the library's algorithm struct holds the tile's number. */
static void set_tile(cublasLtMatmulAlgo_t *algorithm, int tile)
{
    memset(algorithm, 0, sizeof *algorithm);
    algorithm->data[0] = (uint64_t)tile;
}

static enum launch_product_tile tile_of(const struct product_plan *p)
{
    return (enum launch_product_tile)p->algorithm.data[0];
}

static cudaDataType_t type_of(enum dtype t)
{
    switch (t) {
    case DTYPE_BF16: return CUDA_R_16BF;
    case DTYPE_F16: return CUDA_R_16F;
    case DTYPE_E4M3: return CUDA_R_8F_E4M3;
    case DTYPE_E5M2: return CUDA_R_8F_E5M2;
    default: return CUDA_R_32F;
    }
}

/* The library's order is column-major: it sees a stored row-major matrix [rows, cols] as cols x rows.  So it
 * is asked for C^T = B^T A^T. */
static cublasStatus_t make_layout(cublasLtMatrixLayout_t *layout, enum dtype dtype, int64_t rows,
                                  int64_t cols, int64_t stride)
{
    return cublasLtMatrixLayoutCreate(layout, type_of(dtype), (uint64_t)cols, (uint64_t)rows, stride);
}

static cublasStatus_t make_layouts(struct product_plan *p)
{
    const struct product_shape *s = &p->shape;
    int64_t b_rows = s->b_transposed ? s->n : s->k, a_rows = s->a_transposed ? s->k : s->m;
    cublasStatus_t e = make_layout(&p->left, s->b_dtype, b_rows, s->n + s->k - b_rows, s->b_stride);
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = make_layout(&p->right, s->a_dtype, a_rows, s->k + s->m - a_rows, s->a_stride);
    }
    return e == CUBLAS_STATUS_SUCCESS ? make_layout(&p->out, s->c_dtype, s->m, s->n, s->c_stride) : e;
}

static cublasStatus_t set(const struct product_plan *p, cublasLtMatmulDescAttributes_t name,
                          const void *value, size_t n)
{
    return cublasLtMatmulDescSetAttribute(p->operation, name, value, n);
}

/* The bias's gradient sums A, which is the library's second operand, its "B". product_forms.h says what
 * `room` holds. */
static cublasStatus_t set_epilogue(struct product_plan *p, void *room)
{
    cublasLtEpilogue_t epilogue = p->shape.has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_BGRADB;
    int32_t type = p->shape.has_bias ? (int32_t)type_of(p->shape.c_dtype) : (int32_t)CUDA_R_32F;
    cublasStatus_t e = set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = set(p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
    }
    return e == CUBLAS_STATUS_SUCCESS ? set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &room, sizeof room) : e;
}

/* The library's A is our B. */
static cublasStatus_t set_scales(const struct product_plan *p, const float *a_scale, const float *b_scale)
{
    cublasStatus_t e = set(p, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &b_scale, sizeof b_scale);
    return e == CUBLAS_STATUS_SUCCESS ? set(p, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &a_scale, sizeof a_scale)
                                      : e;
}

/* Sums of products of gradients are promoted to fp32 every few steps of k, those of forward products are not:
 * as Transformer Engine has it (_2X_ACC_FPROP, _2X_ACC_DGRAD and _2X_ACC_WGRAD of its module/base.py).  Until
 * the product runs, the address of `room` stands in for its scales. */
static cublasStatus_t set_fp8(const struct product_plan *p, const float *room)
{
    int8_t fast = p->shape.a_dtype == DTYPE_E4M3 && p->shape.b_dtype == DTYPE_E4M3;
    cublasStatus_t e = set(p, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
    return e == CUBLAS_STATUS_SUCCESS ? set_scales(p, room, room) : e;
}

cublasStatus_t cuda_plan_open(struct product_plan *p, const struct product_tools *t,
                              const struct product_shape *s, enum product_form form)
{
    cublasOperation_t left = s->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t right = s->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    memset(p, 0, sizeof *p);
    memcpy(&p->shape, s, sizeof *s);
    p->form = form;
    if (form == PRODUCT_SHORT) {
        return CUBLAS_STATUS_SUCCESS;
    }
    cublasComputeType_t compute = s->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasStatus_t e = cublasLtMatmulDescCreate(&p->operation, compute, CUDA_R_32F);
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = set(p, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof left);
    }
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = set(p, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof right);
    }
    if (e == CUBLAS_STATUS_SUCCESS && form == PRODUCT_EPILOGUE) {
        e = set_epilogue(p, t->room);
    }
    if (e == CUBLAS_STATUS_SUCCESS && dtype_is_fp8(s->a_dtype)) {
        e = set_fp8(p, t->room);
    }
    return e == CUBLAS_STATUS_SUCCESS ? make_layouts(p) : e;
}

void cuda_plan_open_short(struct product_plan *p, const struct product_shape *s, int tile)
{
    memset(p, 0, sizeof *p);
    memcpy(&p->shape, s, sizeof *s);
    p->form = PRODUCT_SHORT;
    set_tile(&p->algorithm, tile);
}

void cuda_plan_close(struct product_plan *p)
{
    cublasLtMatrixLayout_t layouts[] = {p->left, p->right, p->out};
    for (int i = 0; i < 3; i++) {
        if (layouts[i] != NULL) {
            cublasLtMatrixLayoutDestroy(layouts[i]);
        }
    }
    if (p->operation != NULL) {
        cublasLtMatmulDescDestroy(p->operation);
    }
    memset(p, 0, sizeof *p);
}

bool cuda_plan_check(const struct product_plan *p, const struct product_tools *t)
{
    cublasLtMatmulHeuristicResult_t r;
    if (p->form == PRODUCT_SHORT) {
        return p->shape.may_be_short && p->algorithm.data[0] < LAUNCH_PRODUCT_TILES;
    }
    return cublasLtMatmulAlgoCheck(t->handle, p->operation, p->left, p->right, p->out, p->out, &p->algorithm,
                                   &r) == CUBLAS_STATUS_SUCCESS &&
           r.workspaceSize <= t->workspace_bytes;
}

/* Sets the scales and vectors that the product reads and writes besides its matrices. */
static cublasStatus_t set_pointers(const struct product_plan *plan, const struct product_tools *t,
                                   const struct cuda_product *p)
{
    cublasStatus_t e = CUBLAS_STATUS_SUCCESS;
    if (dtype_is_fp8(p->a_dtype)) {
        e = set_scales(plan, p->a_scale, p->b_scale);
    }
    if (e == CUBLAS_STATUS_SUCCESS && plan->form == PRODUCT_EPILOGUE) {
        const void *vector = p->bias != NULL ? product_form_bias(p, t->room) : t->room;
        e = set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector, sizeof vector);
    }
    return e;
}

cublasStatus_t cuda_plan_run(const struct product_plan *plan, const struct product_tools *t,
                             const struct launch *l, const struct cuda_product *p)
{
    const float one = 1, beta = p->accumulate || plan->form == PRODUCT_BROADCAST ? 1 : 0;
    if (plan->form == PRODUCT_SHORT) {
        product_form_launch_short(l, tile_of(plan), p);
        return CUBLAS_STATUS_SUCCESS;
    }
    cublasStatus_t e = set_pointers(plan, t, p);
    if (e != CUBLAS_STATUS_SUCCESS) {
        return e;
    }
    product_form_before(l, plan->form, p, t->room);
    e = cublasLtMatmul(t->handle, plan->operation, &one, p->b, plan->left, p->a, plan->right, &beta, p->c,
                       plan->out, p->c, plan->out, &plan->algorithm, t->workspace, t->workspace_bytes,
                       l->stream);
    if (e == CUBLAS_STATUS_SUCCESS) {
        product_form_after(l, plan->form, p, t->room);
    }
    return e;
}

static cublasStatus_t set_preference(cublasLtMatmulPreference_t preference, const struct product_tools *t,
                                     uint32_t alignment)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasStatus_t e = cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &t->workspace_bytes, sizeof t->workspace_bytes);
    for (int i = 0; i < 4 && e == CUBLAS_STATUS_SUCCESS; i++) {
        e = cublasLtMatmulPreferenceSetAttribute(preference, alignments[i], &alignment, sizeof alignment);
    }
    return e;
}

/* The library also returns an error if there is none. */
static cublasStatus_t find_candidates(struct candidates *c, const struct product_plan *p,
                                      const struct product_tools *t)
{
    cublasLtMatmulPreference_t preference;
    c->n = 0;
    if (p->form == PRODUCT_SHORT) {
        for (; c->n < LAUNCH_PRODUCT_TILES; c->n++) {
            set_tile(&c->results[c->n].algo, c->n);
        }
        return CUBLAS_STATUS_SUCCESS;
    }
    cublasStatus_t e = cublasLtMatmulPreferenceCreate(&preference);
    if (e != CUBLAS_STATUS_SUCCESS) {
        return e;
    }
    e = set_preference(preference, t, (uint32_t)p->shape.alignment);
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = cublasLtMatmulAlgoGetHeuristic(
            t->handle, p->operation, p->left, p->right, p->out, p->out, preference,
            p->shape.m <= SHORT_ROWS ? SHORT_CANDIDATES : CANDIDATES, c->results, &c->n);
    }
    cublasLtMatmulPreferenceDestroy(preference);
    return e == CUBLAS_STATUS_SUCCESS && c->n == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : e;
}

struct trial {
    const struct product_plan *plan;
    const struct product_tools *t;
    const struct launch *l;
    const struct cuda_product *p;
};

static bool run_trial(void *self)
{
    const struct trial *t = self;
    return cuda_plan_run(t->plan, t->t, t->l, t->p) == CUBLAS_STATUS_SUCCESS && cuda_launch_error() == NULL;
}

/* Scratch in device memory to add to while timing, instead of the real result; NULL if none is needed or
 * available. */
static void *divert_sums(struct cuda_product *trial, const struct launch *l)
{
    size_t sums = trial->accumulate ? (size_t)(trial->m * trial->c_stride) * dtype_bytes(trial->c_dtype) : 0;
    size_t gradient = trial->bias_gradient != NULL ? (size_t)trial->m * sizeof(float) : 0;
    void *scratch = NULL;
    sums = (sums + MOST_ALIGNMENT - 1) / MOST_ALIGNMENT * MOST_ALIGNMENT;
    if (sums + gradient == 0) {
        return NULL;
    }
    if (cudaMalloc(&scratch, sums + gradient) != cudaSuccess ||
        cudaMemsetAsync(scratch, 0, sums + gradient, l->stream) != cudaSuccess) {
        cudaGetLastError();
        cudaFree(scratch);
        return NULL;
    }
    trial->c = trial->accumulate ? scratch : trial->c;
    trial->bias_gradient = trial->bias_gradient != NULL ? (float *)((char *)scratch + sums) : NULL;
    return scratch;
}

/* The best candidate of a search so far. */
struct finding {
    bool any;
    enum product_form form;
    cublasLtMatmulAlgo_t algorithm;
    double micros;
    cublasStatus_t why_not;
};

/* Times the candidates of a form, and keeps the fastest; with choices == NULL it takes the first
 * candidate. */
static void try_form(struct finding *f, const struct product_tools *t, struct cuda_choices *choices,
                     const struct launch *l, const struct product_shape *s,
                     const struct cuda_product *product, enum product_form form)
{
    struct product_plan plan;
    struct candidates c = {0};
    struct trial trial = {&plan, t, l, product};
    cublasStatus_t e = cuda_plan_open(&plan, t, s, form);
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = find_candidates(&c, &plan, t);
    }
    f->why_not = e == CUBLAS_STATUS_SUCCESS ? f->why_not : e;
    for (int i = 0; i < (choices != NULL ? c.n : 1) && e == CUBLAS_STATUS_SUCCESS; i++) {
        plan.algorithm = c.results[i].algo;
        double micros = choices != NULL ? cuda_choices_time(choices, l->stream, run_trial, &trial) : 0;
        if (isfinite(micros) && (!f->any || micros < f->micros)) {
            *f = (struct finding){true, form, plan.algorithm, micros, f->why_not};
        }
    }
    cuda_plan_close(&plan);
}

cublasStatus_t cuda_algorithm_search(struct product_plan *best, double *micros, const struct product_tools *t,
                                     struct cuda_choices *choices, const struct launch *l,
                                     const struct product_shape *shape, const struct cuda_product *p)
{
    struct cuda_product trial = *p;
    struct finding f = {.why_not = CUBLAS_STATUS_NOT_SUPPORTED};
    memset(best, 0, sizeof *best);
    void *scratch = divert_sums(&trial, l);
    bool timed = scratch != NULL || (!p->accumulate && p->bias_gradient == NULL);
    for (int form = 0; form < PRODUCT_FORMS; form++) {
        if (cuda_plan_fits(shape, (enum product_form)form, p)) {
            try_form(&f, t, timed ? choices : NULL, l, shape, &trial, (enum product_form)form);
        }
    }
    cudaFree(scratch);
    if (!f.any) {
        return f.why_not;
    }
    if (!timed) {
        log_warning("no memory on the GPU to time a product of %lld x %lld x %lld: the library's first "
                    "choice is taken",
                    (long long)p->m, (long long)p->n, (long long)p->k);
    }
    cublasStatus_t e = cuda_plan_open(best, t, shape, f.form);
    best->algorithm = f.algorithm;
    *micros = f.micros;
    return e;
}
