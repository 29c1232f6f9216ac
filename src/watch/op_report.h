/* op_report: where the time of timed ops went, as a table for people. */
#ifndef KILN_WATCH_OP_REPORT_H
#define KILN_WATCH_OP_REPORT_H

#include "core/buf.h"
#include "ops/op_timer.h"

/* What the machine reached in the same run. */
struct op_ceilings {
    double products; /* matrix products, FLOP/s */
    double copy;     /* read and written, bytes/s */
};

/* Appends a row for every op that was called, the slowest first: calls, milliseconds, share of `seconds` (the
 * wall time that they are part of), GF/s (TF/s under a ceiling of 10 TF/s and more) and GB/s, and with ceilings, which may be NULL, the percentage of
 * them that was reached. */
void op_report_append(struct buf *b, const struct op_total totals[OP_WATCH_N_OPS], double seconds,
                      const struct op_ceilings *ceilings);

#endif
