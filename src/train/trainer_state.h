/* trainer_state: a trainer's weights and moments from checkpoints, whatever memory its device has. */
#ifndef KILN_TRAIN_TRAINER_STATE_H
#define KILN_TRAIN_TRAINER_STATE_H

#include "model/training_state.h"
#include "train/trainer.h"

/* Files that only some checkpoints have. */
#define TRAINER_STATE_CHOICES_FILE   "cublaslt.cache"  /* the algorithms of the run on a GPU */
#define TRAINER_STATE_HISTORIES_FILE "fp8.safetensors" /* histories of factors in fp8 */
#define TRAINER_STATE_HISTORIES      "histories"       /* its tensor */

/* Adds those files to the contents of a save.  contents->owned is the text of choices. */
struct status trainer_state_extras(struct trainer *t, struct checkpoint_contents *contents);

/* Loads the weights, moments and fp8 histories of a state of the same parameters. */
struct status trainer_state_resume(struct trainer *t, const struct training_state *from);

#endif
