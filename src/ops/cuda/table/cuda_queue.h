/* cuda_queue: work that a context queues without waiting for it: copies to the device through pinned memory,
 * and recordings of work as CUDA graphs.
 *
 * During a recording nothing may wait or allocate: an op that does so fails. dev/graph_cache decides what is
 * recorded, and when. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_QUEUE_H
#define KILN_OPS_CUDA_TABLE_CUDA_QUEUE_H

#include "dev/device.h"

struct cuda_context;

enum { CUDA_QUEUE_PLACES = 2 };

/* Pinned buffers used in turn: while one is being copied, the next is filled. */
struct cuda_staging {
    void *places[CUDA_QUEUE_PLACES];
    struct CUevent_st *sent[CUDA_QUEUE_PLACES]; /* reached when the buffer may be filled again */
    size_t bytes;                               /* bytes of each buffer */
    int turn;
};

/* Work beside (dev/device.h): a second CUDA stream.  A piece begins after the event `begun`, and ends with
 * one of the events `ended`, in turn. */
enum { CUDA_QUEUE_PIECES = DEVICE_MOST_BESIDE + 1 };

struct cuda_beside {
    struct CUstream_st *stream, *main; /* main: the context's, while its launches go to `stream`; else NULL */
    struct CUevent_st *begun, *ended[CUDA_QUEUE_PIECES];
    int64_t n_pieces, n_joined;
};

/* Creates the events of copies, and the stream of work beside.  Fails as CUDA does. */
struct status cuda_queue_open(struct cuda_context *c);
void cuda_queue_close(struct cuda_context *c);

/* The slots of struct device; `context` is a cuda_context. */
struct status cuda_queue_stage(void *context, void **on_host, size_t bytes);
struct status cuda_queue_send(void *context, void *on_device, const void *on_host, size_t bytes);
struct status cuda_queue_copy_within(void *context, void *to, const void *from, size_t bytes);
extern const struct device_graphs cuda_queue_graphs;
extern const struct device_beside cuda_queue_beside;

#endif
