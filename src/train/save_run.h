/* save_run: a checkpoint of a trainer, whatever it is trained for. */
#ifndef KILN_TRAIN_SAVE_RUN_H
#define KILN_TRAIN_SAVE_RUN_H

#include "core/json.h"
#include "text/vocab.h"
#include "train/trainer.h"

/* What a checkpoint says beside the trainer's own memory; borrowed for the call. */
struct save_run {
    const char *directory;
    const struct vocab *vocab;
    bool lower_case;
    const json_t *state; /* for trainer_state.json; NULL without memory */
    int64_t step;        /* names the checkpoint */
    bool phase_end;      /* never pruned */
    int64_t keep_last;   /* 0: all */
};

/* Saves DIRECTORY/ckpt_STEP and prunes older ones.  On failure older checkpoints are intact and training can
 * go on. */
struct status save_run_checkpoint(const struct trainer *t, const struct save_run *s);

#endif
