/* cuda_context: the state of an exec on a CUDA device: its CUDA stream, the handles of cuBLASLt, tables that
 * ops keep in device memory, batches being copied to it, recordings of work. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_CONTEXT_H
#define KILN_OPS_CUDA_TABLE_CUDA_CONTEXT_H

#include "core/log.h"
#include "dev/exec.h"
#include "dev/graph_cache.h"
#include "ops/cuda/table/cuda_queue.h"
#include "ops/cuda/kernels/launch.h"
#include "ops/ops.h"

/* A table of spans on the device, found by the host's table that it is a copy of. */
struct cuda_spans {
    const struct optim_span *host;
    struct launch_spans table;
};

enum { CUDA_CONTEXT_SPANS = 4 };

struct cuda_choices;  /* cuda_choices.h */
struct cuda_products; /* cuda_products.h */
struct cuda_marks;    /* cuda_events.c */

struct cuda_context {
    struct launch launch; /* launch.scratch is set for each op */
    struct cuda_spans spans[CUDA_CONTEXT_SPANS];
    int n_spans; /* tables made so far; a new one replaces the oldest */
    struct cuda_choices *choices;
    struct cuda_products *products;
    int attention_asked_for;  /* attention_choice.h */
    struct cuda_marks *marks; /* NULL: nothing is timed */
    struct cuda_staging staging;
    struct cuda_beside beside;
    struct graph_cache graphs; /* graphs.in_segment: nothing may wait or allocate now */
};

/* STATUS_DATA if a kernel has met an index outside of its table since the last call. */
struct status cuda_context_fault(struct cuda_context *c);

/* The device's table for these spans, which must not change while the context lives; NULL after exec_fail. */
const struct cuda_spans *cuda_spans_of(struct exec *x, const char *op, const struct optim_span *spans,
                                       int64_t n);
void cuda_spans_free(struct cuda_context *c);

/* device_streams made of CUDA streams and events (cuda_streams.c). */
extern const struct device_streams cuda_streams;

/* Sets where the lines of core/log.h go, which the library writes to the program's log; before the first call
 * they are dropped (cuda_log.c). */
void cuda_log_to(void (*sink)(enum log_level level, const char *line));

/* A table of an op: allocates device memory, which cuda_memory_free frees, and copies host data into it;
 * STATUS_MEMORY. */
struct status cuda_memory_upload(void **on_device, const void *on_host, size_t bytes);
void cuda_memory_free(void *on_device);

#endif
