/* zero_plan: the bytes of a device, and what it sends in a step, if `world` devices train a model together
 * and share as a stage of ZeRO says (Rajbhandari et al. 2020, arXiv:1910.02054, section 5):
 *
 *   0: each has everything, and gradients are summed on all of them;
 *   1: each has the moments and the fp32 master of its shard; gradients are summed there, and weights
 *   gathered from there; 2: each also has the gradients of its shard only, which are summed after each
 *   micro-batch.
 *
 * In fp32 passes read the master, so it is whole at every stage.  The bytes are those of trainer_plan, the
 * plan that a rank of a run is made from. */
#ifndef KILN_TRAIN_ZERO_PLAN_H
#define KILN_TRAIN_ZERO_PLAN_H

#include "train/trainer.h"

enum { ZERO_STAGES = 3 };

/* Of the device that has the largest shard. */
struct zero_plan {
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

    /* What is exchanged in a step, whole: a ring sends nearly as much (dist/ring_cost.h). */
    double reduced_bytes;  /* of gradients, each time */
    int64_t n_reductions;  /* a step */
    double gathered_bytes; /* of weights and of sums for norms; at stage 0 nothing, but gradients go to all */
};

/* `config`: of one rank that shares nothing.  n_micro: micro-batches of a device in a step. */
struct status zero_plan(struct zero_plan *z, const struct trainer_config *config, int64_t world, int stage,
                        int64_t n_micro);

/* What must be free on the device: on the host also the copy for a save, and the batches. */
size_t zero_plan_needed(const struct zero_plan *z, const struct device *device);

/* The fewest devices, a power of two up to ZERO_MOST_WORLD, and then the lowest stage, that need at most so
 * many bytes each; *world is 0 if none do. */
enum { ZERO_MOST_WORLD = 4096 };
struct status zero_plan_smallest(const struct trainer_config *config, int64_t n_micro, double bytes,
                                 int64_t *world, int *stage);

#endif
