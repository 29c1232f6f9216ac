/* save_run: the checkpoints of a trainer, for any task: begun between two steps, written in the background,
 * and logged.  Of several ranks each writes its slices, and between two later steps, once all have, the first
 * one makes a checkpoint of them: so all ranks call these functions together. */
#ifndef KILN_TASK_SAVE_RUN_H
#define KILN_TASK_SAVE_RUN_H

#include "dist/comm.h"
#include "text/tokenizer.h"
#include "model/background_save.h"
#include "report/metrics.h"
#include "train/save_ranks.h"

struct save_run {
    /* set by the caller, all borrowed */
    struct trainer *trainer;
    const struct comm *world; /* the ranks that save together, each its slices */
    const char *directory;
    const struct tokenizer *tokenizer;
    int64_t keep_last; /* checkpoints; 0: all */
    int64_t best_step; /* step of a checkpoint that is kept besides; 0: none */
    struct metrics *log;
    struct profile *profile; /* may be NULL */

    struct background_save saver;
    struct save_ranks ranks; /* the save of several ranks in flight */
    struct status mine;      /* reason why this rank has no part in it */
    bool shared;             /* a save of several ranks is in flight */
    struct status latest;    /* status of the newest save that was logged */
};

/* Allocates the copy of the state, trainer->plan.saving_bytes.  The caller's fields must be set. */
struct status save_run_init(struct save_run *s);

/* Waits for the save in flight and, of a single rank, logs it; safe on a zeroed struct.  Ranks that have not
 * finished one together leave nothing of it. */
void save_run_fini(struct save_run *s);

/* Begins to save DIRECTORY/ckpt_STEP; takes `state`, for trainer_state.json, which is NULL if memory ran out.
 * Waits for a save that is still in flight.  A failure is logged and kept for save_run_finish: training can
 * continue, older checkpoints are intact. */
void save_run_begin(struct save_run *s, json_t *state, int64_t step, bool phase_end);

/* Logs a save that has ended since the last call; call it between any two steps. */
void save_run_tell(struct save_run *s);

/* Waits for the save in flight, logs it and returns the status of the newest one. */
struct status save_run_finish(struct save_run *s);

#endif
