/* rank_plan: the bytes of a rank of a mesh (dist/mesh.h) by kind, and what it sends in a step, with its
 * part of the model and its share of the update (train/trainer_ranks.h).  Nothing is run: the bytes are
 * those of trainer_plan, the plan that a rank of a run is made from.  In fp32 passes read the master, so
 * it is whole at every stage of ZeRO. */
#ifndef KILN_TRAIN_RANK_PLAN_H
#define KILN_TRAIN_RANK_PLAN_H

#include "train/trainer.h"

enum { ZERO_STAGES = 3 };

/* The plan of the replica with the largest shard, in the stage and the slice of config.ranks.place. */
struct rank_plan {
    struct trainer_plan trainer;          /* what such a rank of a run takes */
    int64_t shard_elements, all_elements; /* of flat buffers */
    /* fp32; at stages 1 and 2 of the shard, and of the vectors that passes read in fp32 */
    size_t master_bytes;
    size_t working_bytes;  /* the copy that products read; 0: they read the master, which is then whole */
    size_t gradient_bytes; /* at stage 2 of the shard, and rooms for the layers that are not summed yet */
    size_t optimizer_bytes, activation_bytes, scratch_bytes, library_bytes; /* scratch: of ops */
    size_t rest_bytes;   /* results, and the ends of buffers */
    size_t device_bytes; /* all of the above */
    size_t host_bytes;   /* for the copy that a checkpoint is written from */
    size_t batch_bytes;  /* of host memory too, for the batches of two steps (data/prefetch.h) */

    /* What replicas exchange in a step, whole: a ring sends nearly as much (dist/ring_cost.h). */
    double reduced_bytes;  /* of gradients, each time */
    int64_t n_reductions;  /* a step */
    double gathered_bytes; /* of weights and of sums for norms; at stage 0 nothing, but gradients go to all */

    /* What one rank sends in a step: to its slices' peers; to the stages before and after; and, of the first
     * and the last stage, of the parameter that they have in common. */
    double tensor_bytes, pipe_bytes, tied_bytes;
    /* besides, of losses and of sums for norms: to slices, to stages, and to replicas */
    double slice_number_bytes, stage_number_bytes, replica_number_bytes;
};

/* config->ranks.place.dp does not matter.  STATUS_USAGE: the model does not divide so. */
struct status rank_plan(struct rank_plan *p, const struct trainer_config *config);

/* What must be free on the device: on the host also the copy for a save, and the batches. */
size_t rank_plan_needed(const struct rank_plan *p, const struct device *device);

/* The fewest devices with the whole model each, a power of two up to RANK_PLAN_MOST_WORLD, and then the
 * lowest stage of ZeRO, that need at most so many bytes each; *world is 0 if none do. */
enum { RANK_PLAN_MOST_WORLD = 4096 };
struct status rank_plan_smallest(const struct trainer_config *config, double bytes, int64_t *world,
                                 int *stage);

/* What a rank sends to the next stage of a micro-batch: the outputs of a layer, of its own rows. */
double rank_plan_message_bytes(const struct trainer_config *config);

/* What the replicas of a stage exchange in a step, whole: of a sum that all have, twice. */
double rank_plan_exchanged(const struct rank_plan *p, const struct trainer_config *config);

/* What a rank sends in a step, in all, by whom it goes to, as dist/mesh.h counts it in a run.  A rank of a
 * group of two sends exactly this; of more, by rings of equal parts: ranks whose parts are not equal send
 * more or less, and as many bytes together. */
struct rank_traffic {
    double slices, stages, replicas;
};
struct rank_traffic rank_plan_traffic(const struct rank_plan *p, const struct trainer_config *config);

#endif
