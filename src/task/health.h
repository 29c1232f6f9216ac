/* health: what a long run looks at besides its steps, if asked to: spikes of the loss or of the gradient's
 * norm, and whether the ranks still have the same weights (docs/decisions/0062_health.md).
 *
 * Spikes as in llm.c (llmc/outlier_detector.h): how many deviations a value is above the mean of the last
 * `window` steps.  What is done as in PaLM (Chowdhery et al. 2022, arXiv:2204.02311, section 5.1): back to a
 * checkpoint from before, without the batches seen before and at the spike.  What is kept is part of the
 * position (task/run_state.h), so a resumed run does the same. */
#ifndef KILN_TASK_HEALTH_H
#define KILN_TASK_HEALTH_H

#include "core/json.h"
#include "dist/comm.h"
#include "pass/network.h"

#include <stdint.h>

enum { HEALTH_MOST_WINDOW = 1024, HEALTH_MOST_ROLLBACKS = 16 };

/* The flags. */
struct health_options {
    double spike_z;          /* deviations above the mean that are a spike; 0: nobody looks */
    int64_t spike_window;    /* steps, 2 to HEALTH_MOST_WINDOW; nothing is a spike before as many are known */
    int64_t spike_skip;      /* steps before a spike that are left out with it */
    int64_t spike_rollbacks; /* at most HEALTH_MOST_ROLLBACKS; the spike after them ends the run */
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

/* Of a step's value: how many deviations it is above the mean; 0 while the window is not full or has no
 * deviation. */
struct health_score {
    double log_loss, grad_norm;
};

struct health_score health_score(const struct health_state *s, const struct health_options *o, double loss,
                                 double grad_norm);
bool health_is_spike(const struct health_options *o, struct health_score score);

/* Adds the values of a step; the oldest leave a full window. */
void health_add(struct health_state *s, const struct health_options *o, double loss, double grad_norm);

bool health_leaves_out(const struct health_state *s, int64_t step);

/* Leaves out the spike at `step` and spike_skip steps before it.  False: there were spike_rollbacks of
 * them. */
bool health_leave_out(struct health_state *s, const struct health_options *o, int64_t step);

/* As "health" of trainer_state.json; NULL if nothing is known, or memory runs out.  The state of NULL is
 * zero.  STATUS_DATA if it cannot be the health of a run at this step. */
json_t *health_to_json(const struct health_state *s);
struct status health_parse(struct health_state *s, const json_t *object, int64_t step, const char *source);

/* STATUS_IO, the same on all ranks, unless all have the same bits in `weights`, in the memory of the exec's
 * device, after so many steps: it names the ranks that differ from most, or all if there is no such
 * majority.  STATUS_DATA where `begins`: before this run has made a step. */
struct status health_check_replicas(const struct comm *world, struct exec *x, tensor weights, int64_t step,
                                    bool begins);

/* The same of the parameters that no slice of the model cuts, such as norms, of which each rank of a
 * tensor-parallel group has its own. */
struct status health_check_uncut(const struct comm *peers, struct network *n, int64_t step, bool begins);

#endif
