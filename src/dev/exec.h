/* exec: the context in which ops run, one after the other.  Every op takes an exec; the first failure sticks
 * in it with the names of the op and of the layer, and later ops do nothing, so a model is a column of calls
 * without a single `if`. */
#ifndef KILN_DEV_EXEC_H
#define KILN_DEV_EXEC_H

#include "core/status.h"
#include "dev/device.h"

#include <stddef.h>
#include <stdint.h>

struct ops;
struct peers;

/* Costs of ops, summed by the plan table, which ops/op_watch.h asks about each call. */
struct exec_totals {
    double flops;           /* a multiply-add is two */
    double bytes;           /* read and written: each tensor once, an updated one twice */
    size_t workspace_bytes; /* most scratch that one op asked for */
    size_t beside_bytes;    /* most scratch of an op that runs beside */
    double peer_bytes;      /* bytes that this rank sends in calls of peers, on every table (dev/peers.h) */
};

/* An op that was given to a device. */
struct exec_place {
    const char *op, *layer;
    int64_t layer_index;
};

struct exec {
    const struct device *device;
    const struct ops *ops;
    void *context; /* the device's, for this exec alone */
    struct status status;
    const char *layer;   /* the present layer, for messages: "layer" or "embeddings" */
    int64_t layer_index; /* -1: not a numbered layer */
    const char *file;    /* the source that entered it, and its line; NULL: none was entered */
    int line;
    /* rng_key(seed, step), the same for every split of the work.  It is in device memory, so that a replay
     * can use another key; NULL: 0 */
    const uint64_t *dropout_key;
    bool allow_tf32; /* products of fp32 matrices may keep only 10 bits of each factor's fraction */
    /* products of a forward give each row the bits that it gets alone, where the device can
     * (ops/cpu/gemm.h) */
    bool rows_alone;
    int max_threads; /* threads of the cpu that an op uses; 0: all */
    bool int8_rows;  /* rows that meet a matrix in int8 are rounded to int8 too (ops/ops.h, linear) */
    void *workspace; /* scratch of one op at a time */
    size_t workspace_bytes;
    void *beside_workspace; /* scratch of work that runs beside */
    size_t beside_bytes;
    struct exec_totals totals;
    const struct peers *peers; /* ranks that share the layers, borrowed; NULL: there are none */

    /* The first and the last op that were queued since the last wait, for messages; op NULL: none. */
    struct exec_place first_queued, last_queued;

    /* Set by the running op for ops/op_watch.h: the kernel that computes it, such as "oneDNN fp32", and why
     * it is not the first choice or where its results differ from the cpu's.  NULL: nothing to report. */
    const char *served_by, *served_why;

    bool recording; /* ops are recorded: between queue_graph_begin and queue_graph_end (dev/queue.h) */
    bool between;   /* between two segments of a recording: after queue_graph_cut */
    bool beside;    /* between queue_beside and queue_back, where the device runs work beside */

    /* Called for each copy that queue_send gives to a device, before it and, with `given`, after it.  NULL:
     * not called. */
    void (*sending)(void *context, size_t bytes, bool given);
    void *sending_context;

    /* Called whenever a layer is entered; true interrupts the batch: the exec fails with STATUS_PREEMPTED.
     * NULL: not called.  (What is cancelled is a request or a text, serve/request.h.) */
    bool (*interrupted)(const void *context);
    const void *interrupt_context;
};

/* Sets the layer for messages, and the place in the source, and returns true if ops still run. */
#define exec_enter(x, layer, index) exec_enter_from(x, layer, index, __FILE__, __LINE__)
bool exec_enter_from(struct exec *x, const char *layer, int64_t index, const char *file, int line);

/* The dropout key, for tables of host devices. */
static inline uint64_t exec_dropout_key(const struct exec *x)
{
    return x->dropout_key == NULL ? 0 : *x->dropout_key;
}

/* Stores an op's failure: `op` in the current layer, and the reason. */
void exec_fail(struct exec *x, enum status_code code, const char *op, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Notes that `op` was queued in the current layer; for tables of devices whose calls return before their work
 * is done. */
void exec_queued(struct exec *x, const char *op);

/* Waits for what was queued.  A failure sticks in the exec and names the op it belongs to, or the first and
 * last op it may belong to. */
void exec_synchronize(struct exec *x);

/* Copy between host and device memory, after the ops before it; complete on return.  They do nothing after a
 * failure. */
void exec_copy_in(struct exec *x, void *on_device, const void *on_host, size_t bytes);
void exec_copy_out(struct exec *x, void *on_host, const void *on_device, size_t bytes);

/* Saves the choices that the device makes by timing in this directory too, if it times anything
 * (device.keep_in). */
void exec_keep_in(struct exec *x, const char *directory);

/* Returns the device's choices as bytes, for checkpoints, and takes such bytes (device.choices,
 * device.take_choices). *text is NULL if nothing was timed; the caller frees it.  STATUS_MEMORY. */
struct status exec_choices(struct exec *x, char **text, size_t *n);
void exec_take_choices(struct exec *x, const void *text, size_t n, const char *source);

/* Scratch for the running op, valid until the next op; the plan has counted its size.  NULL while
 * planning. */
void *exec_scratch(struct exec *x, size_t bytes);

#endif
