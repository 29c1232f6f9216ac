/* trainer_state: a trainer's weights and moments from checkpoints, whatever memory its device has.
 *
 * A state has elements of the complete model; a rank reads only those that its trainer holds: all weights,
 * and the moments of its shard.  The number of ranks that wrote the state does not matter. */
#ifndef KILN_TRAIN_TRAINER_STATE_H
#define KILN_TRAIN_TRAINER_STATE_H

#include "model/training_state.h"
#include "pass/network_files.h"
#include "train/trainer.h"

/* Files that only some checkpoints have. */
#define TRAINER_STATE_CHOICES_FILE   "cublaslt.cache"  /* algorithms of the run on a GPU */
#define TRAINER_STATE_HISTORIES_FILE "fp8.safetensors" /* histories of factors in fp8 */
#define TRAINER_STATE_HISTORIES      "histories"       /* tensor in that file */

/* Adds these files to the contents of a save.  contents->owned is the text of choices. */
struct status trainer_state_extras(struct trainer *t, struct checkpoint_contents *contents);

/* Sets the table and the tensors of a save, of the slice that this rank writes. */
void trainer_state_slices(const struct trainer *t, struct checkpoint_contents *contents);

/* Loads the weights, moments and fp8 histories of a state of the same parameters. */
struct status trainer_state_resume(struct trainer *t, const struct training_state *from);

/* Saves the weights as the model directory PATH, which the first rank of `world` writes; contents->params
 * and ->master are set here.  All ranks call it and return the same.  Where they share the fp32 master,
 * the first one collects it in its host's memory meanwhile, 4 bytes a parameter. */
struct status trainer_state_export(struct trainer *t, const struct comm *world, const char *path,
                                   struct model_dir_contents *contents);

#endif
