/* op_timer: a table of operations that runs those of another table and writes down what each call took, and
 * what it computed and moved by the plan's count.
 *
 * An exec is timed while its table is the timer's; else it has the plain table and timing costs nothing.
 * Calls end before they return, as those of the cpu table do. */
#ifndef KILN_OPS_OP_TIMER_H
#define KILN_OPS_OP_TIMER_H

#include "ops/ops.h"

enum { OP_TIMER_N_OPS = 26, OP_TIMER_MAX_SHAPES = 3 };

struct op_shape {
    enum dtype dtype;
    int n_dims;
    int64_t dims[TENSOR_MAX_DIMS];
};

/* One call. */
struct op_event {
    const char *op;
    const char *layer; /* of the exec when it was called; may be NULL */
    int64_t layer_index;
    int64_t start_ns, end_ns;
    double flops, bytes;
    int n_shapes;
    struct op_shape shapes[OP_TIMER_MAX_SHAPES]; /* outputs first; the last has the dtype that it reads */
};

/* All calls of one op. */
struct op_total {
    const char *op;
    int64_t n_calls, ns;
    double flops, bytes;
};

struct op_timer {
    struct ops table; /* first: what the exec points at while it is timed */
    const struct ops *inner;
    struct op_event *events; /* [n_events] in order of time */
    int64_t n_events, capacity;
    int64_t n_left_out; /* calls after the events were full; the totals have them */
    struct op_total totals[OP_TIMER_N_OPS];
};

/* Room for `capacity` events: nothing is allocated later. */
struct status op_timer_init(struct op_timer *t, int64_t capacity);
void op_timer_fini(struct op_timer *t);

/* From here on the exec's ops are timed; until the exec's own table is put back. */
void op_timer_attach(struct op_timer *t, struct exec *x);
void op_timer_detach(struct op_timer *t, struct exec *x);

/* Forgets what was written down. */
void op_timer_clear(struct op_timer *t);

/* True for the name of a slot. */
bool op_timer_knows(const char *op);

#endif
