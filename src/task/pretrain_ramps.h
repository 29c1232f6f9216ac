/* pretrain_ramps: what changes while a pre-training run goes on, from the words of its flags; and the part of
 * the run that is done, which it changes with. */
#ifndef KILN_TASK_PRETRAIN_RAMPS_H
#define KILN_TASK_PRETRAIN_RAMPS_H

#include "core/ramp.h"
#include "task/pretrain.h"
#include "task/run_clock.h"

/* Which flags were given, beside those that a ramp goes with. */
struct pretrain_ramps_given {
    bool max_seq_length;                                /* else that of length_schedule */
    bool train_batch_size, gradient_accumulation_steps; /* else a ramp sets them */
    bool max_steps, steps_this_run;                     /* which end a run by steps */
    bool warmup_proportion;
};

/* Reads o->length_schedule into o->shorter and o->batch_ramp into o->n_micro, sets the sizes of the batch
 * that it asks for and that were not given, and checks what changes against the run.  STATUS_USAGE names the
 * flags. */
struct status pretrain_ramps_read(struct pretrain_options *o, const struct pretrain_ramps_given *given);

/* How much of a run is done: by its clock, or else by its steps.  Does not move while a loader uses it. */
struct pretrain_progress {
    int64_t n_steps;
    struct run_clock clock; /* total_s 0: there is none */
};

struct run_part pretrain_progress_part(const struct pretrain_progress *p);

#endif
