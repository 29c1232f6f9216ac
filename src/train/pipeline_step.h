/* pipeline_step: the passes of a pipeline.  Each stage runs its chunks of layers over all micro-batches in
 * the order of dist/pipeline.h, and exchanges activations and their gradients with its neighbours.  A stage
 * has weights, gradients, moments and activations of its own layers only.
 *
 * Gradients are summed in the same order as in trainer_step, so the bits are the same, for every parameter
 * but the one that input layer and heads have in common (model.tied).  The heads' stage sums its gradients
 * of that over the step, and the input layer's stage adds them to its own once; a single trainer adds the
 * two micro-batch by micro-batch.  The bits do not depend on how many stages and chunks there are, if there
 * are several stages.
 */
#ifndef KILN_TRAIN_PIPELINE_STEP_H
#define KILN_TRAIN_PIPELINE_STEP_H

#include "train/trainer.h"

/* The gradients of this stage's layers over the micro-batches of this rank's pipeline; the heads' stage
 * has the sums of losses. */
void pipeline_gradients(struct trainer *t, const struct batch_step *batch);

/* After an update: the heads' stage gets the weights that the input layer's has updated. */
void pipeline_share_tied(struct trainer *t);

/* trainer_evaluate_batch of this rank's pipeline; the heads' stage has the sums. */
void pipeline_evaluate_batch(struct trainer *t, const struct batch *batch);

#endif
