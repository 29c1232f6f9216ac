/* trainer_state: a trainer's weights and moments from and to files, whatever memory its device has. */
#ifndef KILN_TRAIN_TRAINER_STATE_H
#define KILN_TRAIN_TRAINER_STATE_H

#include "model/checkpoint.h"
#include "model/model_dir.h"
#include "train/trainer.h"

/* Files that only some checkpoints have. */
#define TRAINER_STATE_CHOICES_FILE   "cublaslt.cache"  /* what the run computes with on a GPU */
#define TRAINER_STATE_HISTORIES_FILE "fp8.safetensors" /* histories of factors in fp8 */
#define TRAINER_STATE_HISTORIES      "histories"       /* its tensor */

/* Adds those files to what is saved.  contents->owned is the text of choices. */
struct status trainer_state_extras(struct trainer *t, struct checkpoint_contents *contents);

/* Weights, moments and histories of fp8 of a checkpoint of the same parameters. */
struct status trainer_state_resume(struct trainer *t, const struct checkpoint *c);

/* Weights of a model directory for a task of its family, the trainer's; `may_be_new` as for model_dir_read_weights: those keep
 * what they are. */
struct status trainer_state_load(struct trainer *t, const struct model_dir *m, int task, unsigned may_be_new,
                                 struct load_report *report);

/* Saves the weights as the model directory PATH; contents->params and ->master are set here. */
struct status trainer_state_export(struct trainer *t, const char *path, struct model_dir_contents *contents);

#endif
