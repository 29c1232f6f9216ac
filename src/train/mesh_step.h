/* mesh_step: one optimizer step of the ranks of a mesh (dist/mesh.h): tensor parallel, pipeline and data
 * parallel together.  Each rank declares its part of the model (core/param.h), and the ranks with the same
 * part sum their gradients, each over its own micro-batches, and may share the update (ZeRO 1; without
 * stages also ZeRO 2).
 *
 * The norm of the gradients is that of the whole model (train/update.h). */
#ifndef KILN_TRAIN_MESH_STEP_H
#define KILN_TRAIN_MESH_STEP_H

#include "dist/mesh.h"
#include "dist/pipeline.h"
#include "train/trainer.h"

/* How a mesh cuts the model. */
struct mesh_cut {
    int n_chunks; /* ranges of layers of a stage; 0 or 1: not interleaved */
    enum pipeline_partition partition;
    bool sequence_parallel; /* tensor-parallel ranks divide the rows of the residual stream (nn/stream.h) */
};

/* Changes `config` to that of a rank of the mesh, for
 * steps of at most n_micro micro-batches of a pipeline.  STATUS_USAGE says what of the model does not
 * divide, or cannot be combined. */
struct status mesh_configure(struct trainer_config *config, struct mesh_shape shape, struct mesh_place place,
                             struct mesh_cut cut, int64_t n_micro);

/* trainer_step over `part`, the micro-batches of this rank's replica of the model with the counts of the
 * global batch.  t->mesh must be `m`, and with several tensor-parallel ranks the exec's peers m->tensor.
 * The result is the same on every rank, and so is an error before the norm of the gradients is known; other
 * ranks find a later one when they make their next call. */
struct status mesh_step(struct trainer *t, const struct mesh *m, const struct batch_step *part, int64_t step,
                        int64_t update, double lr, bool mean_of_micro_batches, struct trainer_result *result);

/* The gradients of the whole step, and the sums of losses on every rank: the input of trainer_update. */
void mesh_gradients(struct trainer *t, const struct mesh *m, const struct batch_step *part,
                    struct stage_numbers *numbers, bool mean_of_micro_batches);

/* trainer_evaluate_batch, and the end of an evaluation, on the ranks of t->mesh, or alone without one: all
 * ranks of a replica have its sums. */
void mesh_evaluate_batch(struct trainer *t, const struct batch *batch);
void mesh_share_sums(struct trainer *t);

#endif
