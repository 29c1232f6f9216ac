/* graph_cache: which work of a device is recorded as a graph, and which recording is replayed.  The policy
 * alone: what records is behind function pointers, a stream of CUDA or a test.
 *
 * Work is known by a key that holds all that its launches depend on.  The first time it runs plainly, so that
 * tables are made and algorithms chosen; the second time it is recorded; from then on it is replayed.  Where there
 * are as many recordings as there may be, one gives way only to work that was met more often of late: work of more
 * sizes than that, in any order, would else be recorded again and again and hardly ever replayed. */
#ifndef KILN_DEV_GRAPH_CACHE_H
#define KILN_DEV_GRAPH_CACHE_H

#include "core/status.h"
#include "dev/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Recordings at most; keys that are known, with a recording or without; after so much work what was met before counts
 * half. */
enum { GRAPH_CACHE_GRAPHS = 64, GRAPH_CACHE_KEYS = 256, GRAPH_CACHE_LATE = 1024, GRAPH_CACHE_KEY_BYTES = 64 };
_Static_assert((int)GRAPH_CACHE_GRAPHS < (int)GRAPH_CACHE_KEYS,
               "there is always a key that can be forgotten");

/* What records: between begin and end, work that is put in order is written down instead of done.  `end` sets
 * *graph, NULL after a failure. */
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
    int64_t n_met;    /* of late */
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

/* Says what is to be done with the work of this key, at most GRAPH_CACHE_KEY_BYTES, and has done it if that
 * is DEVICE_WORK_REPLAYED. */
struct status graph_cache_begin(struct graph_cache *c, const void *key, size_t key_bytes,
                                enum device_work *work);

/* Ends a recording, which DEVICE_WORK_RECORD asked for, and runs it once; if the work could not be put in
 * order (`abandon`), forgets it. */
struct status graph_cache_end(struct graph_cache *c, bool abandon);

/* Destroys all graphs and forgets all keys. */
void graph_cache_clear(struct graph_cache *c);

#endif
