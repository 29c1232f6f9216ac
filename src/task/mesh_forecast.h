/* mesh_forecast: the predicted time of a step of a mesh (dist/mesh.h) on machines that need not be here.
 * Nothing is run: ops are counted on a roofline (step_forecast_run), what ranks send goes over the links
 * of the machine, and the stages of a pipeline take turns as their schedule says (dist/pipeline.h).
 *
 * Nothing overlaps but messages between stages, which are under way while both compute: that is how kiln's
 * ranks work today.  Ranks fill nodes in their order, so slices are neighbours. */
#ifndef KILN_TASK_MESH_FORECAST_H
#define KILN_TASK_MESH_FORECAST_H

#include "task/world_plan.h"
#include "train/rank_plan.h"

/* Times of a rank of one stage, in seconds. */
struct mesh_stage_forecast {
    double passes_s;             /* forward and backward of one micro-batch */
    double slices_s;             /* exchanges between slices in these passes */
    double message_s;            /* message to the next stage; of the last stage, to the first */
    double replicas_s, update_s; /* once a step: sums of gradients and weights to all; the update */
};

struct mesh_forecast {
    struct mesh_stage_forecast slowest; /* the stage that computes and exchanges longest, a micro-batch */
    double turns_s; /* time from the first forward of a step to its last backward, of all stages */
    double tied_s;  /* exchange of the parameter that the first and the last stage have in common */
    /* the longest of any stage */
    double replicas_s, update_s;
    double step_s;
};

/* `c` is the configuration of the set-up's bench, with the mesh, and `stages` [pp] are its plans (rank_plan).
 * STATUS_USAGE: the rate of such products is not known. */
struct status mesh_forecast_run(struct mesh_forecast *f, const struct world_setup *s,
                                const struct trainer_config *c, const struct rank_plan *stages);

/* Links of groups whose ranks are `stride` apart: a node has `stride` times fewer ranks of one group, at
 * least 1. */
struct ring_links mesh_forecast_links(const struct ring_links *l, int64_t stride);

/* Seconds in which each of n ranks sends `sent` bytes in rings: all that they exchange but its own part. */
double mesh_forecast_ring_s(const struct ring_links *l, double sent, int n);

/* Seconds of a message of `bytes` between the first ranks of stages a and b. */
double mesh_forecast_message_s(const struct world_setup *s, const struct trainer_ranks *r, int a, int b,
                               double bytes);

/* The part of a step in which the slowest stage neither computes nor exchanges: the bubble. */
double mesh_forecast_idle(const struct mesh_forecast *f, const struct trainer_config *c);

#endif
