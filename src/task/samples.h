/* samples: what the model makes of fixed prompts at each evaluation, so that people see it learn. */
#ifndef KILN_TASK_SAMPLES_H
#define KILN_TASK_SAMPLES_H

#include "task/pretrain_run.h"

/* STATUS_USAGE names a prompt that the family cannot continue, or a flag that samples cannot be with. */
struct status samples_check(const struct pretrain_options *o);

/* Draws a sample of each prompt with the weights of this moment, on the first rank, and logs it.  Training
 * does not depend on it: a failure is a warning. */
void samples_draw(struct pretrain_run *r);

#endif
