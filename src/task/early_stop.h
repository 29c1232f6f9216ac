/* early_stop: when a run ends before its last step, since the loss of held-out data no longer falls, and
 * which of its checkpoints is the best.
 *
 * As EarlyStoppingCallback with load_best_model_at_end of `transformers`: the best evaluation is that of the
 * lowest loss; an evaluation is an improvement if its loss is below the best before it by more than `delta`;
 * after `patience` evaluations in a row without improvement the run ends.  The counts are part of the
 * position (task/run_state.h), so a resumed run ends where an uninterrupted one does. */
#ifndef KILN_TASK_EARLY_STOP_H
#define KILN_TASK_EARLY_STOP_H

#include "core/status.h"

#include <stdint.h>

/* Flags of early stopping. */
struct early_stop_options {
    int64_t patience; /* evaluations; 0: a run does not end early, and none is the best */
    double delta;
};

struct early_stop_state {
    double best_loss;
    int64_t best_step; /* step of the checkpoint with best_loss; 0: no evaluation yet */
    int64_t n_worse;   /* evaluations in a row without improvement */
};

/* Records an evaluation at this step.  True: it is the best so far.  A loss that is not finite never is. */
bool early_stop_take(struct early_stop_state *s, const struct early_stop_options *o, int64_t step,
                     double loss);

/* Whether `patience` evaluations in a row brought no improvement; false if patience is 0. */
bool early_stop_is_over(const struct early_stop_state *s, const struct early_stop_options *o);

#endif
