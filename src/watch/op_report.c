#include "watch/op_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int slowest_first(const void *a, const void *b)
{
    const struct op_total *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

/* The table's unit, in FLOP/s. */
static double unit_of(const struct op_ceilings *c)
{
    return c != NULL && c->products >= 1e13 ? 1e12 : 1e9;
}

/* A rate and its percentage of the ceiling; blank if nothing was counted. */
static void append_rate(struct buf *b, double per_s, double unit, const double *ceiling)
{
    if (per_s <= 0) {
        buf_printf(b, "%9s", "");
    } else {
        buf_printf(b, "%9.1f", per_s / unit);
    }
    if (ceiling != NULL && per_s > 0) {
        buf_printf(b, "%5.0f %%", 100 * per_s / *ceiling);
    } else if (ceiling != NULL) {
        buf_printf(b, "%7s", "");
    }
}

static void append_row(struct buf *b, const struct op_total *t, double seconds,
                       const struct op_ceilings *ceilings)
{
    double s = (double)t->ns * 1e-9;
    buf_printf(b, "%-36s%8" PRId64 "%11.2f%7.1f %%", t->op, t->n_calls, 1e3 * s, 100 * s / seconds);
    append_rate(b, t->flops / s, unit_of(ceilings), ceilings == NULL ? NULL : &ceilings->products);
    append_rate(b, t->bytes / s, 1e9, ceilings == NULL ? NULL : &ceilings->copy);
    buf_putc(b, '\n');
}

void op_report_append(struct buf *b, const struct op_total totals[OP_WATCH_N_OPS], double seconds,
                      const struct op_ceilings *ceilings)
{
    struct op_total sorted[OP_WATCH_N_OPS], sum = {.op = "all ops"};
    memcpy(sorted, totals, sizeof sorted);
    qsort(sorted, OP_WATCH_N_OPS, sizeof sorted[0], slowest_first);
    buf_printf(b, "%-36s%8s%11s%9s%9s%s%9s%s\n", "op", "calls", "ms", "share",
               unit_of(ceilings) == 1e12 ? "TF/s" : "GF/s", ceilings == NULL ? "" : "   peak", "GB/s",
               ceilings == NULL ? "" : "   peak");
    for (int i = 0; i < OP_WATCH_N_OPS && sorted[i].n_calls > 0; i++) {
        append_row(b, &sorted[i], seconds, ceilings);
        sum.n_calls += sorted[i].n_calls;
        sum.ns += sorted[i].ns;
        sum.flops += sorted[i].flops;
        sum.bytes += sorted[i].bytes;
    }
    append_row(b, &sum, seconds, ceilings);
}
