#include "emulated_queue.h"

#include "emulated_graphs.h"
#include "emulated_memory.h"

#include <stdlib.h>

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

const struct device_graphs emulated_queue_graphs = {graphs_begin, graphs_cut, graphs_next, graphs_end};

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
