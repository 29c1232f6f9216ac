/* graph_cache: decides which work of a device is recorded as a graph, and which recording is replayed.  It is
 * the policy only: the recorder, a CUDA stream or a test, is called through function pointers.
 *
 * Work is identified by a key that holds everything its launches depend on.  The first time it runs directly,
 * so that tables are made and algorithms chosen; the second time it is recorded; from then on it is replayed.
 * A recording may have several segments.  They are kept, replayed and dropped together, and count as one.
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
enum { GRAPH_CACHE_GRAPHS = 64, GRAPH_CACHE_KEYS = 256, GRAPH_CACHE_LATE = 1024, GRAPH_CACHE_KEY_BYTES = 96 };
_Static_assert((int)GRAPH_CACHE_GRAPHS < (int)GRAPH_CACHE_KEYS,
               "there is always a key that can be forgotten");

/* The recorder: between begin and end, work that is queued is recorded and not run; a recording with several
 * segments begins and ends several times.  `end` sets *graph, NULL after a failure. */
struct graph_runtime {
    struct status (*begin)(void *self);
    struct status (*end)(void *self, void **graph);
    struct status (*launch)(void *self, void *graph);
    void (*destroy)(void *self, void *graph);
};

struct graph_segment {
    void *graph;
    struct device_call call; /* the call after the segment */
};

struct graph_entry {
    unsigned char key[GRAPH_CACHE_KEY_BYTES];
    size_t key_bytes;               /* 0: free */
    struct graph_segment *segments; /* [n_segments of capacity], in order */
    int n_segments;                 /* 0: it is not recorded */
    size_t capacity;
    int64_t n_met;    /* a recent count: older ones are halved */
    int64_t last_met; /* time of the last meeting, by the clock of the cache */
};

struct graph_cache {
    const struct graph_runtime *runtime;
    void *self; /* the runtime's */
    struct graph_entry entries[GRAPH_CACHE_KEYS];
    struct graph_entry *recording; /* the recording that has begun and not ended; NULL: there is none */
    bool in_segment;               /* queued work is being recorded, as it is not between two segments */
    struct graph_entry *replayed;  /* the recording that was replayed last */
    int n_launched;                /* segments of it launched so far */
    int64_t clock;
    int n_graphs;                   /* recordings */
    int64_t n_recorded, n_replayed; /* works */
};

/* Says what to do with the work of this key, at most GRAPH_CACHE_KEY_BYTES; DEVICE_WORK_REPLAYED means that
 * its first segment is already launched. */
struct status graph_cache_begin(struct graph_cache *c, const void *key, size_t key_bytes,
                                enum device_work *work);

/* Ends a segment of a recording that DEVICE_WORK_RECORD began, and runs it once; with `abandon`, because the
 * work failed midway, drops the recording.  After a failure there is no recording. */
struct status graph_cache_cut(struct graph_cache *c, bool abandon);

/* Begins the next segment after a cut, or launches the next segment of the work that was replayed last; *work
 * says which. */
struct status graph_cache_next(struct graph_cache *c, enum device_work *work);

/* Ends the recording with its last segment, and runs that once; `abandon` as in graph_cache_cut.  Also called
 * after a cut, to drop the recording. */
struct status graph_cache_end(struct graph_cache *c, bool abandon);

/* Keeps a call of a recording, after a cut: it is made here, and again in each replay.  And the call that was
 * kept with the segment that was launched last in a replay, or NULL.  It stays until the next begin. */
void graph_cache_keep(struct graph_cache *c, const struct device_call *call);
const struct device_call *graph_cache_kept(const struct graph_cache *c);

/* Destroys all graphs and forgets all keys. */
void graph_cache_clear(struct graph_cache *c);

#endif
