/* run: a training run of any task, from its flags to the model that it leaves.
 *
 * The rule: the phases and their order are those of run_all, for every task; what is a task's own in a phase
 * is a function of its row. */
#ifndef KILN_TASK_RUN_H
#define KILN_TASK_RUN_H

#include "dist/same_run.h"
#include "io/dir_lock.h"
#include "ops/backend.h"
#include "report/metrics.h"
#include "task/loop.h"
#include "task/missing.h"
#include "train/memory_fit.h"

/* A task that trains.  Each function gets the run's `self`; those that may be NULL say so. */
struct run_task {
    /* STATUS_USAGE names flags that do not go together.  The batch is that of all ranks. */
    struct status (*check)(void *self);

    /* Names each missing input, for a dry run; true if there is one. */
    bool (*find_missing)(void *self, struct missing *m);

    /* Opens model and data, and sets r->model, r->tokenizer and r->limits.  `assume` does it from the flags
     * alone, and leaves the model NULL if no flag gives it. */
    struct status (*open)(void *self);
    struct status (*assume)(void *self);

    /* Adds its own settings to those of the trainer that every run has. */
    void (*configure)(const void *self, struct trainer_config *config);

    /* Logs what is going to happen, and returns what would take less memory. */
    struct memory_cut (*announce)(const void *self, const struct trainer_plan *plan);

    /* Adds what of the data must be the same on all ranks. */
    void (*compare)(const void *self, struct same_run *same);

    /* The most disk space that checkpoints and models take at one time. */
    uint64_t (*disk_bytes)(const void *self, const struct trainer_plan *plan);

    /* Checks or removes the model in the output directory, on the first rank, once the directory is this
     * run's. */
    struct status (*claim)(void *self);

    /* Loads the weights and the position to start from. */
    struct status (*restore)(void *self);

    /* Runs the steps that are left, and saves the model. */
    struct status (*train)(void *self);

    /* Predicts, on the first rank, once all are done.  NULL: the task trains only. */
    struct status (*predict)(void *self);

    /* Frees what the others have opened; safe after each of them. */
    void (*close)(void *self);
};

struct run {
    const struct run_task *task;
    void *self;
    struct run_settings *settings; /* settings of all ranks once the run has begun; borrowed */
    bool learns;                   /* the run trains; else it only predicts */

    struct backend backend;
    struct ops half; /* ops of the backend, where precision.rounds_to_f16 */
    struct precision precision;
    struct missing missing;
    const struct model *model; /* borrowed from the task, as the tokenizer is */
    const struct tokenizer *tokenizer;
    struct batch_limits limits; /* limits of every batch */
    struct run_watch watch;
    struct loop loop;
    struct trainer trainer;
    struct metrics metrics;
    struct dir_lock own_lock, *lock; /* locks of output_dir; the caller may have locked it */
    int64_t start_ns;
    size_t free_before; /* free bytes of the device, before the model is allocated */
    size_t taken_bytes; /* bytes of host memory in use before that */
};

/* Sets a zeroed run; its own fields follow from the settings. */
void run_init(struct run *r, const struct run_task *task, void *self, struct run_settings *settings);

/* STATUS_OK when everything asked for is done; STATUS_PREEMPTED after a signal, with the state saved;
 * STATUS_NUMERIC names the first tensor that is not finite. */
struct status run_all(struct run *r);

/* Opens log.jsonl and its kin; what a run begins with is logged by its task. */
struct status run_open_logs(struct run *r);

/* First lines of a run in its logs, the same for every task. */
struct metrics_start run_start(const struct run *r);

/* Contents of a model directory of the run's weights, besides the weights. */
struct model_dir_contents run_contents(const struct run *r, const struct model_family *family);

/* Writes such a directory. */
struct status run_export(struct run *r, const char *path, const struct model_family *family);

/* The most bytes of checkpoints that a fresh run has on disk at one time, including the one being written:
 * `n_saves` are written and `keep_last` kept. keep_last 0 keeps all; the user may remove some, so only one is
 * counted. */
uint64_t run_checkpoint_bytes(const struct run *r, int64_t n_saves, int64_t keep_last,
                              const struct trainer_plan *plan);

#endif
