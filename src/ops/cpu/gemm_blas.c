/* Matrix products by a BLAS, one sgemm call per tile; bf16 operands are converted, inner range by inner
 * range.
 *
 * The library is loaded at the first product, and OpenBLAS is told by its environment variable not to start
 * threads.  Tiles already keep every thread busy; and if OpenBLAS, loaded with the program, cannot start a
 * thread or allocate its buffer of many MiB, it ends the process (blas_thread_init, blas_thread_server). */
#include "dev/host_memory.h"
#include "ops/cpu/gemm_backend.h"
#include "ops/cpu/rows.h"

#include <cblas.h>
#include <dlfcn.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { PANEL_K = 256 };

/* The buffer that OpenBLAS maps for each multiplying thread (BUFFER_SIZE of its x86-64 kernels); it retries
 * forever if it fails. */
static const size_t BUFFER_BYTES = (size_t)128 << 20;

static const char THREADS_VARIABLE[] = "OPENBLAS_NUM_THREADS";

/* cblas_sgemm, whose enums are ints. */
typedef void sgemm_function(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

static struct {
    sgemm_function *sgemm;
    char *(*config)(void); /* OpenBLAS only */
    int n_buffers;         /* buffers that there was memory for */
} lib;

static void *load(void)
{
    const char *given = getenv(THREADS_VARIABLE);
    char *before = given == NULL ? NULL : strdup(given);
    setenv(THREADS_VARIABLE, "1", 1);
    void *library = dlopen(KILN_BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (before == NULL) {
        unsetenv(THREADS_VARIABLE);
    } else {
        setenv(THREADS_VARIABLE, before, 1); /* restored, since child processes inherit it */
    }
    free(before);
    return library;
}

static bool blas_open(void)
{
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
    (void)c_dtype;
    return ab_dtype == DTYPE_F32 || ab_dtype == DTYPE_BF16;
}

static bool is_f32(const struct gemm *t)
{
    return t->ab_dtype == DTYPE_F32 && t->c_dtype == DTYPE_F32;
}

/* Layout of the lane for a converted tile: a panel of A, a panel of B, C. */
static const void *blas_prepare(const struct gemm *t, size_t *lane_bytes)
{
    int threads = omp_get_max_threads();
    if (lib.n_buffers < threads && !host_memory_can_map((size_t)threads * BUFFER_BYTES)) {
        return gemm_no_memory;
    }
    lib.n_buffers = lib.n_buffers < threads ? threads : lib.n_buffers;
    int64_t floats = is_f32(t) ? 0 : (t->m + t->n) * PANEL_K + t->m * t->n;
    *lane_bytes = (size_t)floats * sizeof(float);
    return "BLAS";
}

static void multiply(const struct gemm *t, float beta)
{
    lib.sgemm(CblasRowMajor, t->a_transposed ? CblasTrans : CblasNoTrans,
              t->b_transposed ? CblasTrans : CblasNoTrans, (int)t->m, (int)t->n, (int)t->k, 1.0f, t->a,
              (int)t->a_stride, t->b, (int)t->b_stride, beta, t->c, (int)t->c_stride);
}

static void add_bias(const struct gemm *t)
{
    for (int64_t i = 0; i < t->m; i++) {
        float *row = (float *)t->c + i * t->c_stride;
        for (int64_t j = 0; j < t->n; j++) {
            row[j] += t->bias[j];
        }
    }
}

/* A [rows, cols] block of bf16 or fp32 as dense fp32. */
static void convert(float *out, const void *in, enum dtype dtype, int64_t first, int64_t stride, int64_t rows,
                    int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        if (dtype == DTYPE_BF16) {
            rows_from_bf16(out + i * cols, (const uint16_t *)in + first + i * stride, cols);
        } else {
            memcpy(out + i * cols, (const float *)in + first + i * stride, (size_t)cols * sizeof(float));
        }
    }
}

static void converted_tile(const struct gemm *t, float *lane)
{
    struct gemm s = *t;
    float *a = lane, *b = a + t->m * PANEL_K, *c = b + t->n * PANEL_K;
    s.a = a;
    s.b = b;
    s.c = c;
    s.c_stride = t->n;
    s.c_dtype = DTYPE_F32;
    if (t->accumulate) {
        convert(c, t->c, t->c_dtype, 0, t->c_stride, t->m, t->n);
    }
    for (int64_t l = 0; l < t->k; l += PANEL_K) {
        s.k = t->k - l < PANEL_K ? t->k - l : PANEL_K;
        s.a_stride = t->a_transposed ? t->m : s.k;
        s.b_stride = t->b_transposed ? s.k : t->n;
        convert(a, t->a, t->ab_dtype, t->a_transposed ? l * t->a_stride : l, t->a_stride,
                t->a_transposed ? s.k : t->m, s.a_stride);
        convert(b, t->b, t->ab_dtype, t->b_transposed ? l : l * t->b_stride, t->b_stride,
                t->b_transposed ? t->n : s.k, s.b_stride);
        multiply(&s, t->accumulate || l > 0 ? 1.0f : 0.0f);
    }
    if (t->bias != NULL) {
        add_bias(&s);
    }
    for (int64_t i = 0; i < t->m; i++) {
        const float *from = c + i * t->n;
        if (t->c_dtype == DTYPE_BF16) {
            rows_to_bf16((uint16_t *)t->c + i * t->c_stride, from, t->n);
        } else {
            memcpy((float *)t->c + i * t->c_stride, from, (size_t)t->n * sizeof(float));
        }
    }
}

static bool blas_tile(const void *handle, const struct gemm *t, void *lane)
{
    (void)handle;
    if (!is_f32(t)) {
        converted_tile(t, lane);
        return true;
    }
    multiply(t, t->accumulate ? 1.0f : 0.0f);
    if (t->bias != NULL) {
        add_bias(t);
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
};
