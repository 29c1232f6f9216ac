/* trainer_parts: what setting a trainer up (trainer_setup.c), its steps (trainer.c) and those of meshes
 * (mesh_step.c, pipeline_step.c) share; for these alone.
 *
 * Setting up runs a whole micro-step and an update on a table of ops that only counts (ops_plan), by the same
 * functions as a step.  So what is allocated is what steps use.  While planning, tensors have no memory:
 * these two functions may pass them to ops but read none. */
#ifndef KILN_TRAIN_TRAINER_PARTS_H
#define KILN_TRAIN_TRAINER_PARTS_H

#include "train/trainer.h"

/* Zeroes the gradients that the first micro-batch adds to; products assign the others. */
void trainer_clear_added(struct trainer *t);

/* The gradients that this rank updates by: those of its shard. */
tensor trainer_own_gradients(const struct trainer *t);

/* Norm and update.  c: NULL, or of the ranks that share it. */
void trainer_run_update(struct trainer *t, const struct comm *c);

#endif
