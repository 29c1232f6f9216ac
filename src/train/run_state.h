/* run_state: where a pre-training run stands, as trainer_state.json keeps it.  Everything random is addressed
 * by seed and step, so these few numbers are the whole position: no generator state, no data cursor. */
#ifndef KILN_TRAIN_RUN_STATE_H
#define KILN_TRAIN_RUN_STATE_H

#include "core/json.h"

struct run_state {
    int64_t phase;       /* 1 or 2 */
    int64_t step;        /* optimizer steps done in this phase: also the optimizer's own counter */
    int64_t global_step; /* over both phases; names the checkpoint and addresses dropout */
    int64_t seed;
    const char *dtype; /* precision_name */
    const char *optimizer;
    int64_t max_seq_length, max_predictions_per_seq, train_batch_size, gradient_accumulation_steps, max_steps;
    double learning_rate, warmup_proportion;
};

/* The caller json_decref's it; NULL without memory. */
json_t *run_state_to_json(const struct run_state *s);

/* Strings are borrowed from `object`. */
struct status run_state_parse(struct run_state *s, const json_t *object, const char *source);

/* Logs each setting of the same phase that differs from the checkpoint's: allowed, but the run is then no
 * longer the one that was interrupted. */
void run_state_warn_differences(const struct run_state *saved, const struct run_state *now);

#endif
