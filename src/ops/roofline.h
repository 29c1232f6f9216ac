/* roofline: predicts the time of ops on a device of which only two rates are known: each op takes as long as its FLOPs, or as
 * its bytes, whichever is longer (Williams et al. 2009, doi:10.1145/1498765.1498785).
 *
 * It is an op table that computes nothing, over the plan's.  Where the kernels are known, ops/forecast.h is the
 * better one. */
#ifndef KILN_OPS_ROOFLINE_H
#define KILN_OPS_ROOFLINE_H

#include "ops/op_watch.h"

struct roofline {
    struct op_watch watch;  /* first */
    double products, copy;  /* FLOP/s; bytes read and written a second */
    double seconds;         /* of all ops so far */
    double product_seconds; /* of those that take as long as their FLOPs */
};

/* `r` must not move while its table is used. */
void roofline_init(struct roofline *r, double products, double copy);

#endif
