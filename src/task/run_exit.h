/* run_exit: what ends a run before its last step, beside a signal: it saves, and ends with success.  The
 * same command continues it. */
#ifndef KILN_TASK_RUN_EXIT_H
#define KILN_TASK_RUN_EXIT_H

#include "dist/comm.h"

struct run_exit {
    int64_t interval;        /* after steps that are multiples of it; 0: never */
    double minutes;          /* after the step in which so many have passed since start_ns; 0: never */
    int64_t start_ns;        /* core/clock */
    const char *kill_switch; /* once a file of this name is there; NULL: never */
};

/* After a step; all ranks call it.  The first one logs why. */
struct status run_exit_is_due(const struct run_exit *e, const struct comm *world, int64_t step, bool *due);

/* Before the first step: whether the kill switch is there already. */
bool run_exit_is_switched(const struct run_exit *e);

#endif
