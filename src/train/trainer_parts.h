/* trainer_parts: what setting a trainer up (trainer_setup.c), its steps (trainer.c), sums over ranks
 * (gradient_sums.c), pipelines (pipeline_step.c) and the engine of a caller (param_engine.c) share; for these
 * alone.
 *
 * Setting up runs a complete micro-step and an update on a table of ops that only counts (ops_plan), by the
 * same functions as a step.  So what is allocated is what steps use.  While planning, tensors have no memory:
 * trainer_clear_added and trainer_run_update may pass them to ops but read none. */
#ifndef KILN_TRAIN_TRAINER_PARTS_H
#define KILN_TRAIN_TRAINER_PARTS_H

#include "train/trainer.h"

/* Zeroes sums and gradients before the first of n micro-batches of this rank, without the gradients that pass
 * through rooms.  Only gradients that the first micro-batch adds to are zeroed: products assign the
 * others. */
void trainer_clear(struct trainer *t, int64_t n);
void trainer_clear_added(struct trainer *t);

/* Sets the factors of one micro-batch's losses, in t->numbers. */
void trainer_scale_losses(struct trainer *t, const struct batch_step *batch, const struct batch *micro);

/* Queues the passes of the replica's micro-batch k, whose gradients go through t->rooms, where ranks share
 * gradients; nothing if there is no such micro-batch or it has no sequences. */
void trainer_queue_micro(struct trainer *t, const struct batch_step *batch, int64_t k);

/* Asks the micro_hook, before the next micro-batch of the step that trainer_clear began.  True: the step ends
 * here. */
bool trainer_abandons(struct trainer *t);

/* Broadcasts the model's sums from the heads' stage to all stages. */
void trainer_share_sums(struct trainer *t);

/* The elements of `flat` that hold model->tied, where this rank has it; and adding t->tied_part to its
 * gradient. */
tensor trainer_tied(const struct trainer *t, tensor flat);
void trainer_add_tied(struct trainer *t);

/* The gradients that this rank updates by: those of its shard. */
tensor trainer_own_gradients(const struct trainer *t);

/* Computes the norm of all gradients and updates the weights. */
void trainer_run_update(struct trainer *t);

/* ---- what a step leaves (trainer_result.c) ---- */

/* Waits for all earlier work, and reads its numbers. */
struct status trainer_read_results(struct trainer *t, const struct batch_step *batch,
                                   struct trainer_result *r);

/* STATUS_NUMERIC naming the first tensor with an infinity or NaN, in the order of computation: weights,
 * activations of the last micro-batch, which is run again for that, gradients. */
struct status trainer_name_nonfinite(struct trainer *t, int64_t step, const struct trainer_result *r);

/* ---- sums over ranks (gradient_sums.c) ---- */

/* stage.gradient_done of ranks with replicas: sums the buckets up to this one that are not summed yet. */
void gradient_sums_up_to(void *trainer, int bucket);

/* Computes and sums the gradients of all micro-batches where replicas share gradients. */
void gradient_sums_in_rounds(struct trainer *t, const struct batch_step *batch);

/* Sums the buckets that no backward has reported, without micro-batches or after a failure, and all that is
 * in no bucket.  Then the model's sums of losses are the same on all ranks, too. */
void gradient_sums_end(struct trainer *t);

/* ---- pipelines (pipeline_step.c) ---- */

/* Computes the gradients of this stage's layers over the micro-batches of this rank's pipeline; the heads'
 * stage has the sums of losses. */
void pipeline_gradients(struct trainer *t, const struct batch_step *batch);

/* Sends the tied weights that the input layer's stage has updated to the heads' stage; call it after an
 * update. */
void pipeline_share_tied(struct trainer *t);

/* trainer_evaluate_batch of this rank's pipeline; the heads' stage has the sums. */
void pipeline_evaluate_batch(struct trainer *t, const struct batch *batch);

#endif
