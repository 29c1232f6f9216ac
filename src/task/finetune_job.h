/* finetune_job: the state of a running fine-tuning, and the parts of it that have a file of their own: what
 * it begins with (finetune_start.c) and predictions (finetune_predict.c).  Only finetune.c and those two
 * include this. */
#ifndef KILN_TASK_FINETUNE_JOB_H
#define KILN_TASK_FINETUNE_JOB_H

#include "core/slow_work.h"
#include "io/dir_lock.h"
#include "ops/backend.h"
#include "report/metrics.h"
#include "task/finetune.h"
#include "train/trainer.h"
#include "watch/run_watch.h"

/* The state of a running command. */
struct finetune_job {
    struct finetune open;                   /* the part that the task sees */
    const struct finetune_options *options; /* of all ranks: the batch is the global one */
    const struct finetune_task *task;
    struct comm world;
    struct backend backend;
    struct ops half; /* the backend's, where precision.rounds_to_f16 */
    struct precision precision;
    struct run_watch watch;
    struct model *model; /* owned */
    struct trainer trainer;
    struct metrics log;
    struct dir_lock lock;
    bool ready; /* the model is there */
    struct slow_work start;
};

/* STATUS_USAGE: flags that do not go together, or nothing to do. */
struct status finetune_check_options(const struct finetune_options *o, const struct finetune_task *task);

/* Opens the model.  A configuration and vocabulary that were given too must be the model's own. */
struct status finetune_open_model(struct finetune_job *j);

/* The head may be new if it is going to be trained, or if predictions of a random one are wanted. */
struct status finetune_load_weights(struct finetune_job *j);

struct batch_limits finetune_predict_limits(const struct finetune_options *o,
                                            const struct finetune_data *data);

/* Predicts, writes, and with do_eval scores. */
struct status finetune_predict(struct finetune_job *j);

/* Keeps a score for a series of runs, if this one is part of one. */
void finetune_keep_score(const struct finetune_job *j, const char *name, double value);

#endif
