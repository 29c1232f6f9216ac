/* trainer_ranks: the part of a training that one rank of a mesh (dist/mesh.h) does: which layers of the model
 * and which slice of them, which shard of the update and of the gradients (ZeRO, Rajbhandari et al. 2020,
 * arXiv:1910.02054, section 5), which blocks of the sums of gradients, and which slice of a checkpoint.
 *
 * All of it follows from the few numbers of struct trainer_ranks, so a rank is planned in the same way
 * whether the others are there or not. */
#ifndef KILN_TRAIN_TRAINER_RANKS_H
#define KILN_TRAIN_TRAINER_RANKS_H

#include "dist/mesh.h"
#include "dist/pipeline.h"
#include "pass/stage.h"
#include "train/gradient_tree.h"

/* The division of a model among the ranks of a mesh. */
struct mesh_cut {
    int n_chunks; /* ranges of layers of a stage; 0 or 1: not interleaved */
    enum pipeline_partition partition;
    bool sequence_parallel; /* tensor-parallel ranks divide the rows of the residual stream (nn/stream.h) */
};

struct trainer_ranks {
    struct mesh_shape shape; /* 0 in a direction: 1 */
    struct mesh_place place; /* place of this rank */
    struct mesh_cut cut;
    /* ZeRO's stage among the replicas.  0: each has everything; 1: each updates a shard, and has the
     * moments of this shard alone; 2: it also has the gradients of this shard alone, summed after each
     * micro-batch. */
    int zero_stage;
    /* most replicas that give the same bits (gradient_tree.h); 0: only the same number does */
    int reproducible;
    int64_t n_micro; /* micro-batches of a replica in a step, at most: plans and pipelines need it */
};

/* The shards of the update, at least one; and this rank's. */
int trainer_ranks_shards(const struct trainer_ranks *r);
int trainer_ranks_shard(const struct trainer_ranks *r);

/* Whether each replica has the gradients of its shard alone. */
bool trainer_ranks_share_gradients(const struct trainer_ranks *r);

/* This rank's blocks of a sum of gradients that does not depend on the ranks; n_all 0: the sum depends on the
 * ranks. */
struct gradient_blocks trainer_ranks_blocks(const struct trainer_ranks *r);

/* Chunks of a stage, of which a mesh without stages has one. */
int trainer_ranks_chunks(const struct trainer_ranks *r);

/* Sets net's part of the model, and how many micro-batches are in flight.  STATUS_USAGE: the model cannot be
 * divided so, or the settings cannot be combined. */
struct status trainer_ranks_place(struct trainer_ranks *r, struct network_config *net);

#endif
