/* run_state: the position of a run, as saved in trainer_state.json.  Everything random is addressed by seed
 * and step, so these few numbers are the complete position: no generator state, no data cursor. */
#ifndef KILN_TASK_RUN_STATE_H
#define KILN_TASK_RUN_STATE_H

#include "core/json.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "task/run_settings.h"
#include "train/trainer.h"

struct run_state {
    int64_t phase;       /* 1 or 2 */
    int64_t step;        /* optimizer steps done in this phase; less n_skipped the optimizer's own counter */
    int64_t global_step; /* over both phases; names the checkpoint and addresses dropout */
    struct run_settings settings; /* the file has those that decide an update */
    const char *dtype;            /* precision_name */
    const char *optimizer;
    const char *command; /* command of fine-tuning; NULL, and not in the file: pre-training */
    const char *data;    /* a hash of the training data; NULL in checkpoints of earlier versions */
    int64_t max_predictions_per_seq;

    /* Other settings that decide an update; as now where a checkpoint of an earlier version does not have
     * them. */
    struct optimizer update;
    struct schedule rate;
    const char *lr_schedule, *lr_decay; /* names; lr_decay is that of "anneal", else NULL */

    /* Settings of fine-tuning; 0 or NULL where they are as usual. */
    const char *freeze;
    double layerwise_lr_decay;

    /* Settings that change during a run; 0 or NULL where none does. */
    const char *batch_ramp;               /* the words of its flag */
    const char *length_schedule;          /* flag of runs before 2026-11-29; NULL in all others */
    double total_training_time;           /* seconds; 0: the run ends by steps */
    double elapsed_seconds, step_seconds; /* clock of total_training_time: run_clock's fields */
    int64_t n_tokens;                     /* tokens trained on in this phase; with warmup_tokens only */

    struct early_stop_state early; /* 0, and not in the file, without --early_stopping_patience */

    struct health_state health; /* "health" of the file; empty, and not in it, without --spike_z */

    /* Scale of fp16; without it 0 and not in the file. */
    double loss_scale;
    int64_t loss_scale_steps; /* loss_scale's n_good and n_kept */
    int64_t loss_scale_kept;

    /* Steps of this phase without an update, in fp16 or by `health`: the optimizer does not count them. */
    int64_t n_skipped;
};

/* State of a fresh run, with the settings that every run has. */
struct run_state run_state_begin(const struct run_settings *s, struct precision precision);

/* The caller json_decref's it; NULL if memory runs out. */
json_t *run_state_to_json(const struct run_state *s);

/* Strings are borrowed from `object`.  It has all settings or none; then they are those of `now`,
 * which is this run's. */
struct status run_state_parse(struct run_state *s, const struct run_state *now, const json_t *object,
                              const char *source);

/* Takes the scale of the next step from the trainer, after a step; and restores it in a trainer whose scale
 * is dynamic. */
void run_state_keep_scale(struct run_state *s, const struct loss_scale *scale,
                          const struct trainer_result *result);
void run_state_resume_scale(const struct run_state *saved, struct loss_scale *scale);

/* STATUS_DATA if the checkpoint at `path` was trained on other data, in the same phase, than --FLAG names
 * now, or in batches of another size.  If that is allowed it is a warning. */
struct status run_state_check_data(const struct run_state *saved, const struct run_state *now, bool allowed,
                                   const char *path, const char *flag);

/* Logs each setting, within the same phase, that differs from the checkpoint's.  That is allowed, but the run
 * then differs from the uninterrupted one. */
void run_state_warn_differences(const struct run_state *saved, const struct run_state *now);

#endif
