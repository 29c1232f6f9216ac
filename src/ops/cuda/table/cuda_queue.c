#include "ops/cuda/table/cuda_queue.h"

#include "core/log.h"
#include "ops/cuda/table/cuda_context.h"

#include <cuda_runtime_api.h>

static struct status answer(const char *what, cudaError_t e)
{
    return e == cudaSuccess ? status_ok()
                            : status_error(STATUS_INTERNAL, "%s: %s (%s)", what, cudaGetErrorString(e),
                                           cudaGetErrorName(e));
}

static struct status begin_capture(void *self)
{
    struct cuda_context *c = self;
    c->beside.n_pieces = c->beside.n_joined = 0; /* marks of another recording are not valid in this one */
    /* thread-local: other threads may continue to allocate, this one may not */
    return answer("recording cannot begin",
                  cudaStreamBeginCapture(c->launch.stream, cudaStreamCaptureModeThreadLocal));
}

static struct status end_capture(void *self, void **graph)
{
    struct cuda_context *c = self;
    cudaGraph_t captured = NULL;
    cudaGraphExec_t runnable = NULL;
    *graph = NULL;
    struct status s =
        answer("what was recorded is broken", cudaStreamEndCapture(c->launch.stream, &captured));
    if (!failed(s)) {
        s = answer("a recording cannot be made to run",
                   cudaGraphInstantiateWithFlags(&runnable, captured, 0));
    }
    if (captured != NULL) {
        cudaGraphDestroy(captured);
    }
    *graph = runnable;
    return s;
}

static struct status launch_graph(void *self, void *graph)
{
    struct cuda_context *c = self;
    return answer("a recording was not launched", cudaGraphLaunch(graph, c->launch.stream));
}

static void destroy_graph(void *self, void *graph)
{
    struct cuda_context *c = self;
    cudaStreamSynchronize(c->launch.stream); /* it may be running */
    cudaGraphExecDestroy(graph);
}

static const struct graph_runtime capture = {begin_capture, end_capture, launch_graph, destroy_graph};

static struct status open_beside(struct cuda_beside *b)
{
    cudaError_t e = cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking);
    if (e == cudaSuccess) {
        e = cudaEventCreateWithFlags(&b->begun, cudaEventDisableTiming);
    }
    for (int i = 0; i < CUDA_QUEUE_PIECES && e == cudaSuccess; i++) {
        e = cudaEventCreateWithFlags(&b->ended[i], cudaEventDisableTiming);
    }
    return answer("the stream for work beside cannot be made", e);
}

static void destroy_event(struct CUevent_st **event)
{
    if (*event != NULL) {
        cudaEventDestroy(*event);
        *event = NULL;
    }
}

static void close_beside(struct cuda_beside *b)
{
    destroy_event(&b->begun);
    for (int i = 0; i < CUDA_QUEUE_PIECES; i++) {
        destroy_event(&b->ended[i]);
    }
    if (b->stream != NULL) {
        cudaStreamDestroy(b->stream);
        b->stream = NULL;
    }
}

/* Records a launch followed by kernels that begin early, and runs the recording. */
static struct status try_early(struct cuda_context *c, float *numbers)
{
    void *graph = NULL;
    TRY(begin_capture(c));
    cuda_launch_early_probe(&c->launch, numbers);
    TRY(end_capture(c, &graph));
    struct status s = launch_graph(c, graph);
    cudaError_t e = cudaStreamSynchronize(c->launch.stream);
    destroy_graph(c, graph);
    return failed(s) ? s : answer("a recording of them failed", e);
}

/* Chips before compute capability 9.0 have no such launches. */
static bool begins_early(struct cuda_context *c)
{
    int device = 0, major = 0;
    void *numbers = NULL;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
        major < 9 || cudaMalloc(&numbers, 64) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    struct status s = try_early(c, numbers);
    cudaFree(numbers);
    if (failed(s)) {
        cudaGetLastError();
        log_warning("each kernel waits for the end of the one before, which is slower: %s", s.message);
    }
    return !failed(s);
}

struct status cuda_queue_open(struct cuda_context *c)
{
    cudaError_t e = cudaSuccess;
    c->graphs = (struct graph_cache){.runtime = &capture, .self = c};
    for (int i = 0; i < CUDA_QUEUE_PLACES && e == cudaSuccess; i++) {
        e = cudaEventCreateWithFlags(&c->staging.sent[i], cudaEventDisableTiming);
    }
    TRY(answer("the events of copies cannot be made", e));
    c->launch.begins_early = begins_early(c);
    return open_beside(&c->beside);
}

static void free_places(struct cuda_staging *s)
{
    for (int i = 0; i < CUDA_QUEUE_PLACES; i++) {
        if (s->places[i] != NULL) {
            cudaEventSynchronize(s->sent[i]);
            cudaFreeHost(s->places[i]);
            s->places[i] = NULL;
        }
    }
    s->bytes = 0;
}

void cuda_queue_close(struct cuda_context *c)
{
    graph_cache_clear(&c->graphs);
    free_places(&c->staging);
    close_beside(&c->beside);
    for (int i = 0; i < CUDA_QUEUE_PLACES; i++) {
        destroy_event(&c->staging.sent[i]);
    }
}

static struct status grow(struct cuda_staging *s, size_t bytes)
{
    free_places(s);
    for (int i = 0; i < CUDA_QUEUE_PLACES; i++) {
        cudaError_t e = cudaHostAlloc(&s->places[i], bytes, cudaHostAllocDefault);
        if (e != cudaSuccess) {
            s->places[i] = NULL;
            return status_error(STATUS_MEMORY, "%zu bytes of pinned memory for batches: %s (%s)", bytes,
                                cudaGetErrorString(e), cudaGetErrorName(e));
        }
    }
    s->bytes = bytes;
    return status_ok();
}

struct status cuda_queue_stage(void *context, void **on_host, size_t bytes)
{
    struct cuda_staging *s = &((struct cuda_context *)context)->staging;
    if (bytes > s->bytes) {
        TRY(grow(s, bytes));
    }
    s->turn = (s->turn + 1) % CUDA_QUEUE_PLACES;
    *on_host = s->places[s->turn];
    return answer("an earlier copy failed", cudaEventSynchronize(s->sent[s->turn]));
}

struct status cuda_queue_send(void *context, void *on_device, const void *on_host, size_t bytes)
{
    struct cuda_context *c = context;
    CHECK(on_host == c->staging.places[c->staging.turn], "only what was staged last can be sent");
    cudaError_t e = cudaMemcpyAsync(on_device, on_host, bytes, cudaMemcpyHostToDevice, c->launch.stream);
    if (e == cudaSuccess) {
        e = cudaEventRecord(c->staging.sent[c->staging.turn], c->launch.stream);
    }
    return answer("a batch was not copied", e);
}

struct status cuda_queue_copy_within(void *context, void *to, const void *from, size_t bytes)
{
    struct cuda_context *c = context;
    return answer("a copy within the GPU's memory failed",
                  cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, c->launch.stream));
}

static struct status graphs_begin(void *context, const void *key, size_t key_bytes, enum device_work *work)
{
    return graph_cache_begin(&((struct cuda_context *)context)->graphs, key, key_bytes, work);
}

static struct status graphs_cut(void *context, bool abandon)
{
    return graph_cache_cut(&((struct cuda_context *)context)->graphs, abandon);
}

static struct status graphs_next(void *context, enum device_work *work)
{
    return graph_cache_next(&((struct cuda_context *)context)->graphs, work);
}

static struct status graphs_end(void *context, bool abandon)
{
    return graph_cache_end(&((struct cuda_context *)context)->graphs, abandon);
}

static void graphs_keep(void *context, const struct device_call *call)
{
    graph_cache_keep(&((struct cuda_context *)context)->graphs, call);
}

static const struct device_call *graphs_kept(void *context)
{
    return graph_cache_kept(&((struct cuda_context *)context)->graphs);
}

const struct device_graphs cuda_queue_graphs = {graphs_begin, graphs_cut,  graphs_next,
                                                graphs_end,   graphs_keep, graphs_kept};

static struct status begin_beside(void *context)
{
    struct cuda_context *c = context;
    struct cuda_beside *b = &c->beside;
    cudaError_t e = cudaEventRecord(b->begun, c->launch.stream);
    if (e == cudaSuccess) {
        e = cudaStreamWaitEvent(b->stream, b->begun, 0);
    }
    b->main = c->launch.stream;
    c->launch.stream = b->stream;
    return answer("work beside cannot begin", e);
}

static struct status end_beside(void *context)
{
    struct cuda_context *c = context;
    struct cuda_beside *b = &c->beside;
    c->launch.stream = b->main;
    b->main = NULL;
    return answer("work beside cannot end",
                  cudaEventRecord(b->ended[b->n_pieces++ % CUDA_QUEUE_PIECES], b->stream));
}

/* Pieces end in order, so it is enough to wait for the last one. */
static struct status join_beside(void *context, int n_left)
{
    struct cuda_context *c = context;
    struct cuda_beside *b = &c->beside;
    int64_t n_done = b->n_pieces - n_left;
    if (n_done <= b->n_joined) {
        return status_ok();
    }
    b->n_joined = n_done;
    return answer("work beside is not waited for",
                  cudaStreamWaitEvent(c->launch.stream, b->ended[(n_done - 1) % CUDA_QUEUE_PIECES], 0));
}

const struct device_beside cuda_queue_beside = {begin_beside, end_beside, join_beside};
