#include "ops/cuda/table/cuda_events.h"

#include "ops/cuda/table/cuda_context.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

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

const struct device_clock cuda_events = {
    .open = open_marks, .close = close_marks, .mark = mark, .elapsed = elapsed};
