/* op_timer: what each call of an op took, and what it computed and moved, and what each copy to the device took.
 *
 * An exec is timed while the timer is attached to it; else timing costs nothing.  On a device whose calls end
 * before they return the host's clock tells.  On others each call is put between two marks of the device's own
 * clock (dev/device.h), which are read when the timer is detached, so that timing waits for nothing between. */
#ifndef KILN_OPS_OP_TIMER_H
#define KILN_OPS_OP_TIMER_H

#include "ops/op_watch.h"

enum { OP_TIMER_COPY = -1 }; /* in place of a slot: a copy that queue_send gave to the device */

/* One call.  Times are those of clock_ns. */
struct op_event {
    struct op_call call;
    const char *layer; /* of the exec when it was called; may be NULL */
    int64_t layer_index;
    int64_t called_ns, returned_ns; /* on the host */
    int64_t start_ns, end_ns;       /* on the device; the same where calls end before they return */
};

/* All calls of one op; copies are in no total. */
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
    int64_t
        n_left_out; /* calls after the events were full, which the totals have, or whose marks were lost */
    struct op_total totals[OP_WATCH_N_OPS];

    struct op_event
        *pending; /* [n_pending] calls whose marks are not read yet; NULL: there is no such clock */
    int64_t n_pending;
    int64_t origin_ns; /* of mark 0 on the host's clock */
    int64_t last_ns;   /* where the call before it ended */
};

/* Room for `capacity` events of what runs on `x`: nothing is allocated later. */
struct status op_timer_init(struct op_timer *t, struct exec *x, int64_t capacity);

/* Safe on a zeroed struct. */
void op_timer_fini(struct op_timer *t);

/* From here on the exec's ops and copies are timed; until its own table is put back, and all times are known: on a device
 * that waits for its work. */
void op_timer_attach(struct op_timer *t);
void op_timer_detach(struct op_timer *t);

/* Forgets what was written down. */
void op_timer_clear(struct op_timer *t);

#endif
