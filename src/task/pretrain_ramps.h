/* pretrain_ramps: how long a pre-training run and the warm-up of its rate are, where seconds or tokens say
 * it; and the part of the run that is done. */
#ifndef KILN_TASK_PRETRAIN_RAMPS_H
#define KILN_TASK_PRETRAIN_RAMPS_H

#include "core/ramp.h"
#include "task/pretrain.h"
#include "task/run_clock.h"

/* Which flags were given, beside those that a ramp goes with. */
struct pretrain_ramps_given {
    bool max_steps, steps_this_run; /* which end a run by steps */
    bool warmup_proportion;
};

/* Checks --total_training_time and --warmup_tokens against the run, and sets what follows from them.
 * STATUS_USAGE names the flags. */
struct status pretrain_ramps_read(struct pretrain_options *o, const struct pretrain_ramps_given *given);

/* How much of a run is done: by its clock, or else by its steps.  Does not move while a loader uses it. */
struct pretrain_progress {
    int64_t n_steps;
    struct run_clock clock; /* total_s 0: there is none */
};

struct run_part pretrain_progress_part(const struct pretrain_progress *p);

#endif
