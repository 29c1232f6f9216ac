/* save_run: the checkpoints of a trainer, whatever it is trained for: begun between two steps, written in the
 * background, told of in the log. */
#ifndef KILN_TASK_SAVE_RUN_H
#define KILN_TASK_SAVE_RUN_H

#include "text/tokenizer.h"
#include "model/background_save.h"
#include "report/metrics.h"

struct save_run {
    /* set by the caller, all borrowed */
    struct trainer *trainer;
    const char *directory;
    const struct tokenizer *tokenizer;
    int64_t keep_last; /* checkpoints; 0: all */
    struct metrics *log;
    struct profile *profile; /* may be NULL */

    struct background_save saver;
    struct status latest; /* of the newest save that was told of */
};

/* Allocates the copy of the state, trainer->plan.saving_bytes, once the caller's fields are set. */
struct status save_run_init(struct save_run *s);

/* Waits for the save in flight and tells of it; safe on a zeroed struct. */
void save_run_fini(struct save_run *s);

/* Begins to save DIRECTORY/ckpt_STEP; `state` for trainer_state.json is taken, NULL if memory runs out.  Waits for
 * a save that is still in flight.  A failure is told of and kept for save_run_finish: training can go on,
 * older checkpoints are intact. */
void save_run_begin(struct save_run *s, json_t *state, int64_t step, bool phase_end);

/* Tells of a save that has ended since; between any two steps. */
void save_run_tell(struct save_run *s);

/* Waits for the save in flight, tells of it and returns what became of the newest one. */
struct status save_run_finish(struct save_run *s);

#endif
