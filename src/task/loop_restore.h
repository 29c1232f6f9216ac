/* loop_restore: where a run goes on from: a checkpoint when it begins (loop_restore), one from before a
 * spike, and the best one at the end (loop_take_best).  Only loop.c includes this. */
#ifndef KILN_TASK_LOOP_RESTORE_H
#define KILN_TASK_LOOP_RESTORE_H

#include "task/loop.h"

/* *back: the step was a spike, and the run stands at a checkpoint from before. */
struct status loop_look_for_spike(struct loop *l, const struct trainer_result *result, bool *back);

#endif
