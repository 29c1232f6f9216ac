/* diagnose: which tensor went wrong first, when a loss or a gradient is not finite. */
#ifndef KILN_TRAIN_DIAGNOSE_H
#define KILN_TRAIN_DIAGNOSE_H

#include "train/trainer.h"

/* STATUS_NUMERIC naming the first tensor with an infinity or NaN, in the order of computation: weights,
 * activations of the last micro-batch, which is run again for that, gradients.  Ranks
 * that share gradients look at all of them together. */
struct status diagnose_nonfinite(struct trainer *t, int64_t step, const struct trainer_result *r);

#endif
