/* roofline: predicts the time of ops on a device of which only two rates are known: each op takes as long as
 * its FLOPs, or as its bytes, whichever is longer (Williams et al. 2009, doi:10.1145/1498765.1498785).
 *
 * It is an op table that computes nothing, over the plan's.  The share of a roofline that a complete step
 * reaches is a number of the machine (ops/machines.h). */
#ifndef KILN_OPS_ROOFLINE_H
#define KILN_OPS_ROOFLINE_H

#include "ops/op_timer.h"

struct roofline {
    struct op_watch watch; /* first */
    double products, copy; /* FLOP/s; bytes read and written a second */
    double seconds[OP_WATCH_N_OPS];
    double product_seconds;                 /* time of the calls that take as long as their FLOPs */
    struct op_total totals[OP_WATCH_N_OPS]; /* totals as of a timer; ns is `seconds` in nanoseconds */
};

/* An empty roofline; `r` must not move while its table, r->watch.table, is used. */
void roofline_init(struct roofline *r, double products, double copy);

/* The time of all calls so far, one after the other. */
double roofline_seconds(const struct roofline *r);

#endif
