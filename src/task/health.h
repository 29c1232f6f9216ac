/* health: checks of a long run that flags turn on: spikes of the loss or of the gradient's norm, and whether
 * the ranks still have the same weights (docs/decisions/0062_health.md).
 *
 * Spikes as in llm.c (llmc/outlier_detector.h): how many deviations a value is above the mean of the last
 * `window` steps.  A spike is answered as in PaLM (Chowdhery et al. 2022, arXiv:2204.02311, section 5.1): the
 * run rolls back to a checkpoint from before, and leaves out the batches before and at the spike.  The values
 * are part of the position (task/run_state.h), so a resumed run does the same. */
#ifndef KILN_TASK_HEALTH_H
#define KILN_TASK_HEALTH_H

#include "core/json.h"
#include "dist/comm.h"
#include "pass/network.h"

#include <stdint.h>

enum { HEALTH_MOST_WINDOW = 1024, HEALTH_MOST_ROLLBACKS = 16 };

/* Flags of the checks. */
struct health_options {
    double spike_z;       /* deviations above the mean that are a spike; 0: no check */
    int64_t spike_window; /* steps, 2 to HEALTH_MOST_WINDOW; nothing is a spike before the window is full */
    int64_t spike_skip;   /* steps before a spike that are left out with it */
    int64_t spike_rollbacks; /* rollbacks, at most HEALTH_MOST_ROLLBACKS; the spike after them ends the run */
};

/* Steps of the phase, from first to last, whose updates are left out. */
struct health_range {
    int64_t first, last;
};

/* Values are fp32, which the 15 digits of a JSON file keep exactly; the oldest first. */
struct health_state {
    int64_t n; /* values known */
    float log_loss[HEALTH_MOST_WINDOW], grad_norm[HEALTH_MOST_WINDOW];
    int64_t n_left_out; /* ranges: one of each rollback, in their order */
    struct health_range left_out[HEALTH_MOST_ROLLBACKS];
};

/* Deviations of a step's values above the mean; 0 while the window is not full or has no deviation. */
struct health_score {
    double log_loss, grad_norm;
};

/* Scores a step's loss and norm of the gradient against the last spike_window steps; whether a score is a
 * spike. */
struct health_score health_score(const struct health_state *s, const struct health_options *o, double loss,
                                 double grad_norm);
bool health_is_spike(const struct health_options *o, struct health_score score);

/* Adds the values of a step; the oldest leave a full window. */
void health_add(struct health_state *s, const struct health_options *o, double loss, double grad_norm);

/* Whether the updates of this step of the phase are left out. */
bool health_leaves_out(const struct health_state *s, int64_t step);

/* Leaves out the spike at `step` and spike_skip steps before it.  False: spike_rollbacks spikes were left out
 * before. */
bool health_leave_out(struct health_state *s, const struct health_options *o, int64_t step);

/* Writes and reads "health" of trainer_state.json; the JSON is NULL if nothing is known, or memory runs out.
 * NULL is read as a zeroed state.  STATUS_DATA if it cannot be the health of a run at this step. */
json_t *health_to_json(const struct health_state *s);
struct status health_parse(struct health_state *s, const json_t *object, int64_t step, const char *source);

/* STATUS_IO, the same on all ranks, unless all have the same bits in `weights`, in the memory of the exec's
 * device, after `step` steps: it names the ranks that differ from most, or all if there is no such majority.
 * STATUS_DATA where `begins`: before this run has made a step. */
struct status health_check_replicas(const struct comm *world, struct exec *x, tensor weights, int64_t step,
                                    bool begins);

/* Like health_check_replicas, for the parameters that no slice of the model cuts, such as norms: each rank of
 * a tensor-parallel group has its own copy. */
struct status health_check_uncut(const struct comm *peers, struct network *n, int64_t step, bool begins);

#endif
