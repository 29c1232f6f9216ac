#include "dev/graph_cache.h"

#include "core/array.h"

#include <stdlib.h>
#include <string.h>

static void drop_graphs(struct graph_cache *c, struct graph_entry *e)
{
    c->n_graphs -= e->n_segments > 0;
    while (e->n_segments > 0) {
        c->runtime->destroy(c->self, e->segments[--e->n_segments].graph);
    }
    free(e->segments);
    e->segments = NULL;
    e->capacity = 0;
}

static void forget(struct graph_cache *c, struct graph_entry *e)
{
    drop_graphs(c, e);
    *e = (struct graph_entry){0};
}

static struct graph_entry *find(struct graph_cache *c, const void *key, size_t key_bytes)
{
    for (int i = 0; i < GRAPH_CACHE_KEYS; i++) {
        struct graph_entry *e = &c->entries[i];
        if (e->key_bytes == key_bytes && memcmp(e->key, key, key_bytes) == 0) {
            return e;
        }
    }
    return NULL;
}

/* Among the entries with a recording, or those without, the one met least often, and of these the least
 * recent; a free one first. */
static struct graph_entry *least_met(struct graph_cache *c, bool recorded)
{
    struct graph_entry *least = NULL;
    for (int i = 0; i < GRAPH_CACHE_KEYS; i++) {
        struct graph_entry *e = &c->entries[i];
        if ((e->n_segments > 0) == recorded &&
            (least == NULL || e->n_met < least->n_met ||
             (e->n_met == least->n_met && e->last_met < least->last_met))) {
            least = e;
        }
    }
    return least;
}

static void meet(struct graph_cache *c, struct graph_entry *e)
{
    if (++c->clock % GRAPH_CACHE_LATE == 0) {
        for (int i = 0; i < GRAPH_CACHE_KEYS; i++) {
            c->entries[i].n_met /= 2;
        }
    }
    e->n_met++;
    e->last_met = c->clock;
}

/* Whether there is space for a recording of this work, if necessary after dropping another's. */
static bool take_room(struct graph_cache *c, const struct graph_entry *e)
{
    if (c->n_graphs < GRAPH_CACHE_GRAPHS) {
        return true;
    }
    struct graph_entry *least = least_met(c, true);
    if (e->n_met <= least->n_met) {
        return false;
    }
    drop_graphs(c, least);
    return true;
}

static struct status begin_segment(struct graph_cache *c, enum device_work *work)
{
    TRY(c->runtime->begin(c->self));
    *work = DEVICE_WORK_RECORD;
    c->in_segment = true;
    return status_ok();
}

static struct status launch_next(struct graph_cache *c, enum device_work *work)
{
    *work = DEVICE_WORK_REPLAYED;
    return c->runtime->launch(c->self, c->replayed->segments[c->n_launched++].graph);
}

struct status graph_cache_begin(struct graph_cache *c, const void *key, size_t key_bytes,
                                enum device_work *work)
{
    CHECK(c->recording == NULL, "a recording within a recording");
    CHECK(key_bytes > 0 && key_bytes <= GRAPH_CACHE_KEY_BYTES, "a key of %zu bytes", key_bytes);
    struct graph_entry *e = find(c, key, key_bytes);
    bool known = e != NULL;
    *work = DEVICE_WORK_RUN;
    if (!known) {
        e = least_met(c, false);
        *e = (struct graph_entry){.key_bytes = key_bytes};
        memcpy(e->key, key, key_bytes);
    }
    meet(c, e);
    if (e->n_segments > 0) {
        c->replayed = e;
        c->n_launched = 0;
        c->n_replayed++;
        return launch_next(c, work);
    }
    if (!known || !take_room(c, e)) {
        return status_ok();
    }
    TRY(begin_segment(c, work));
    c->recording = e;
    return status_ok();
}

static void abandon_recording(struct graph_cache *c)
{
    forget(c, c->recording);
    c->recording = NULL;
}

/* Layers whose ranks exchange activations are cut at each exchange, so there is no limit. */
static struct status append(struct graph_cache *c, struct graph_entry *e, void *graph)
{
    if (!ARRAY_RESERVE(e->segments, e->capacity, e->n_segments + 1)) {
        c->runtime->destroy(c->self, graph);
        return status_error(STATUS_MEMORY, "out of memory for %d segments of a recording", e->n_segments + 1);
    }
    c->n_graphs += e->n_segments == 0;
    e->segments[e->n_segments++] = (struct graph_segment){.graph = graph};
    return status_ok();
}

/* Ends a segment, which without a failure becomes the newest of the recording. */
static struct status end_segment(struct graph_cache *c, bool abandon)
{
    struct graph_entry *e = c->recording;
    void *graph = NULL;
    c->in_segment = false;
    struct status s = c->runtime->end(c->self, &graph);
    if (graph != NULL) {
        struct status appended = append(c, e, graph);
        s = failed(s) ? s : appended;
    }
    if (failed(s) || abandon) {
        abandon_recording(c);
    }
    return abandon ? status_ok() : s; /* the caller already has the error that made it abandon */
}

struct status graph_cache_cut(struct graph_cache *c, bool abandon)
{
    CHECK(c->in_segment, "nothing is being recorded");
    struct status s = end_segment(c, abandon);
    if (failed(s) || abandon) {
        return s;
    }
    s = c->runtime->launch(c->self, c->recording->segments[c->recording->n_segments - 1].graph);
    if (failed(s)) {
        abandon_recording(c);
    }
    return s;
}

struct status graph_cache_next(struct graph_cache *c, enum device_work *work)
{
    if (c->recording != NULL) {
        CHECK(!c->in_segment, "a segment within a segment");
        return begin_segment(c, work);
    }
    CHECK(c->replayed != NULL && c->n_launched < c->replayed->n_segments, "no segment is left to replay");
    return launch_next(c, work);
}

struct status graph_cache_end(struct graph_cache *c, bool abandon)
{
    struct graph_entry *e = c->recording;
    CHECK(e != NULL, "nothing is being recorded");
    CHECK(c->in_segment || abandon, "a recording ends between two segments");
    if (!c->in_segment) {
        abandon_recording(c);
        return status_ok();
    }
    struct status s = end_segment(c, abandon);
    c->recording = NULL;
    if (failed(s) || abandon) {
        return s;
    }
    c->n_recorded++;
    return c->runtime->launch(c->self, e->segments[e->n_segments - 1].graph);
}

void graph_cache_keep(struct graph_cache *c, const struct device_call *call)
{
    CHECK(c->recording != NULL && !c->in_segment && c->recording->n_segments > 0,
          "a call that is not between two segments of a recording");
    c->recording->segments[c->recording->n_segments - 1].call = *call;
}

const struct device_call *graph_cache_kept(const struct graph_cache *c)
{
    CHECK(c->replayed != NULL && c->n_launched > 0, "nothing is replayed");
    const struct device_call *call = &c->replayed->segments[c->n_launched - 1].call;
    return call->function == NULL ? NULL : call;
}

void graph_cache_clear(struct graph_cache *c)
{
    for (int i = 0; i < GRAPH_CACHE_KEYS; i++) {
        forget(c, &c->entries[i]);
    }
    c->replayed = NULL;
}
