/* ramp: a number that changes with the part of a run that is done.
 *
 * A value that changes during a run, such as the rate of masks, is one of these, so that the contents of a
 * step stay a function of the configuration and its number. */
#ifndef KILN_CORE_RAMP_H
#define KILN_CORE_RAMP_H

#include <stdbool.h>
#include <stdint.h>

/* On a line from `from` to `to` during the first `share` of the run, then `to`.  Zeroed: there is no ramp. */
struct ramp {
    double from, to;
    double share;
};

static inline bool ramp_is_given(const struct ramp *r)
{
    return r->share > 0;
}

/* part: of the run that is done, in [0, 1]. */
static inline double ramp_at(const struct ramp *r, double part)
{
    return part >= r->share ? r->to : r->from + (r->to - r->from) * (part / r->share);
}

/* The part of a run that is done before step `step`, from 1, in [0, 1].  A function of the step alone, unless
 * the run ends by the clock.  Threads may call it. */
struct run_part {
    double (*before)(const void *context, int64_t step);
    const void *context; /* borrowed */
};

#endif
