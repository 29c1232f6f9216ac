/* diagnose: which tensor went wrong first, when a loss, a gradient or an answer is not finite. */
#ifndef KILN_TRAIN_DIAGNOSE_H
#define KILN_TRAIN_DIAGNOSE_H

#include "train/trainer.h"

/* STATUS_NUMERIC naming the first tensor with an infinity or NaN, in the order of computation: weights,
 * activations of the last micro-batch, which is run again for that, gradients. */
struct status diagnose_nonfinite(struct trainer *t, int64_t step, const struct trainer_result *r);

/* STATUS_NUMERIC unless all of `result`, in host memory, is finite: `what` was computed from the batch that
 * stage_infer ran last, and the message names the first weight or activation that is not finite. */
struct status diagnose_result(struct trainer *t, tensor result, const char *what);

#endif
