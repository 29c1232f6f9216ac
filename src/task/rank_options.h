/* rank_options: how the ranks of a training run share its work, for any task. */
#ifndef KILN_TASK_RANK_OPTIONS_H
#define KILN_TASK_RANK_OPTIONS_H

#include "dist/mesh.h"
#include "train/trainer_ranks.h"
#include "watch/run_watch.h"

/* The flags of a command; all ranks have the same. */
struct rank_options {
    struct mesh mesh;    /* ranks that train together, a view; zeroed: this process alone */
    struct mesh_cut cut; /* cut of the model into its stages */
    /* batch of all ranks, in gradient_accumulation_steps micro-batches of all; 0: not given, and both flags
     * are per rank */
    int64_t global_batch_size;
    int64_t reproducible_ranks; /* up to this many ranks give the same bits; 0: only the same number does */
    int64_t zero_stage;         /* 0, 1: ranks share the update and its moments, or 2: gradients too */
    /* steps between comparisons of all ranks' weights; 0: only before the first step and each save */
    int64_t replica_check_steps;
};

/* The ranks, of which there is always one. */
struct mesh rank_options_mesh(const struct rank_options *o);
struct comm rank_options_world(const struct rank_options *o);

/* Ranks among which the samples of a step are dealt: those with the same part of the model. */
struct comm rank_options_data(const struct rank_options *o);

/* Makes the batch of one rank that of all.  STATUS_USAGE or STATUS_UNAVAILABLE names a flag that cannot be
 * combined with the others. */
struct status rank_options_take(const struct rank_options *o, bool fp8, int64_t *train_batch_size,
                                int64_t *gradient_accumulation_steps);

/* Whether ranks take turns at the micro-batches of a step (batch_step_init_part): a round of them is then a
 * part of the tree of sums. */
bool rank_options_in_turn(const struct rank_options *o);

/* Settings of a trainer for these ranks; steps have at most n_micro micro-batches of all ranks. */
struct trainer_ranks rank_options_ranks(const struct rank_options *o, int64_t n_micro);

/* run_watch_open for a rank: only the first one writes a log. */
struct status rank_options_open_watch(const struct rank_options *o, struct run_watch *w, struct backend *b,
                                      const char *command, const struct run_watch_options *watch);

/* Logs who trains, if there are several ranks. */
void rank_options_announce(const struct rank_options *o, int64_t train_batch_size,
                           int64_t gradient_accumulation_steps);

#endif
