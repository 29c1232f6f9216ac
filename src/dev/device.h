/* device: the place of memory.  Each kind of device fills a table, and all code above calls through it. */
#ifndef KILN_DEV_DEVICE_H
#define KILN_DEV_DEVICE_H

#include "core/status.h"
#include "core/tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Timestamps in the order of a context's work, for profiling devices whose calls return before their work is
 * done. */
struct device_clock {
    /* Allocates marks 0 to n - 1 and forgets all earlier ones; STATUS_MEMORY. */
    struct status (*open)(void *context, int64_t n);
    void (*close)(void *context); /* closing the context does this too */

    /* Queues mark `i` after the work queued so far.  Does not wait; a failure shows when the mark is read. */
    void (*mark)(void *context, int64_t i);

    /* Nanoseconds from one mark to another.  Call synchronize first: both must have been reached. */
    struct status (*elapsed)(void *context, int64_t from, int64_t to, int64_t *ns);
};

/* The fate of the work that a context is about to be given. */
enum device_work {
    DEVICE_WORK_RUN,    /* the work runs as it is given */
    DEVICE_WORK_RECORD, /* the work is recorded, and runs when the recording ends */
    /* the work's recording is already being replayed: the caller must not give it again */
    DEVICE_WORK_REPLAYED,
};

struct exec;

/* A call that the host makes between two segments of a recording, and again whenever it is replayed. */
struct device_call {
    void (*function)(void *self, struct exec *x, tensor t); /* NULL: no call, or one that the caller knows */
    void *self;
    tensor t;
};

/* Recordings of repeated work: replaying one costs the host next to nothing per launch.  A recording has one
 * or more segments; between two of them the host may queue other work. */
struct device_graphs {
    /* Sets *work for the work with this key.  The key holds everything that the launches depend on, and where
     * segments end (dev/graph_cache.h).  DEVICE_WORK_REPLAYED: so far only the first segment is replayed. */
    struct status (*begin)(void *context, const void *key, size_t key_bytes, enum device_work *work);

    /* Ends a segment of a recording, which then runs.  `abandon`: the work failed midway, so the recording is
     * dropped. */
    struct status (*cut)(void *context, bool abandon);

    /* Begins the next segment of a recording after a cut, or replays the next; sets *work. */
    struct status (*next)(void *context, enum device_work *work);

    /* Ends a recording; `abandon` as in cut. */
    struct status (*end)(void *context, bool abandon);

    /* Keeps a call with the segment that `cut` has ended; and the call kept with the segment that was
     * replayed last, NULL if there is none. */
    void (*keep)(void *context, const struct device_call *call);
    const struct device_call *(*kept)(void *context);
};

/* Work beside: pieces of a recording that may run concurrently with what is given after them (dev/queue.h).
 * All three functions only queue ordering marks; the host does not wait. */
struct device_beside {
    /* Work given from here on is a piece: it runs beside, after all work given before. */
    struct status (*begin)(void *context);
    struct status (*end)(void *context);

    /* Work given after it runs after all pieces except the last `n_left`, at most DEVICE_MOST_BESIDE. */
    struct status (*join)(void *context, int n_left);
};

enum { DEVICE_MOST_BESIDE = 3 };

enum { DEVICE_CHIP_BYTES = 64 };

/* A stream beside the context's own, to which a library queues work itself, such as NCCL's sums.  The
 * functions only queue what orders its work and the context's; the host does not wait.  They are not called
 * while work is recorded. */
struct device_streams {
    /* Opens a stream with marks 0 to n_marks - 1.  It does not outlive the context.  Closing it does not
     * wait. */
    struct status (*open)(void **stream, void *context, int n_marks);
    void (*close)(void *stream);

    /* The library's handle of the stream: a cudaStream_t. */
    void *(*handle)(void *stream);

    /* follow: later work of the stream runs after all work that the context was given so far. lead: later
     * work of the context runs after all work that the stream was given so far. */
    struct status (*follow)(void *stream);
    struct status (*lead)(void *stream);

    /* Sets mark `i` after the work that the stream was given so far; and whether it has been reached since it
     * was last set, which any thread may ask. */
    struct status (*mark)(void *stream, int i);
    struct status (*reached)(void *stream, int i, bool *is_reached);

    /* A name that no other chip of this machine has: its PCI bus id. */
    struct status (*chip)(void *context, char name[DEVICE_CHIP_BYTES]);
};

struct device {
    const char *name;          /* "cpu" */
    bool is_host;              /* the device's memory is the host's: the host may read and write it */
    bool computes_in_f16;      /* ops also take matrices in fp16, not only fp32 and bf16 */
    bool takes_rounded_biases; /* products add a bias that has the result's dtype without an extra pass */
    bool multiplies_int8;      /* products and gather_rows take matrices in int8 (ops/ops.h, linear) */
    /* products take factors in fp8; else fp8 values are kept in bf16 (core/fp8.h) */
    bool computes_in_fp8;

    /* attention_backward sums the bias gradient while it has the columns; else linear_backward_weight does,
     * which reads them anyway (ops/ops.h, dbias). */
    bool sums_in_attention;

    /* attention writes which probabilities dropout keeps, and attention_backward reads that
     * (ops/attention_bits.h); else both draw them. */
    bool keeps_dropout_bits;

    /* Opens what an exec on this device needs in addition to memory: a CUDA stream, library handles.  NULL on
     * the host. */
    struct status (*open)(void **context);
    void (*close)(void *context);

    /* Allocates `bytes` of zeroed memory, aligned to ARENA_ALIGNMENT and touched, so that a shortage shows
     * now and not in a step.  STATUS_MEMORY says how much was needed and how much is free. */
    struct status (*allocate)(void **memory, size_t bytes, const char *what);
    void (*release)(void *memory, size_t bytes);

    /* Copy between host and device memory, after all work of the context; the host's side may be reused on
     * return. */
    struct status (*copy_in)(void *context, void *on_device, const void *on_host, size_t bytes);
    struct status (*copy_out)(void *context, void *on_host, const void *on_device, size_t bytes);

    /* Copies within the device's memory, after all work of the context; does not wait.  NULL where the
     * device's memory is the host's. */
    struct status (*copy_within)(void *context, void *to, const void *from, size_t bytes);

    /* Host memory for `bytes` that a `send` will copy to the device: one of two buffers, used alternately, so
     * that filling one waits only for the send before the last.  NULL where the device's memory is the
     * host's. */
    struct status (*stage)(void *context, void **on_host, size_t bytes);

    /* Copies the buffer of the last `stage` to the device, after all work of the context; does not wait. */
    struct status (*send)(void *context, void *on_device, const void *on_host, size_t bytes);

    const struct device_graphs *graphs;   /* NULL: nothing is recorded */
    const struct device_beside *beside;   /* NULL: nothing runs concurrently */
    const struct device_streams *streams; /* NULL: no library queues work on this device */

    /* Waits for all work of the context; returns its first failure since the last wait. */
    struct status (*synchronize)(void *context);

    /* NULL: calls end before they return, and the host's clock times them */
    const struct device_clock *clock;

    /* Bytes that can be allocated now. */
    size_t (*free_bytes)(void);

    /* Device memory that a context takes for itself: workspaces of libraries, and kernels, which are loaded
     * on first use. */
    size_t overhead_bytes;

    /* The algorithms that the context chooses by timing are also saved in this directory and read from there
     * first, so that a resumed run computes the same bits.  NULL: nothing is timed. */
    void (*keep_in)(void *context, const char *directory);

    /* The choices of this context, for a checkpoint: bytes that the caller frees, NULL if there are none;
     * STATUS_MEMORY. take_choices reads such bytes back; they take precedence over any file.  If they cannot
     * be used, or come from another kind of machine, the log says so.  NULL: nothing is timed. */
    struct status (*choices)(void *context, char **text, size_t *n);
    void (*take_choices)(void *context, const void *text, size_t n, const char *source);
};

extern const struct device device_cpu;

#endif
