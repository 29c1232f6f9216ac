/* op_report: where the time of timed ops went, as a table for people to read. */
#ifndef KILN_WATCH_OP_REPORT_H
#define KILN_WATCH_OP_REPORT_H

#include "core/buf.h"
#include "ops/op_timer.h"

/* The rates that the machine reached in the same run. */
struct op_ceilings {
    double products; /* matrix products, FLOP/s */
    double copy;     /* read and written, bytes/s */
};

/* Appends a row for every op that was called, the slowest first: calls, milliseconds, share of `seconds` (the
 * wall time that includes them), GF/s (TF/s if the ceiling is at least 10 TF/s), GB/s, and the percentages of
 * the ceilings, unless these are NULL. */
void op_report_append(struct buf *b, const struct op_total totals[OP_WATCH_N_OPS], double seconds,
                      const struct op_ceilings *ceilings);

#endif
