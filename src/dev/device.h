/* device: where memory is.  A table per kind of device; everything above asks the table. */
#ifndef KILN_DEV_DEVICE_H
#define KILN_DEV_DEVICE_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Marks in the order of a context's work, for profilers of devices whose calls return before their work is
 * done. */
struct device_clock {
    /* Room for marks 0 to n - 1, and none left from before; STATUS_MEMORY. */
    struct status (*open)(void *context, int64_t n);
    void (*close)(void *context); /* as does closing the context */

    /* Puts mark `i` behind the work queued so far.  Waits for nothing; a failure shows when it is read. */
    void (*mark)(void *context, int64_t i);

    /* Nanoseconds from one mark to another.  Both must have been passed: synchronize before. */
    struct status (*elapsed)(void *context, int64_t from, int64_t to, int64_t *ns);
};

/* What becomes of work that a context is about to be given. */
enum device_work {
    DEVICE_WORK_RUN,      /* it runs as it is given */
    DEVICE_WORK_RECORD,   /* it is written down, and runs when the recording ends */
    DEVICE_WORK_REPLAYED, /* it was written down before, and is under way again: it must not be given */
};

/* Recordings of work that is done again and again: its launches then cost the host next to nothing. */
struct device_graphs {
    /* Which of the three, for the work of this key, which holds all that its launches depend on
     * (dev/graph_cache.h). */
    struct status (*begin)(void *context, const void *key, size_t key_bytes, enum device_work *work);

    /* Ends a recording; `abandon`: the work could not be given, its beginning is forgotten. */
    struct status (*end)(void *context, bool abandon);
};

/* Work beside: pieces of a recording that may run at the same time as what is given after them (dev/queue.h).  All
 * three only put marks in the order of the context's work, and wait for nothing. */
struct device_beside {
    /* What is given from here on runs beside, behind all that was given before. */
    struct status (*begin)(void *context);
    struct status (*end)(void *context);

    /* What is given after it runs behind all pieces but the last `n_left`, at most DEVICE_MOST_BESIDE. */
    struct status (*join)(void *context, int n_left);
};

enum { DEVICE_MOST_BESIDE = 3 };

struct device {
    const char *name;     /* "cpu" */
    bool is_host;         /* its memory is the host's: the host may read and write it */
    bool computes_in_f16; /* its ops take matrices in fp16, beside fp32 and bf16 */
    bool
        takes_rounded_biases; /* its products add a bias of their result's dtype as it is, without one pass more */
    bool computes_in_fp8; /* its products take factors in fp8; elsewhere they are kept in bf16 (core/fp8.h) */

    /* Its attention_backward sums columns while it has them; elsewhere linear_backward_weight does, which reads them
     * anyway (ops/ops.h, dbias). */
    bool sums_in_attention;

    /* Its attention writes which probabilities dropout keeps, and attention_backward reads it (ops/attention_bits.h);
     * elsewhere both draw. */
    bool keeps_dropout_bits;

    /* What an exec on this device holds beside it: a stream, handles of libraries.  NULL on the host. */
    struct status (*open)(void **context);
    void (*close)(void *context);

    /* `bytes` of zeroed memory, aligned to ARENA_ALIGNMENT and touched, so that a shortage shows now and not
     * in a step. STATUS_MEMORY says what was wanted and what is there. */
    struct status (*allocate)(void **memory, size_t bytes, const char *what);
    void (*release)(void *memory, size_t bytes);

    /* Between host and device memory, behind all work of the context; the host's side may be reused when it
     * returns. */
    struct status (*copy_in)(void *context, void *on_device, const void *on_host, size_t bytes);
    struct status (*copy_out)(void *context, void *on_host, const void *on_device, size_t bytes);

    /* From one place of the device's memory to another, behind all work of the context, at the rate of that memory; waits
     * for nothing.  NULL where the device's memory is the host's. */
    struct status (*copy_within)(void *context, void *to, const void *from, size_t bytes);

    /* Host memory for `bytes` that a `send` will take to the device: one of two places in turn, so that filling
     * one waits for nothing but the send before the last.  NULL where the device's memory is the host's. */
    struct status (*stage)(void *context, void **on_host, size_t bytes);

    /* Takes what was written to the place of the last `stage` to the device, behind all work of the context;
     * waits for nothing. */
    struct status (*send)(void *context, void *on_device, const void *on_host, size_t bytes);

    const struct device_graphs *graphs; /* NULL: nothing is recorded */
    const struct device_beside *beside; /* NULL: nothing runs beside */

    /* Waits for all work of the context; the first failure of any of it since the last wait. */
    struct status (*synchronize)(void *context);

    const struct device_clock
        *clock; /* NULL: calls end before they return, and the host's clock times them */

    /* Bytes that can be allocated now. */
    size_t (*free_bytes)(void);

    /* Device memory that a context takes for itself: workspaces of libraries, kernels that are loaded when they are
     * first used. */
    size_t overhead_bytes;

    /* What the context finds out by timing is kept in this directory too, and taken from there first, so that a run
     * that is resumed computes the same bits.  NULL: nothing is timed. */
    void (*keep_in)(void *context, const char *directory);

    /* What the context's run has found out so, for a checkpoint: bytes that the caller frees, NULL if there is nothing;
     * STATUS_MEMORY.  And such bytes taken back, before what any file says: where they cannot be used, or come from
     * another kind of machine, the log says so.  NULL: nothing is timed. */
    struct status (*choices)(void *context, char **text, size_t *n);
    void (*take_choices)(void *context, const void *text, size_t n, const char *source);
};

extern const struct device device_cpu;

#endif
