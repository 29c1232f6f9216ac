/* pipeline_step: one optimizer step of a pipeline, whose rank s runs the layers of stage s over all micro-batches in the
 * order of dist/pipeline.h, and exchanges what flows between layers with its neighbours.
 *
 * Every gradient gets what it gets in trainer_step in the same order, so the bits are the same.  That holds for the parameter
 * which the first stage shares with the last, too: what the heads add in a micro-batch is sent to the first stage, which adds
 * it before its own.  A stage updates its own layers and has the moments of those alone; behind the update the first sends the
 * weights that the heads read to the last.  Buffers of weights and gradients still have room for all layers
 * (docs/decisions/0039_ranks.md). */
#ifndef KILN_TRAIN_PIPELINE_STEP_H
#define KILN_TRAIN_PIPELINE_STEP_H

#include "dist/comm.h"
#include "train/trainer.h"

/* Makes `config` that of a stage, in steps of at most n_micro micro-batches.  STATUS_USAGE: there are more stages than
 * layers, or layers hand on what stages do not pass on. */
struct status pipeline_configure(struct trainer_config *config, int stage, int n_stages, int64_t n_micro);

/* The gradients of this stage's layers, and the sums of the whole step on every rank: what trainer_update takes. */
void pipeline_gradients(struct trainer *t, const struct comm *c, const struct batch_step *batch,
                        struct stage_numbers *numbers, bool mean_of_micro_batches);

/* trainer_step over the stages of a communicator; all have the whole batch.  The result, or the error, is the same on every
 * rank. */
struct status pipeline_step(struct trainer *t, const struct comm *c, const struct batch_step *batch,
                            int64_t step, int64_t update, double lr, bool mean_of_micro_batches,
                            struct trainer_result *result);

/* The weights of all stages, on every rank; after a step each has those of its own layers only, and what its heads read of the
 * first's. */
void pipeline_gather_weights(struct trainer *t, const struct comm *c);

#endif
