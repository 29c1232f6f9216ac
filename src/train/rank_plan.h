/* rank_plan: the bytes of a rank of a mesh (dist/mesh.h) by kind, and what it sends in a step, with its part
 * of the model and its share of the update (train/trainer_ranks.h).  Nothing is run: the bytes are those of
 * trainer_plan, the plan that a rank of a run is made from.  In fp32 passes read the master, so the master is
 * complete at every stage of ZeRO. */
#ifndef KILN_TRAIN_RANK_PLAN_H
#define KILN_TRAIN_RANK_PLAN_H

#include "train/trainer.h"

enum { ZERO_STAGES = 3 };

/* The plan of the replica with the largest shard, in the stage and the slice of config.ranks.place. */
struct rank_plan {
    struct trainer_plan trainer;          /* trainer's memory and work on such a rank */
    int64_t shard_elements, all_elements; /* elements of flat buffers */
    /* weights in fp32; at stages 1 and 2 those of the shard, and the vectors that passes read in fp32 */
    size_t master_bytes;
    size_t working_bytes; /* the copy that products read; 0: they read the master, which is then complete */
    /* gradients; at stage 2 those of the shard, and rooms for the layers that are not summed yet */
    size_t gradient_bytes;
    size_t optimizer_bytes, activation_bytes, scratch_bytes, library_bytes; /* scratch is that of ops */
    size_t rest_bytes;   /* results, and the ends of buffers */
    size_t device_bytes; /* bytes of all of the above */
    size_t host_bytes;   /* copy that a checkpoint is written from */
    size_t batch_bytes;  /* host memory too: the batches of two steps (data/prefetch.h) */

    /* Full sizes of the tensors that replicas exchange in a step; a ring sends nearly the same number of
     * bytes (dist/ring_cost.h). */
    double reduced_bytes; /* gradients, each time */
    int64_t n_reductions; /* times in a step */
    /* weights, and sums for norms; 0 at stage 0, where the sums of gradients go to all instead */
    double gathered_bytes;

    /* Bytes that one rank sends in a step: to the other slices; to the stages before and after; and, in the
     * first and the last stage, for the parameter that they have in common. */
    double tensor_bytes, pipe_bytes, tied_bytes;
    /* bytes of losses and of sums for norms, in addition: to slices, to stages, and to replicas */
    double slice_number_bytes, stage_number_bytes, replica_number_bytes;
};

/* Plans a rank; config->ranks.place.dp does not matter.  STATUS_USAGE: the model cannot be divided so. */
struct status rank_plan(struct rank_plan *p, const struct trainer_config *config);

/* Bytes that must be free on the device; if it is the host, with the copy for a save and the batches. */
size_t rank_plan_needed(const struct rank_plan *p, const struct device *device);

/* Finds the fewest devices with the complete model each, a power of two up to RANK_PLAN_MOST_WORLD, and then
 * the lowest stage of ZeRO, that need at most `bytes` each; *world is 0 if none do. */
enum { RANK_PLAN_MOST_WORLD = 4096 };
struct status rank_plan_smallest(const struct trainer_config *config, double bytes, int64_t *world,
                                 int *stage);

/* Bytes that a rank sends to the next stage for a micro-batch: the outputs of a layer, its own rows. */
double rank_plan_message_bytes(const struct trainer_config *config);

/* Full bytes that the replicas of a stage exchange in a step; a sum that all get counts twice. */
double rank_plan_exchanged(const struct rank_plan *p, const struct trainer_config *config);

/* All bytes that a rank sends in a step, by receiver, as dist/mesh.h counts them in a run.  In a group of two
 * a rank sends exactly this.  Larger groups are counted as rings of equal parts: with unequal parts a rank
 * sends more or less, and all ranks together the same number of bytes. */
struct rank_traffic {
    double slices, stages, replicas;
};
struct rank_traffic rank_plan_traffic(const struct rank_plan *p, const struct trainer_config *config);

#endif
