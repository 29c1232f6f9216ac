/* loop: a training run.  Its task provides batches, a handler of results, and an evaluation.
 *
 * Position, resumption, checkpoints, signals and the profiler's window are the same for every task and are
 * here.  A task (task/pretrain.c, task/finetune_train.c) opens its inputs, fills in a loop, and calls
 * loop_restore, loop_open and loop_run. */
#ifndef KILN_TASK_LOOP_H
#define KILN_TASK_LOOP_H

#include "core/slow_work.h"
#include "dist/mesh.h"
#include "optim/schedule.h"
#include "task/run_clock.h"
#include "task/run_settings.h"
#include "task/run_state.h"
#include "model/training_state.h"
#include "task/save_run.h"
#include "task/within_step.h"

/* Each function gets the loop's `self`.  Those that may be NULL say so. */
struct loop_task {
    /* Sets this rank's part of in-phase step `step`, with the counts of that part, borrowed until the next
     * call. Steps come in order, but after a spike some are left out, and some come again.  A failure ends
     * the run, after its weights are saved. */
    struct status (*next_batch)(void *self, int64_t step, const struct batch_step **batch);

    /* Called after each step; the batch has the counts of all ranks. */
    void (*on_result)(void *self, const struct batch_step *batch, double lr,
                      const struct trainer_result *result);

    /* Called every eval_steps steps and after the last: the loss of held-out data.  May be NULL. */
    struct status (*evaluate)(void *self, double *loss);

    /* Called after each step, before the evaluation and, if `due` or `stopping`, the save; also when a batch
     * could not be read.  A failure ends the run without a save.  May be NULL. */
    struct status (*before_save)(void *self, bool due, bool stopping);

    /* Checks whether the run may use the weights of this checkpoint.  May be NULL. */
    struct status (*check_checkpoint)(void *self, const struct training_state *from);

    /* Called if the run continues from a checkpoint of another phase.  NULL: this task has only one phase. */
    struct status (*begin_phase)(void *self, const struct run_state *saved, const char *path);

    bool saves_at_end; /* a save follows the last step, not only when one is due */
};

struct loop {
    /* set by the caller; pointers are borrowed */
    const struct loop_task *task;
    void *self;
    const struct run_settings *settings;
    struct trainer *trainer;
    /* a view of the ranks that run it together: each has the same loop, and its part of each batch */
    struct mesh ranks;
    struct metrics *log;
    /* directory of the checkpoints of this run's kind (own_files.h); set by loop_restore */
    char checkpoints[CHECKPOINT_PATH_BYTES];
    const struct tokenizer *tokenizer;
    struct schedule schedule;
    struct run_clock *clock;           /* the run is planned and ends by the clock; NULL: by steps */
    struct run_state state;            /* position and settings; the caller sets those of a fresh run */
    int64_t last_step;                 /* in-phase step after which this run ends */
    struct training_state_place place; /* the checkpoint to resume from; the loop sets its directory */

    int64_t first_step;    /* steps done before this run */
    int64_t compared_step; /* last step, over all phases, after which ranks compared their weights */
    /* last step, over all phases, whose checkpoint was begun; at first the step from which the run resumes */
    int64_t saved_step;
    struct slow_work start; /* slow work until the first step; the task may begin it before the loop */
    struct within_step within;
    struct micro_hook micro_hook; /* hook of the trainer, which calls `within` */
    bool abandoned;               /* the run was asked to stop within a step, which is not taken */
    bool leaving;                 /* the run ends, by settings->exit */
    struct save_run save_run;
    struct profile profile;
    struct tensor_log tensor_log;
};

/* Loads weights, moments and position from the checkpoint of place.step or, if there is one, from the
 * newest.  STATUS_USAGE if there is one, but the run was not asked to resume. */
struct status loop_restore(struct loop *l, bool *found);

/* Called after a step.  *back: the step was a spike, and the run is back at a checkpoint from before. */
struct status loop_look_for_spike(struct loop *l, const struct trainer_result *result, bool *back);

/* Whether the file that ends the run is there. */
bool loop_is_switched_off(const struct run_settings *s);

/* Opens the output: checkpoints and the profile. */
struct status loop_open(struct loop *l);

/* Whether the run is at its end: at last_step, out of time, or before it, since the loss of held-out data no
 * longer fell. */
bool loop_is_over(const struct loop *l);

/* Gives the trainer the weights of the best checkpoint, with early stopping after the last step. */
struct status loop_take_best(struct loop *l);

/* Runs the steps up to last_step, or until early stopping ends the run; STATUS_PREEMPTED after a signal, with
 * the state of the last complete step saved: the step that runs then is given up before its next micro-batch,
 * and done by the run that resumes. */
struct status loop_run(struct loop *l);

/* Waits for the save in flight; safe on a zeroed struct. */
void loop_close(struct loop *l);

#endif
