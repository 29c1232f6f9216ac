/* pipeline_step: one optimizer step of a pipeline.  Stage s runs its layers over all micro-batches in the
 * order of dist/pipeline.h, and exchanges activations and their gradients with its neighbours.  A stage has
 * weights, gradients, moments and activations of its own layers only.
 *
 * Gradients are summed in the same order as in trainer_step, so the bits are the same, for every parameter
 * but the one that input layer and heads have in common (model.tied).  The heads' stage sums its gradients
 * of that over the step, and the input layer's stage adds them to its own once; a single trainer adds the
 * two micro-batch by micro-batch.  The bits do not depend on how many stages there are, if there are
 * several. After the update the input layer's stage sends the weights that the heads read.
 *
 * Several pipelines may train together, each on its own micro-batches (`data`): the ranks of a stage sum
 * their gradients, and may share the update (train/update.h). */
#ifndef KILN_TRAIN_PIPELINE_STEP_H
#define KILN_TRAIN_PIPELINE_STEP_H

#include "dist/comm.h"
#include "train/trainer.h"

/* The ranks of a step. */
struct pipeline_ranks {
    const struct comm *stages; /* this pipeline's, in the order of the layers */
    const struct comm *data;   /* the ranks with the same stage of other pipelines */
};

/* Changes `config` to that of a stage, for steps of at most n_micro micro-batches.  STATUS_USAGE: there are
 * more stages than layers, or layers pass on more than stages exchange, or ranks share gradients. */
struct status pipeline_configure(struct trainer_config *config, int stage, int n_stages, int64_t n_micro);

/* The gradients of this stage's layers, and the sums of the whole step on every rank: the input of
 * trainer_update. */
void pipeline_gradients(struct trainer *t, struct pipeline_ranks ranks, const struct batch_step *part,
                        struct stage_numbers *numbers, bool mean_of_micro_batches);

/* trainer_step over `part`, the micro-batches of this rank's pipeline with the counts of the global batch.
 * t->parts must be the ranks of the whole model. The result is the same on every rank, and so is an error
 * before the norm of the gradients is known; other ranks find a later one when they make their next call. */
struct status pipeline_step(struct trainer *t, struct pipeline_ranks ranks, const struct batch_step *part,
                            int64_t step, int64_t update, double lr, bool mean_of_micro_batches,
                            struct trainer_result *result);

/* trainer_evaluate_batch of this rank's pipeline; the heads' stage has the sums. */
void pipeline_evaluate_batch(struct trainer *t, const struct comm *stages, const struct batch *batch);

#endif
