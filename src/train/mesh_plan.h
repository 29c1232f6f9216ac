/* mesh_plan: the bytes of a rank of a mesh (dist/mesh.h) by kind, and what it sends in a step.  Nothing is
 * run: a rank's bytes are those of trainer_plan for the part of the model that mesh_configure gives it. */
#ifndef KILN_TRAIN_MESH_PLAN_H
#define KILN_TRAIN_MESH_PLAN_H

#include "train/mesh_step.h"
#include "train/zero_plan.h"

struct mesh_job {
    struct trainer_config config; /* of one rank that has the whole model */
    struct mesh_shape shape;
    struct mesh_cut cut;
    int zero_stage;
    int64_t n_micro; /* of a replica in a step */
};

/* The ranks of one stage, which are alike: that of the first slice. */
struct mesh_stage_plan {
    struct zero_plan zero; /* among the replicas; its traffic is what they exchange, whole */
    /* that one rank sends in a step, in bytes: to its slices' peers; to the stages before and after; and, of
     * the first and the last stage, of the parameter that they have in common */
    double tensor_bytes, pipe_bytes, tied_bytes;
    /* besides, of losses and of sums for norms: to slices, to stages, and to replicas */
    double slice_number_bytes, stage_number_bytes, replica_number_bytes;
};

/* What a rank sends in a step, in all, by whom it goes to, as dist/mesh.h counts it in a run.  A rank of a
 * group of two sends exactly this; of more, by rings of equal parts: ranks whose parts are not equal send
 * more or less, and as many bytes together. */
struct mesh_traffic {
    double slices, stages, replicas;
};

/* Chunks of a stage, of which a mesh without stages has one. */
int mesh_plan_chunks(const struct mesh_job *job);

/* What a rank sends to the next stage of a micro-batch: the outputs of a layer, of its own rows. */
double mesh_plan_message_bytes(const struct mesh_job *job);

/* What the replicas of a stage exchange in a step, whole: of a sum that all have, twice. */
double mesh_plan_exchanged(const struct mesh_stage_plan *p, const struct mesh_job *job);

struct mesh_traffic mesh_plan_traffic(const struct mesh_stage_plan *p, const struct mesh_job *job);

/* STATUS_USAGE: the model does not divide so. */
struct status mesh_plan_stage(struct mesh_stage_plan *p, const struct mesh_job *job, int stage);

#endif
