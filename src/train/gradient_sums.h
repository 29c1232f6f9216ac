/* gradient_sums: the sums of a step's gradients over the ranks of a mesh.
 *
 * Replicas, the ranks with the same part of the model, sum a bucket of layers (core/param_buckets.h), in rank
 * order, as soon as their last micro-batch has queued it, from the heads to the input; so its recording has a
 * segment for each bucket.  Every rank makes the same list of sums, even after a failure.  Where they share
 * gradients (train/trainer_ranks.h) that is so in every micro-batch: the sum is over ranks first, and over
 * rounds of one micro-batch each second.
 * In fp8 replicas also take the maximum of their largest magnitudes, for the scales of the next step.
 *
 * A replica alone sums nothing and makes no call. */
#ifndef KILN_TRAIN_GRADIENT_SUMS_H
#define KILN_TRAIN_GRADIENT_SUMS_H

#include "train/trainer.h"

/* trainer.gradient_done of ranks with replicas, for whose context, the trainer, it sums the buckets up to
 * this one that are not summed yet. */
void gradient_sums_up_to(void *trainer, int bucket);

/* The gradients of all micro-batches where replicas share them. */
void gradient_sums_in_rounds(struct trainer *t, const struct batch_step *batch);

/* What no backward has told of: without micro-batches, or after a failure; and what is no bucket.  In the end
 * the model's sums of losses are the same on all ranks, too. */
void gradient_sums_end(struct trainer *t);

#endif
