/* op_timer: the time, FLOPs and bytes of each call of an op, and the time of each copy to the device.
 *
 * An exec is timed while the timer is attached to it; else timing costs nothing.  On a device whose calls end
 * before they return, the host's clock is used.  On others each call is between two marks of the device's own
 * clock (dev/device.h).  They are read when the timer is detached, so that timing does not wait before
 * that. */
#ifndef KILN_OPS_OP_TIMER_H
#define KILN_OPS_OP_TIMER_H

#include "ops/op_watch.h"

enum { OP_TIMER_COPY = -1 }; /* instead of a slot: a copy by queue_send */

/* One call.  Times are on the scale of clock_ns. */
struct op_event {
    struct op_call call;
    const char *layer; /* the exec's layer at the time of the call; may be NULL */
    int64_t layer_index;
    int64_t called_ns, returned_ns; /* times on the host */
    int64_t start_ns, end_ns; /* times on the device; those of the host if calls end before they return */
};

/* Sums over all calls of one op; copies are not counted. */
struct op_total {
    const char *op;
    int64_t n_calls, ns;
    double flops, bytes;
};

struct op_timer {
    struct op_watch watch;
    struct exec *x;
    struct op_event *events; /* [n_events] in order of time */
    int64_t n_events, capacity;
    /* calls after the events were full, which the totals include, or whose marks were lost */
    int64_t n_left_out;
    struct op_total totals[OP_WATCH_N_OPS];

    /* [n_pending] calls whose marks are not read yet; NULL: the device has no clock */
    struct op_event *pending;
    int64_t n_pending;
    int64_t origin_ns; /* time of mark 0 on the host's clock */
    int64_t last_ns;   /* the end of the previous call */
};

/* Allocates memory for `capacity` events of `x`; nothing is allocated later. */
struct status op_timer_init(struct op_timer *t, struct exec *x, int64_t capacity);

/* Safe on a zeroed struct. */
void op_timer_fini(struct op_timer *t);

/* Begins to time the exec's ops and copies; and ends it: puts the exec's own table back and computes all
 * times, for which a device's work is waited for. */
void op_timer_attach(struct op_timer *t);
void op_timer_detach(struct op_timer *t);

/* Forgets all events. */
void op_timer_clear(struct op_timer *t);

#endif
