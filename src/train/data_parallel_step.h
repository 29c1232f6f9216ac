/* data_parallel_step: one optimizer step that the ranks of a communicator take together, each over its own
 * micro-batches of the global batch.  All hold the same weights before and after it.
 *
 * The gradients of a bucket of layers (core/param_buckets.h) are summed over ranks, in rank order, as soon as
 * this rank's last micro-batch has queued them, from the heads to the input; so its recording has a segment
 * for each bucket.  Every rank makes the same list of sums, even after a failure.
 * Where ranks share gradients (config.shares_gradients) that is so in every micro-batch: the sum is over
 * ranks first, and over rounds of one micro-batch each second.
 * In fp8 the ranks also take the maximum of their largest magnitudes, for the scales of the next step.
 *
 * Each rank does the whole update, or the ranks share it (train/update.h): config.n_shards of the trainer
 * decides. */
#ifndef KILN_TRAIN_DATA_PARALLEL_STEP_H
#define KILN_TRAIN_DATA_PARALLEL_STEP_H

#include "dist/comm.h"
#include "train/trainer.h"

/* Computes what trainer_update reads: the gradients and sums of the whole step, on every rank.  Where ranks
 * share the update, only a rank's shard of the gradients is defined. */
void data_parallel_gradients(struct trainer *t, const struct comm *c, const struct batch_step *part,
                             struct stage_numbers *numbers, bool mean_of_micro_batches);

/* The sums over ranks of gradients, and of the model's sums, that this rank has whole: the end of a step
 * whose backward told nobody of its buckets. */
void data_parallel_sum(struct trainer *t, const struct comm *c);

/* trainer_step over `part`, this rank's micro-batches with the counts of the global batch (batch_step_part).
 * The result is that of the global batch, on every rank; so is an error. */
struct status data_parallel_step(struct trainer *t, const struct comm *c, const struct batch_step *part,
                                 int64_t step, int64_t update, double lr, bool mean_of_micro_batches,
                                 struct trainer_result *result);

#endif
