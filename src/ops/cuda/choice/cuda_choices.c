#include "ops/cuda/choice/cuda_choices.h"

#include "ops/cuda/choice/attention_choice.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Results depend, in their bits, on the chip, the number of its multiprocessors and the library's version
 * (cuBLAS documentation, results reproducibility). */
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

static bool mark(void *self, int i)
{
    const struct cuda_choices *c = self;
    return cudaEventRecord(c->events[i], c->stream) == cudaSuccess;
}

static bool wait(void *self)
{
    return cudaStreamSynchronize(((const struct cuda_choices *)self)->stream) == cudaSuccess;
}

static double elapsed(void *self, int from, int to)
{
    const struct cuda_choices *c = self;
    float ms;
    return cudaEventElapsedTime(&ms, c->events[from], c->events[to]) == cudaSuccess ? 1e3 * (double)ms : -1;
}

static bool record_begin(void *self)
{
    const struct cuda_choices *c = self;
    return cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
}

static void *record_end(void *self)
{
    const struct cuda_choices *c = self;
    cudaGraph_t captured = NULL;
    cudaGraphExec_t runnable = NULL;
    bool fine = cudaStreamEndCapture(c->stream, &captured) == cudaSuccess &&
                cudaGraphInstantiateWithFlags(&runnable, captured, 0) == cudaSuccess;
    if (captured != NULL) {
        cudaGraphDestroy(captured);
    }
    return fine ? runnable : NULL;
}

static bool replay(void *self, void *recording)
{
    return cudaGraphLaunch(recording, ((const struct cuda_choices *)self)->stream) == cudaSuccess;
}

static void forget(void *self, void *recording)
{
    (void)self;
    cudaGraphExecDestroy(recording);
}

struct status cuda_choices_open(struct cuda_choices **choices)
{
    struct cuda_choices *c = calloc(1, sizeof *c);
    char path[PRODUCT_PATH_BYTES];
    *choices = c;
    if (c == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the choices of kernels");
    }
    c->timing =
        (struct choice_stream){mark, wait, elapsed, record_begin, record_end, replay, forget, c, false};
    name_machine(c->machine);
    product_cache_shared_path(path);
    product_cache_open(&c->cache, path);
    for (int i = 0; i <= CHOICE_TIMING_RUNS; i++) {
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
    for (int i = 0; i <= CHOICE_TIMING_RUNS; i++) {
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

void cuda_choices_take(struct cuda_choices *c, const void *text, size_t n, const char *source)
{
    product_cache_take(&c->cache, text, n, source);
    product_cache_tell_of_machine(&c->cache, c->machine, source);
}

double cuda_choices_time(struct cuda_choices *c, cudaStream_t stream, bool (*run)(void *self), void *self)
{
    c->stream = stream;
    double micros = choice_timing_run(&c->timing, run, self);
    /* clears the error of a candidate that did not run; an error of the device itself would come again */
    cudaGetLastError();
    return micros;
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
             (long long)(rows - attention), path[0] != '\0' ? path : "no file: there is no home directory");
    size_t used = strlen(text);
    attention_describe(text + used, n - used, &c, machine);
    product_cache_close(&c);
}
