/* graph_cache: decides which work of a device is recorded as a graph, and which recording is replayed.  It is
 * the policy only: the recorder, a CUDA stream or a test, is behind function pointers.
 *
 * Work is identified by a key that holds everything its launches depend on.  The first time it runs directly,
 * so that tables are made and algorithms chosen; the second time it is recorded; from then on it is replayed.
 * When the cache is full, a recording is dropped only for work that was met more often of late.  Otherwise a
 * run with more sizes than the cache holds would record all the time and hardly ever replay. */
#ifndef KILN_DEV_GRAPH_CACHE_H
#define KILN_DEV_GRAPH_CACHE_H

#include "core/status.h"
#include "dev/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most recordings; the most keys known, with a recording or without; the number of works after which
 * older counts are halved. */
enum { GRAPH_CACHE_GRAPHS = 64, GRAPH_CACHE_KEYS = 256, GRAPH_CACHE_LATE = 1024, GRAPH_CACHE_KEY_BYTES = 64 };
_Static_assert((int)GRAPH_CACHE_GRAPHS < (int)GRAPH_CACHE_KEYS,
               "there is always a key that can be forgotten");

/* The recorder: between begin and end, work that is queued is recorded and not run.  `end` sets *graph, NULL
 * after a failure. */
struct graph_runtime {
    struct status (*begin)(void *self);
    struct status (*end)(void *self, void **graph);
    struct status (*launch)(void *self, void *graph);
    void (*destroy)(void *self, void *graph);
};

struct graph_entry {
    unsigned char key[GRAPH_CACHE_KEY_BYTES];
    size_t key_bytes; /* 0: free */
    void *graph;      /* NULL: it is not recorded */
    int64_t n_met;    /* a recent count: older ones are halved */
    int64_t last_met; /* by the clock of the cache */
};

struct graph_cache {
    const struct graph_runtime *runtime;
    void *self; /* the runtime's */
    struct graph_entry entries[GRAPH_CACHE_KEYS];
    struct graph_entry *recording; /* NULL: nothing is being recorded */
    int64_t clock;
    int n_graphs;
    int64_t n_recorded, n_replayed;
};

/* Says what to do with the work of this key, at most GRAPH_CACHE_KEY_BYTES; DEVICE_WORK_REPLAYED means that
 * it is already done. */
struct status graph_cache_begin(struct graph_cache *c, const void *key, size_t key_bytes,
                                enum device_work *work);

/* Ends a recording that DEVICE_WORK_RECORD began, and runs it once; with `abandon`, because the work failed
 * midway, drops it. */
struct status graph_cache_end(struct graph_cache *c, bool abandon);

/* Destroys all graphs and forgets all keys. */
void graph_cache_clear(struct graph_cache *c);

#endif
