#include "dev/graph_cache.h"

#include <string.h>

static void drop_graph(struct graph_cache *c, struct graph_entry *e)
{
    if (e->graph != NULL) {
        c->runtime->destroy(c->self, e->graph);
        e->graph = NULL;
        c->n_graphs--;
    }
}

static void forget(struct graph_cache *c, struct graph_entry *e)
{
    drop_graph(c, e);
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
        if ((e->graph != NULL) == recorded && (least == NULL || e->n_met < least->n_met ||
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

/* Whether there is room for a recording of this work, if necessary after dropping another's. */
static bool take_room(struct graph_cache *c, const struct graph_entry *e)
{
    if (c->n_graphs < GRAPH_CACHE_GRAPHS) {
        return true;
    }
    struct graph_entry *least = least_met(c, true);
    if (e->n_met <= least->n_met) {
        return false;
    }
    drop_graph(c, least);
    return true;
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
    if (e->graph != NULL) {
        *work = DEVICE_WORK_REPLAYED;
        c->n_replayed++;
        return c->runtime->launch(c->self, e->graph);
    }
    if (!known || !take_room(c, e)) {
        return status_ok();
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
    c->n_graphs += e->graph != NULL;
    if (failed(s) || abandon) {
        forget(c, e);
        return abandon ? status_ok() : s; /* the caller already has the error that made it abandon */
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
