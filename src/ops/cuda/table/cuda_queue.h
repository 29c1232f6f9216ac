/* cuda_queue: work that a context is given without waiting for it: copies to the device through pinned memory,
 * and recordings of work as CUDA graphs.
 *
 * While a recording is made nothing may wait or allocate; the op that does fails, since its launch is refused.
 * What is recorded, and when, is decided in dev/graph_cache. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_QUEUE_H
#define KILN_OPS_CUDA_TABLE_CUDA_QUEUE_H

#include "dev/device.h"

struct cuda_context;

enum { CUDA_QUEUE_PLACES = 2 };

/* Pinned memory that takes turns: while one is on its way, the next is filled. */
struct cuda_staging {
    void *places[CUDA_QUEUE_PLACES];
    struct CUevent_st *sent[CUDA_QUEUE_PLACES]; /* passed when the place may be filled again */
    size_t bytes;                               /* of each */
    int turn;
};

/* Work beside (dev/device.h): a stream of its own.  A piece begins behind the mark `begun`, and ends with one of the marks
 * `ended`, in turn. */
enum { CUDA_QUEUE_PIECES = DEVICE_MOST_BESIDE + 1 };

struct cuda_beside {
    struct CUstream_st *stream, *main; /* main: the context's, while its launches go to `stream`; else NULL */
    struct CUevent_st *begun, *ended[CUDA_QUEUE_PIECES];
    int64_t n_pieces, n_joined;
};

struct status cuda_queue_open(struct cuda_context *c);
void cuda_queue_close(struct cuda_context *c);

/* The slots of struct device; `context` is a cuda_context. */
struct status cuda_queue_stage(void *context, void **on_host, size_t bytes);
struct status cuda_queue_send(void *context, void *on_device, const void *on_host, size_t bytes);
struct status cuda_queue_copy_within(void *context, void *to, const void *from, size_t bytes);
extern const struct device_graphs cuda_queue_graphs;
extern const struct device_beside cuda_queue_beside;

#endif
