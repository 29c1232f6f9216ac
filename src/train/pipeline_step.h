/* pipeline_step: one optimizer step of a pipeline.  Rank s runs the layers of stage s over all micro-batches
 * in the order of dist/pipeline.h, and exchanges activations and their gradients with its neighbours.
 *
 * Every gradient is summed in the same order as in trainer_step, so the bits are the same.  That holds for
 * the parameter that the first and last stages share, too: the heads' gradient of a micro-batch is sent to
 * the first stage, which adds it before its own.  A stage updates its own layers and has only their moments;
 * after the update the first stage sends the weights that the heads read to the last.  Buffers of weights and
 * gradients still have room for all layers (docs/decisions/0039_ranks.md). */
#ifndef KILN_TRAIN_PIPELINE_STEP_H
#define KILN_TRAIN_PIPELINE_STEP_H

#include "dist/comm.h"
#include "train/trainer.h"

/* Changes `config` to that of a stage, for steps of at most n_micro micro-batches.  STATUS_USAGE: there are
 * more stages than layers, or layers pass on more than stages exchange. */
struct status pipeline_configure(struct trainer_config *config, int stage, int n_stages, int64_t n_micro);

/* The gradients of this stage's layers, and the sums of the whole step on every rank: the input of
 * trainer_update. */
void pipeline_gradients(struct trainer *t, const struct comm *c, const struct batch_step *batch,
                        struct stage_numbers *numbers, bool mean_of_micro_batches);

/* trainer_step over the stages of a communicator; every rank has the whole batch.  The result is the same on
 * every rank, and so is an error before the norm of the gradients is known; other ranks find a later one when
 * they make their next call. */
struct status pipeline_step(struct trainer *t, const struct comm *c, const struct batch_step *batch,
                            int64_t step, int64_t update, double lr, bool mean_of_micro_batches,
                            struct trainer_result *result);

/* Gathers the weights of all stages on every rank; after a step a rank has only those of its own layers, and
 * those of the first stage that its heads read. */
void pipeline_gather_weights(struct trainer *t, const struct comm *c);

#endif
