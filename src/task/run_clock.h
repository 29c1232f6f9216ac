/* run_clock: a run that is planned, and ends, by seconds (--total_training_time) instead of steps.
 *
 * The seconds are those from the first step on, evaluations and saves between steps included; of a resumed
 * run also those of the runs before it, but not the time between.  The part of the run that is done is their
 * share of the total: schedules are functions of it, and the run ends before a step that is not expected to
 * end in time, so the rate is close to 0 at the last.
 *
 * Several ranks go by the first one's clock: after each reading that matters, the others get its time
 * (run_clock_hear).
 *
 * Times are of the monotonic clock, which is never set.  Where it jumps all the same - the machine slept, the
 * process was stopped - the time does not count: a reading before the last counts as nothing, and one that is
 * later than RUN_CLOCK_MOST_STEPS steps take, and than RUN_CLOCK_LONGEST_S, as one step.  Both are logged. */
#ifndef KILN_TASK_RUN_CLOCK_H
#define KILN_TASK_RUN_CLOCK_H

#include "core/ramp.h"

#include <stdbool.h>
#include <stdint.h>

enum { RUN_CLOCK_LONGEST_S = 600, RUN_CLOCK_MOST_STEPS = 100 };

struct run_clock {
    double total_s;   /* seconds of the complete run */
    double elapsed_s; /* seconds until the latest reading; of the interrupted runs before this one, too */
    double step_s;    /* seconds of the latest step; 0: none yet */
    int64_t last_ns;  /* the latest reading; 0: none yet */
    double part;      /* part of the run that was done at the latest reading */
    _Atomic double part_of[2]; /* step s has that of s % 2 */
};

/* Called before and after step `step`, from 1. */
void run_clock_begin_step(struct run_clock *c, int64_t step, int64_t now_ns);
void run_clock_end_step(struct run_clock *c, int64_t now_ns);

/* Sets the first rank's elapsed_s and step_s instead of this one's. */
void run_clock_hear(struct run_clock *c, double elapsed_s, double step_s);

/* Resumes after elapsed_s seconds of an interrupted run. */
void run_clock_resume(struct run_clock *c, double elapsed_s, double step_s);

/* Whether the next step is not expected to end in time. */
bool run_clock_is_over(const struct run_clock *c);

/* The part of the run that will be done after the step that has begun, in [0, 1]. */
double run_clock_part_after_step(const struct run_clock *c);

/* The part of the run that the batch of step `step` is for: the part done when the step before it began,
 * without the time since the end of the step before that one.  Known, and the same on all ranks, from then on
 * until the step ends.  Any thread may ask. */
double run_clock_part(const struct run_clock *c, int64_t step);

/* Progress of a run, by its clock or else by its steps.  Does not move while a loader uses it. */
struct run_progress {
    int64_t n_steps;
    struct run_clock clock; /* total_s 0: there is none */
};

/* A view of the progress, as a function of the step. */
struct run_part run_progress_part(const struct run_progress *p);

#endif
