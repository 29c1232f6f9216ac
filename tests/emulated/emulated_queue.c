#include "emulated_queue.h"

#include "emulated_graphs.h"
#include "emulated_memory.h"
#include "fake_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct status begin(void *self)
{
    (void)self;
    emulated_record_begin();
    return status_ok();
}

static struct status end(void *self, void **graph)
{
    (void)self;
    *graph = emulated_record_end();
    return status_ok();
}

static struct status launch(void *self, void *graph)
{
    (void)self;
    emulated_replay(graph);
    return status_ok();
}

static void destroy(void *self, void *graph)
{
    (void)self;
    emulated_forget(graph);
}

static const struct graph_runtime recorder = {begin, end, launch, destroy};

void emulated_queue_open(struct cuda_context *c)
{
    c->graphs = (struct graph_cache){.runtime = &recorder, .self = c};
}

void emulated_queue_close(struct cuda_context *c)
{
    graph_cache_clear(&c->graphs);
    free(c->staging.places[0]);
}

struct status emulated_queue_stage(void *context, void **on_host, size_t bytes)
{
    struct cuda_staging *s = &((struct cuda_context *)context)->staging;
    if (bytes > s->bytes) {
        free(s->places[0]);
        s->places[0] = malloc(bytes);
        s->bytes = s->places[0] == NULL ? 0 : bytes;
    }
    *on_host = s->places[0];
    return s->places[0] == NULL ? status_error(STATUS_MEMORY, "out of memory for a batch") : status_ok();
}

struct status emulated_queue_send(void *context, void *on_device, const void *on_host, size_t bytes)
{
    (void)context;
    CHECK(!emulated_is_recording(), "a batch is copied by a recording");
    emulated_memory_open();
    memcpy(on_device, on_host, bytes);
    emulated_memory_close();
    return status_ok();
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

const struct device_graphs emulated_queue_graphs = {graphs_begin, graphs_cut,  graphs_next,
                                                    graphs_end,   graphs_keep, graphs_kept};

static struct status begin_beside(void *context)
{
    (void)context;
    emulated_record_beside(true);
    return status_ok();
}

static struct status end_beside(void *context)
{
    (void)context;
    emulated_record_beside(false);
    return status_ok();
}

static struct status join_beside(void *context, int n_left)
{
    (void)context;
    emulated_record_join(n_left);
    return status_ok();
}

const struct device_beside emulated_queue_beside = {begin_beside, end_beside, join_beside};

/* A stream of the fake NCCL library's: what it is given runs at once, and has ended when a mark is set. */
struct stream {
    struct fake_stream base;
};

static void run_now(struct fake_stream *stream, void (*work)(void *argument), void *argument)
{
    (void)stream;
    CHECK(!emulated_is_recording(), "a collective in a recording");
    emulated_memory_open();
    work(argument);
    emulated_memory_close();
}

static struct status open_stream(void **stream, void *context, int n_marks)
{
    struct stream *s = calloc(1, sizeof *s);
    (void)context, (void)n_marks;
    *stream = s;
    if (s == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a stream");
    }
    s->base.give = run_now;
    return status_ok();
}

static void close_stream(void *stream)
{
    free(stream);
}

static void *handle_of_stream(void *stream)
{
    return &((struct stream *)stream)->base;
}

/* Nothing to order. */
static struct status order(void *stream)
{
    (void)stream;
    CHECK(!emulated_is_recording(), "a wait for a stream in a recording");
    return status_ok();
}

static struct status mark(void *stream, int i)
{
    (void)i;
    return order(stream);
}

static struct status reached(void *stream, int i, bool *is_reached)
{
    (void)stream, (void)i;
    *is_reached = true;
    return status_ok();
}

/* Each process has an emulator of its own. */
static struct status chip(void *context, char name[DEVICE_CHIP_BYTES])
{
    (void)context;
    snprintf(name, DEVICE_CHIP_BYTES, "emulator %d", (int)getpid());
    return status_ok();
}

const struct device_streams emulated_queue_streams = {.open = open_stream,
                                                      .close = close_stream,
                                                      .handle = handle_of_stream,
                                                      .follow = order,
                                                      .lead = order,
                                                      .mark = mark,
                                                      .reached = reached,
                                                      .chip = chip};
