#include "ops/cuda/cuda_choices.h"

#include "ops/cuda/attention_choice.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UPS = 3 };

/* Bits depend on the chip, on the number of its multiprocessors and on the library's version (cuBLAS documentation,
 * results reproducibility). */
static void name_machine(char machine[CUDA_CHOICES_MACHINE_BYTES])
{
    struct cudaDeviceProp p = {.name = "no GPU"};
    int driver = 0;
    cudaGetDeviceProperties(&p, 0);
    cudaDriverGetVersion(&driver);
    snprintf(machine, CUDA_CHOICES_MACHINE_BYTES, "%.64s, %d multiprocessors, driver %d, cuBLASLt %zu",
             p.name, p.multiProcessorCount, driver, cublasLtGetVersion());
    for (char *c = machine; *c != '\0'; c++) {
        *c = *c == '\t' || *c == '\n' ? ' ' : *c;
    }
}

struct status cuda_choices_open(struct cuda_choices **choices)
{
    struct cuda_choices *c = calloc(1, sizeof *c);
    char path[PRODUCT_PATH_BYTES];
    *choices = c;
    if (c == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the choices of kernels");
    }
    name_machine(c->machine);
    product_cache_shared_path(path);
    product_cache_open(&c->cache, path);
    for (int i = 0; i <= CUDA_CHOICES_RUNS; i++) {
        if (cudaEventCreate(&c->events[i]) != cudaSuccess) {
            return status_error(STATUS_INTERNAL, "the GPU has no events");
        }
    }
    return status_ok();
}

void cuda_choices_close(struct cuda_choices *c)
{
    if (c == NULL) {
        return;
    }
    for (int i = 0; i <= CUDA_CHOICES_RUNS; i++) {
        if (c->events[i] != NULL) {
            cudaEventDestroy(c->events[i]);
        }
    }
    product_cache_close(&c->cache);
    free(c);
}

void cuda_choices_keep_in(struct cuda_choices *c, const char *directory)
{
    char path[PRODUCT_PATH_BYTES];
    if ((size_t)snprintf(path, sizeof path, "%s/cublaslt.cache", directory) < sizeof path) {
        product_cache_follow(&c->cache, path);
    }
}

static double median(float v[CUDA_CHOICES_RUNS])
{
    for (int i = 1; i < CUDA_CHOICES_RUNS; i++) {
        for (int j = i; j > 0 && v[j] < v[j - 1]; j--) {
            float less = v[j];
            v[j] = v[j - 1];
            v[j - 1] = less;
        }
    }
    return (double)v[CUDA_CHOICES_RUNS / 2];
}

double cuda_choices_time(const struct cuda_choices *c, cudaStream_t stream, bool (*run)(void *self),
                         void *self)
{
    float ms[CUDA_CHOICES_RUNS];
    bool runs = true;
    for (int i = 0; i < WARM_UPS && runs; i++) {
        runs = run(self);
    }
    for (int i = 0; i < CUDA_CHOICES_RUNS && runs; i++) {
        runs = cudaEventRecord(c->events[i], stream) == cudaSuccess && run(self);
    }
    runs = runs && cudaEventRecord(c->events[CUDA_CHOICES_RUNS], stream) == cudaSuccess;
    runs = cudaStreamSynchronize(stream) == cudaSuccess && runs;
    for (int i = 0; i < CUDA_CHOICES_RUNS && runs; i++) {
        runs = cudaEventElapsedTime(&ms[i], c->events[i], c->events[i + 1]) == cudaSuccess;
    }
    cudaGetLastError(); /* forgets why a candidate did not run; what breaks the device itself comes again */
    return runs ? 1e3 * median(ms) : (double)INFINITY;
}

bool cuda_choices_is_capturing(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status != cudaStreamCaptureStatusNone;
}

void cuda_choices_describe(char *text, size_t n)
{
    struct product_cache c;
    char path[PRODUCT_PATH_BYTES], machine[CUDA_CHOICES_MACHINE_BYTES];
    product_cache_shared_path(path);
    product_cache_open(&c, path);
    name_machine(machine);
    int64_t rows = product_cache_count(&c, machine, ""), attention = attention_count_kept(&c, machine);
    snprintf(text, n, "cuBLASLt %zu, %lld algorithms timed on this GPU kept in %s\n", cublasLtGetVersion(),
             (long long)(rows - attention), path[0] != '\0' ? path : "no file: there is no home");
    size_t used = strlen(text);
    attention_describe(text + used, n - used, &c, machine);
    product_cache_close(&c);
}
