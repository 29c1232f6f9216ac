#include "dev/graph_cache.h"

#include <string.h>

static void forget(struct graph_cache *c, struct graph_entry *e)
{
    if (e->graph != NULL) {
        c->runtime->destroy(c->self, e->graph);
    }
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

/* A free entry, or that of the key which was not met for the longest time. */
static struct graph_entry *make_room(struct graph_cache *c)
{
    struct graph_entry *oldest = &c->entries[0];
    for (int i = 1; i < GRAPH_CACHE_KEYS; i++) {
        oldest = c->entries[i].last_met < oldest->last_met ? &c->entries[i] : oldest;
    }
    forget(c, oldest);
    return oldest;
}

struct status graph_cache_begin(struct graph_cache *c, const void *key, size_t key_bytes,
                                enum device_work *work)
{
    CHECK(c->recording == NULL, "a recording within a recording");
    CHECK(key_bytes > 0 && key_bytes <= GRAPH_CACHE_KEY_BYTES, "a key of %zu bytes", key_bytes);
    struct graph_entry *e = find(c, key, key_bytes);
    *work = DEVICE_WORK_RUN;
    if (e == NULL) {
        e = make_room(c);
        memcpy(e->key, key, key_bytes);
        e->key_bytes = key_bytes;
        e->last_met = ++c->clock;
        return status_ok();
    }
    e->last_met = ++c->clock;
    if (e->graph != NULL) {
        *work = DEVICE_WORK_REPLAYED;
        c->n_replayed++;
        return c->runtime->launch(c->self, e->graph);
    }
    TRY(c->runtime->begin(c->self));
    *work = DEVICE_WORK_RECORD;
    c->recording = e;
    return status_ok();
}

struct status graph_cache_end(struct graph_cache *c, bool abandon)
{
    struct graph_entry *e = c->recording;
    CHECK(e != NULL, "nothing is being recorded");
    c->recording = NULL;
    struct status s = c->runtime->end(c->self, &e->graph);
    if (failed(s) || abandon) {
        forget(c, e);
        return abandon ? status_ok() : s; /* why it was abandoned is known already */
    }
    c->n_recorded++;
    return c->runtime->launch(c->self, e->graph);
}

void graph_cache_clear(struct graph_cache *c)
{
    for (int i = 0; i < GRAPH_CACHE_KEYS; i++) {
        forget(c, &c->entries[i]);
    }
}
