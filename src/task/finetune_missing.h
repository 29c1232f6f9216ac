/* finetune_missing: what a dry run of fine-tuning plans with where its inputs are not there yet. */
#ifndef KILN_TASK_FINETUNE_MISSING_H
#define KILN_TASK_FINETUNE_MISSING_H

#include "core/batch.h"
#include "nn/model.h"
#include "task/finetune_options.h"
#include "task/missing.h"

/* True if not all is there, and each that is not is named. */
bool finetune_find_missing(const struct finetune_options *o, struct missing *m);

/* The model as --config_file says it or, without one, --init_checkpoint: NULL where neither is there.  The
 * caller destroys it. */
struct status finetune_assume_model(struct model **model, const struct finetune_options *o,
                                    enum model_task task);

/* Batches as the flags alone say: of training and of prediction, zeros where there is none. */
struct status finetune_assume_limits(const struct finetune_options *o, struct batch_limits *train,
                                     struct batch_limits *predict);

#endif
