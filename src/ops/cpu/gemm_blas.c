/* Matrix products by a BLAS, one sgemm call per tile; bf16 operands are converted, inner range by inner
 * range.
 *
 * The library is loaded at the first product, and OpenBLAS is set by its environment variable not to start
 * threads.  Tiles already keep every thread busy; and if OpenBLAS, loaded with the program, cannot start a
 * thread or allocate its buffer of many MiB, it ends the process (blas_thread_init, blas_thread_server). */
#include "dev/host_memory.h"
#include "ops/cpu/cpu_isa.h"
#include "ops/cpu/gemm_backend.h"

#include <cblas.h>
#include <dlfcn.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { PANEL_K = 256 };

/* The buffer that OpenBLAS maps for each multiplying thread (BUFFER_SIZE of its x86-64 kernels); it retries
 * forever if it fails. */
static const size_t BUFFER_BYTES = (size_t)128 << 20;

static const char THREADS_VARIABLE[] = "OPENBLAS_NUM_THREADS", CORE_VARIABLE[] = "OPENBLAS_CORETYPE";

/* cblas_sgemm, whose enums are ints. */
typedef void sgemm_function(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

static struct {
    sgemm_function *sgemm;
    char *(*config)(void); /* OpenBLAS only */
    int n_buffers;         /* buffers that there was memory for */
    bool is_anothers;      /* the program around kiln had loaded it before */
} lib;

/* A variable that has another value while the library is loaded: child processes inherit what it was. */
struct variable {
    const char *name;
    char *before; /* NULL: it was not set */
};

static struct variable set_variable(const char *name, const char *value)
{
    const char *given = getenv(name);
    struct variable v = {name, given == NULL ? NULL : strdup(given)};
    setenv(name, value, 1);
    return v;
}

static void restore_variable(struct variable *v)
{
    if (v->before == NULL) {
        unsetenv(v->name);
    } else {
        setenv(v->name, v->before, 1);
    }
    free(v->before);
}

/* OpenBLAS's name for a processor with no more than the instruction set that KILN_ISA chose; NULL: it chooses
 * itself. */
static const char *core_type(void)
{
    static const char *const cores[] = {"Prescott", "Haswell", "SkylakeX", "Cooperlake"};
    return cpu_isa_is_limited() && getenv(CORE_VARIABLE) == NULL ? cores[cpu_isa_best()] : NULL;
}

static void *load(void)
{
    const char *core = core_type();
    struct variable threads = set_variable(THREADS_VARIABLE, "1"), limit = {NULL, NULL};
    if (core != NULL) {
        limit = set_variable(CORE_VARIABLE, core);
    }
    void *library = dlopen(KILN_BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL); /* NULL: a static program has it */
    if (core != NULL) {
        restore_variable(&limit);
    }
    restore_variable(&threads);
    return library;
}

/* Whether the program around kiln, numpy for one, has loaded the library before, with its own threads and
 * core type. */
static bool is_loaded(void)
{
    void *library = dlopen(KILN_BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library != NULL) {
        dlclose(library);
    }
    return library != NULL;
}

static bool blas_open(void)
{
    lib.is_anothers = is_loaded();
    void *library = load();
    if (library != NULL) {
        *(void **)&lib.sgemm = dlsym(library, "cblas_sgemm");
        *(void **)&lib.config = dlsym(library, "openblas_get_config");
    }
    return lib.sgemm != NULL;
}

static const char *blas_version(void)
{
    return lib.config == NULL ? NULL : lib.config();
}

static bool blas_can(enum dtype ab_dtype, enum dtype c_dtype)
{
    return ab_dtype == DTYPE_BF16 || (ab_dtype == DTYPE_F32 && c_dtype == DTYPE_F32);
}

static bool is_f32(const struct gemm *t)
{
    return t->ab_dtype == DTYPE_F32 && t->c_dtype == DTYPE_F32;
}

/* On Zen 3 OpenBLAS takes 0.88 of oneDNN's time for a step of BERT-mini in fp32, but not with
 * threads of its own beside kiln's. */
static bool blas_goes_first(void)
{
    return lib.config != NULL && !lib.is_anothers && !cpu_isa_has_avx512();
}

/* Whether the product goes to scratch first: C is bf16, or is added to. C += A B has to add a finished sum
 * (docs/decisions/0039_ranks.md), but a BLAS adds to C block by block of the inner dimension. */
static bool goes_apart(const struct gemm *t)
{
    return t->accumulate || t->c_dtype == DTYPE_BF16;
}

/* Layout of the lane: the product, if it goes apart; a panel of A and a panel of B, if they are not fp32. */
static const void *blas_prepare(const struct gemm *t, size_t *lane_bytes)
{
    int threads = omp_get_max_threads();
    if (lib.n_buffers < threads && !host_memory_can_map((size_t)threads * BUFFER_BYTES)) {
        return gemm_no_memory;
    }
    lib.n_buffers = lib.n_buffers < threads ? threads : lib.n_buffers;
    int64_t floats = is_f32(t) ? 0 : (t->m + t->n) * PANEL_K;
    floats += goes_apart(t) ? t->m * t->n : 0;
    *lane_bytes = (size_t)floats * sizeof(float);
    return "BLAS";
}

static void multiply(const struct gemm *t, float beta)
{
    lib.sgemm(CblasRowMajor, t->a_transposed ? CblasTrans : CblasNoTrans,
              t->b_transposed ? CblasTrans : CblasNoTrans, (int)t->m, (int)t->n, (int)t->k, 1.0f, t->a,
              (int)t->a_stride, t->b, (int)t->b_stride, beta, t->c, (int)t->c_stride);
}

/* Puts the bias into C before the sum over k, and returns the beta: 1, or 0 if there is no bias. */
static float begin(const struct gemm *t)
{
    for (int64_t i = 0; t->bias != NULL && i < t->m; i++) {
        memcpy((float *)t->c + i * t->c_stride, t->bias, (size_t)t->n * sizeof(float));
    }
    return t->bias != NULL ? 1.0f : 0.0f;
}

/* A and B, in bf16, become fp32 panel by panel. */
static void multiply_bf16(const struct gemm *t, float *panels)
{
    const struct gemm_convert *convert = gemm_convert();
    const uint16_t *t_a = t->a, *t_b = t->b;
    struct gemm s = *t;
    float *a = panels, *b = a + t->m * PANEL_K;
    s.a = a;
    s.b = b;
    float beta = begin(&s);
    for (int64_t l = 0; l < t->k; l += PANEL_K) {
        s.k = t->k - l < PANEL_K ? t->k - l : PANEL_K;
        s.a_stride = t->a_transposed ? t->m : s.k;
        s.b_stride = t->b_transposed ? s.k : t->n;
        convert->from_bf16(a, t_a + l * (t->a_transposed ? t->a_stride : 1), t->a_stride,
                           t->a_transposed ? s.k : t->m, s.a_stride);
        convert->from_bf16(b, t_b + l * (t->b_transposed ? 1 : t->b_stride), t->b_stride,
                           t->b_transposed ? t->n : s.k, s.b_stride);
        multiply(&s, l > 0 ? 1.0f : beta);
    }
}

static bool blas_tile(const void *handle, const struct gemm *t, void *lane)
{
    (void)handle;
    struct gemm s = *t;
    float *panels = lane;
    if (goes_apart(t)) {
        s.c = lane;
        s.c_stride = t->n;
        panels += t->m * t->n;
    }
    if (is_f32(t)) {
        multiply(&s, begin(&s));
    } else {
        multiply_bf16(&s, panels);
    }
    if (t->accumulate) {
        gemm_add_product(t, lane);
    } else if (goes_apart(t)) {
        gemm_convert()->to_bf16(t->c, lane, t->c_stride, t->m, t->n);
    }
    return true;
}

const struct gemm_backend gemm_blas = {
    .name = "BLAS",
    .version = blas_version,
    .open = blas_open,
    .can = blas_can,
    .prepare = blas_prepare,
    .tile = blas_tile,
    .goes_first = blas_goes_first,
};
