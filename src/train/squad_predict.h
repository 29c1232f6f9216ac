/* squad_predict: the logits of every feature, batch by batch, longest first, and the answers that follow. */
#ifndef KILN_TRAIN_SQUAD_PREDICT_H
#define KILN_TRAIN_SQUAD_PREDICT_H

#include "core/progress.h"
#include "data/squad_answers.h"
#include "train/trainer.h"

/* Limits of the batches that squad_predict will make, for planning. */
struct batch_limits squad_predict_limits(const struct squad_features *features, int64_t batch_size);

/* Runs the model on all features of `answers`, which was initialised for them, and finishes it. `progress`
 * shows how far it is.  `stopped` is asked after each batch whether to leave, and may be NULL.  STATUS_NUMERIC: the model
 * computes something that is not finite; STATUS_PREEMPTED if it was stopped. */
struct status squad_predict(struct trainer *t, struct squad_answers *answers, int64_t batch_size,
                            int32_t pad_id, struct progress *progress, bool (*stopped)(void));

#endif
