
#include "ops/cuda/table/cuda_context.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

struct stream {
    const struct cuda_context *of;
    cudaStream_t stream;
    /* the end of the context's work, and of this stream's, when they were last waited for */
    cudaEvent_t before, after;
    int n_marks;         /* created */
    cudaEvent_t marks[]; /* [n_marks] */
};

static struct status answer(const char *what, cudaError_t e)
{
    return e == cudaSuccess ? status_ok()
                            : status_error(STATUS_INTERNAL, "%s: %s (%s)", what, cudaGetErrorString(e),
                                           cudaGetErrorName(e));
}

/* Work that runs when a stream or an event is destroyed ends first; then its resources are given back. */
static void close_stream(void *stream)
{
    struct stream *s = stream;
    for (int i = 0; i < s->n_marks; i++) {
        cudaEventDestroy(s->marks[i]);
    }
    if (s->before != NULL) {
        cudaEventDestroy(s->before);
    }
    if (s->after != NULL) {
        cudaEventDestroy(s->after);
    }
    if (s->stream != NULL) {
        cudaStreamDestroy(s->stream);
    }
    free(s);
}

/* The stream has the highest priority: the few blocks of a sum are not to wait for the thousands of a
 * backward. */
static cudaError_t open_parts(struct stream *s, int n_marks)
{
    int lowest = 0, highest = 0;
    cudaError_t e = cudaDeviceGetStreamPriorityRange(&lowest, &highest);
    if (e == cudaSuccess) {
        e = cudaStreamCreateWithPriority(&s->stream, cudaStreamNonBlocking, highest);
    }
    if (e == cudaSuccess) {
        e = cudaEventCreateWithFlags(&s->before, cudaEventDisableTiming);
    }
    if (e == cudaSuccess) {
        e = cudaEventCreateWithFlags(&s->after, cudaEventDisableTiming);
    }
    while (e == cudaSuccess && s->n_marks < n_marks) {
        e = cudaEventCreateWithFlags(&s->marks[s->n_marks], cudaEventDisableTiming);
        s->n_marks += e == cudaSuccess;
    }
    return e;
}

static struct status open_stream(void **stream, void *context, int n_marks)
{
    struct stream *s = calloc(1, sizeof *s + (size_t)n_marks * sizeof s->marks[0]);
    *stream = NULL;
    if (s == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a stream");
    }
    s->of = context;
    struct status status = answer("a stream for ranks' sums cannot be made", open_parts(s, n_marks));
    if (failed(status)) {
        close_stream(s);
        return status;
    }
    *stream = s;
    return status_ok();
}

static void *handle(void *stream)
{
    return ((struct stream *)stream)->stream;
}

static struct status follow(void *stream)
{
    struct stream *s = stream;
    cudaError_t e = cudaEventRecord(s->before, s->of->launch.stream);
    return answer("a stream does not wait for its context",
                  e == cudaSuccess ? cudaStreamWaitEvent(s->stream, s->before, 0) : e);
}

static struct status lead(void *stream)
{
    struct stream *s = stream;
    cudaError_t e = cudaEventRecord(s->after, s->stream);
    return answer("a context does not wait for a stream",
                  e == cudaSuccess ? cudaStreamWaitEvent(s->of->launch.stream, s->after, 0) : e);
}

static struct status mark(void *stream, int i)
{
    struct stream *s = stream;
    return answer("a mark of a stream cannot be set", cudaEventRecord(s->marks[i], s->stream));
}

static struct status reached(void *stream, int i, bool *is_reached)
{
    cudaError_t e = cudaEventQuery(((struct stream *)stream)->marks[i]);
    *is_reached = e == cudaSuccess;
    return e == cudaErrorNotReady ? status_ok() : answer("a mark of a stream cannot be read", e);
}

static struct status chip(void *context, char name[DEVICE_CHIP_BYTES])
{
    int device = 0;
    (void)context;
    cudaError_t e = cudaGetDevice(&device);
    return answer("the GPU does not say which it is",
                  e == cudaSuccess ? cudaDeviceGetPCIBusId(name, DEVICE_CHIP_BYTES, device) : e);
}

const struct device_streams cuda_streams = {.open = open_stream,
                                            .close = close_stream,
                                            .handle = handle,
                                            .follow = follow,
                                            .lead = lead,
                                            .mark = mark,
                                            .reached = reached,
                                            .chip = chip};
