/* cuda_device: memory and streams of one NVIDIA GPU, the one that CUDA_VISIBLE_DEVICES puts first; and the
 * one symbol that libkiln_cuda.so exports. */
#include "ops/backend.h"
#include "ops/cuda/choice/attention_choice.h"
#include "ops/cuda/choice/cuda_choices.h"
#include "ops/cuda/table/cuda_context.h"
#include "ops/cuda/table/cuda_products.h"
#include "ops/cuda/table/cuda_slots.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static struct status failure(enum status_code code, const char *what, cudaError_t e)
{
    return status_error(code, "%s: %s (%s)", what, cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- a device_clock of events on the stream of a context ---- */

struct cuda_marks {
    int64_t n;            /* created */
    cudaEvent_t events[]; /* [n] */
};

static void close_marks(void *context)
{
    struct cuda_context *c = context;
    for (int64_t i = 0; c->marks != NULL && i < c->marks->n; i++) {
        cudaEventDestroy(c->marks->events[i]);
    }
    free(c->marks);
    c->marks = NULL;
}

static struct status open_marks(void *context, int64_t n)
{
    struct cuda_context *c = context;
    close_marks(c);
    c->marks = calloc(1, sizeof *c->marks + (size_t)n * sizeof c->marks->events[0]);
    if (c->marks == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %lld marks", (long long)n);
    }
    while (c->marks->n < n) {
        cudaError_t e = cudaEventCreate(&c->marks->events[c->marks->n]);
        if (e != cudaSuccess) {
            struct status s = status_error(STATUS_MEMORY, "event %lld of %lld on the GPU: %s",
                                           (long long)c->marks->n, (long long)n, cudaGetErrorString(e));
            close_marks(c);
            return s;
        }
        c->marks->n++;
    }
    return status_ok();
}

static void mark(void *context, int64_t i)
{
    struct cuda_context *c = context;
    cudaEventRecord(c->marks->events[i], c->launch.stream);
}

/* The runtime returns milliseconds, with a resolution of half a microsecond. */
static struct status elapsed(void *context, int64_t from, int64_t to, int64_t *ns)
{
    struct cuda_context *c = context;
    float ms = 0;
    cudaError_t e = cudaEventElapsedTime(&ms, c->marks->events[from], c->marks->events[to]);
    *ns = (int64_t)((double)ms * 1e6 + 0.5);
    return e == cudaSuccess ? status_ok()
                            : status_error(STATUS_INTERNAL, "the marks %lld and %lld on the GPU: %s",
                                           (long long)from, (long long)to, cudaGetErrorString(e));
}

static const struct device_clock cuda_events = {
    .open = open_marks, .close = close_marks, .mark = mark, .elapsed = elapsed};

/* ---- memory ---- */

static size_t cuda_free_bytes(void)
{
    size_t available = 0, total = 0;
    return cudaMemGetInfo(&available, &total) == cudaSuccess ? available : 0;
}

static struct status cuda_allocate(void **memory, size_t bytes, const char *what)
{
    size_t available = cuda_free_bytes();
    *memory = NULL;
    if (bytes > available) {
        return status_error(
            STATUS_MEMORY,
            "%s needs %.2f GiB, but only %.2f GiB of the GPU's memory are free; lower the micro-batch (raise "
            "--gradient_accumulation_steps), or add --checkpoint_activations",
            what, (double)bytes / 0x1p30, (double)available / 0x1p30);
    }
    cudaError_t e = cudaMalloc(memory, bytes > 0 ? bytes : 1);
    if (e == cudaSuccess) {
        e = cudaMemset(*memory, 0, bytes);
    }
    if (e == cudaSuccess) {
        e = cudaDeviceSynchronize(); /* contexts' streams do not wait for cudaMemset */
    }
    if (e == cudaSuccess) {
        return status_ok();
    }
    cudaFree(*memory);
    *memory = NULL;
    return failure(STATUS_MEMORY, what, e);
}

static void cuda_release(void *memory, size_t bytes)
{
    (void)bytes;
    cudaFree(memory);
}

static void cuda_close(void *context)
{
    struct cuda_context *c = context;
    cuda_queue_close(c);
    cuda_products_close(c->products);
    cuda_choices_close(c->choices);
    cuda_events.close(c);
    cuda_spans_free(c);
    cudaFreeHost(c->launch.fault);
    if (c->launch.stream != NULL) {
        cudaStreamDestroy(c->launch.stream);
    }
    free(c);
}

static struct status open_parts(struct cuda_context *c)
{
    TRY(attention_kernel_asked_for(&c->attention_asked_for));
    cudaError_t e = cudaStreamCreateWithFlags(&c->launch.stream, cudaStreamNonBlocking);
    if (e == cudaSuccess) {
        e = cudaHostAlloc((void **)&c->launch.fault, LAUNCH_FAULT_WORDS * sizeof(int32_t),
                          cudaHostAllocMapped);
    }
    if (e != cudaSuccess) {
        return failure(STATUS_UNAVAILABLE, "the GPU cannot be opened", e);
    }
    memset(c->launch.fault, 0, LAUNCH_FAULT_WORDS * sizeof(int32_t));
    TRY(cuda_queue_open(c));
    TRY(cuda_choices_open(&c->choices));
    return cuda_products_open(&c->products, c->choices);
}

static struct status cuda_open(void **context)
{
    struct cuda_context *c = calloc(1, sizeof *c);
    *context = NULL;
    if (c == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a GPU's context");
    }
    struct status s = open_parts(c);
    if (failed(s)) {
        cuda_close(c);
        return s;
    }
    *context = c;
    return s;
}

/* An error of any earlier kernel shows here. */
static struct status cuda_synchronize(void *context)
{
    struct cuda_context *c = context;
    cudaError_t e = cudaStreamSynchronize(c->launch.stream);
    return e == cudaSuccess
               ? cuda_context_fault(c)
               : failure(STATUS_INTERNAL, "a kernel or copy failed; the last checkpoint is intact", e);
}

static struct status copy(void *context, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    struct cuda_context *c = context;
    cudaError_t e = cudaMemcpyAsync(to, from, bytes, kind, c->launch.stream);
    return e == cudaSuccess ? cuda_synchronize(context) : failure(STATUS_INTERNAL, "a copy failed", e);
}

static struct status cuda_copy_in(void *context, void *on_device, const void *on_host, size_t bytes)
{
    return copy(context, on_device, on_host, bytes, cudaMemcpyHostToDevice);
}

static struct status cuda_copy_out(void *context, void *on_host, const void *on_device, size_t bytes)
{
    return copy(context, on_host, on_device, bytes, cudaMemcpyDeviceToHost);
}

static void cuda_keep_in(void *context, const char *directory)
{
    cuda_choices_keep_in(((struct cuda_context *)context)->choices, directory);
}

static struct status cuda_choices_of_run(void *context, char **text, size_t *n)
{
    return product_cache_text_of_run(&((struct cuda_context *)context)->choices->cache, text, n);
}

static void cuda_take_choices(void *context, const void *text, size_t n, const char *source)
{
    cuda_choices_take(((struct cuda_context *)context)->choices, text, n, source);
}

/* Two tables, since a table says what its GPU supports. */
#define DEVICE(fp8)                                                                                          \
    {                                                                                                        \
        .name = "cuda", .computes_in_f16 = true, .takes_rounded_biases = true, .computes_in_fp8 = (fp8),     \
        .sums_in_attention = true, .keeps_dropout_bits = true, .open = cuda_open, .close = cuda_close,       \
        .allocate = cuda_allocate, .release = cuda_release, .copy_in = cuda_copy_in,                         \
        .copy_out = cuda_copy_out, .copy_within = cuda_queue_copy_within, .stage = cuda_queue_stage,         \
        .send = cuda_queue_send, .graphs = &cuda_queue_graphs, .beside = &cuda_queue_beside,                 \
        .streams = &cuda_streams, .synchronize = cuda_synchronize, .clock = &cuda_events,                    \
        .free_bytes = cuda_free_bytes, .overhead_bytes = CUDA_OVERHEAD_BYTES, .keep_in = cuda_keep_in,       \
        .choices = cuda_choices_of_run, .take_choices = cuda_take_choices,                                   \
    }

static const struct device with_fp8 = DEVICE(true), without_fp8 = DEVICE(false);

/* The GPU, described in `text` [n]; STATUS_USAGE says why there is none that this build can use. */
static struct status cuda_device_probe(const struct device **device, char *text, size_t n)
{
    int count = 0, driver = 0;
    struct cudaDeviceProp p;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e == cudaErrorInsufficientDriver) {
        cudaDriverGetVersion(&driver);
        return driver == 0
                   ? status_error(STATUS_UNAVAILABLE, "there is no NVIDIA driver")
                   : status_error(
                         STATUS_UNAVAILABLE,
                         "the NVIDIA driver is for CUDA %d.%d, older than this build's %d.%d; update it",
                         driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                         CUDART_VERSION % 1000 / 10);
    }
    if (e != cudaSuccess || count == 0) {
        return e == cudaSuccess || e == cudaErrorNoDevice
                   ? status_error(STATUS_UNAVAILABLE, "there is no NVIDIA GPU")
                   : failure(STATUS_UNAVAILABLE, "the GPU cannot be used", e);
    }
    e = cudaGetDeviceProperties(&p, 0);
    if (e != cudaSuccess) {
        return failure(STATUS_UNAVAILABLE, "the GPU cannot be queried", e);
    }
    if (!cuda_launch_is_possible()) {
        return status_error(STATUS_UNAVAILABLE,
                            "%s has compute capability %d.%d, for which this kiln has no kernels; configure "
                            "with -DKILN_CUDA_ARCHITECTURES=%d%d",
                            p.name, p.major, p.minor, p.major, p.minor);
    }
    *device = cuda_launch_fp8_is_possible() ? &with_fp8 : &without_fp8;
    snprintf(text, n, "%s, compute capability %d.%d, %d multiprocessors, %.1f GiB", p.name, p.major, p.minor,
             p.multiProcessorCount, (double)p.totalGlobalMem / 0x1p30);
    return status_ok();
}

extern const struct backend_entry kiln_cuda_entry;

__attribute__((visibility("default"))) const struct backend_entry kiln_cuda_entry = {
    BACKEND_ENTRY_LAYOUT,
    .ops = &ops_cuda,
    .probe = cuda_device_probe,
    .log_to = cuda_log_to,
    .describe = cuda_choices_describe,
};
