/* weights_average: the mean of the weights of the last checkpoints, saved beside each as the model
 * average_STEP.
 *
 * Late weights lie around a better point than each of them (Izmailov et al. 2018, arXiv:1803.05407; of the
 * latest checkpoints, Kaddour 2022, arXiv:2209.14981).  The mean is of the checkpoint just written and of
 * those before it on the grid of saved steps, so one that a signal left between them changes nothing, and a
 * run that was interrupted has the same means.  It has no moments: nothing goes on from it.  A run that is
 * killed between the two leaves a checkpoint without its mean.
 *
 * The functions need the lock of the output directory, as those of checkpoint.h. */
#ifndef KILN_MODEL_WEIGHTS_AVERAGE_H
#define KILN_MODEL_WEIGHTS_AVERAGE_H

#include "model/checkpoint.h"

/* Writes DIRECTORY/average_STEP beside DIRECTORY/ckpt_STEP, which was just saved from these contents, as
 * c->average says.  It uses c->master for the sum and c->exp_avg for the weights that it reads: both are
 * whole buffers, and overwritten.  *n: how many checkpoints there were. */
struct status weights_average_save(const char *directory, const struct checkpoint_contents *c, int64_t *n);

/* The same of one of several ranks, whose c->master and c->exp_avg are the same slice: writes its part of the
 * mean into the directory `path`, which all ranks' parts become a model in (weights_average_contents says
 * how). */
struct status weights_average_save_part(struct checkpoint_part *part, const char *path, const char *directory,
                                        const struct checkpoint_contents *c, int64_t *n);

/* What is saved of the mean, beside a checkpoint of these contents. */
struct checkpoint_contents weights_average_contents(const struct checkpoint_contents *c);

/* Removes the averages whose checkpoint is gone. */
struct status weights_average_prune(const char *directory);

/* DIRECTORY/average_STEP. */
struct status weights_average_path(char path[CHECKPOINT_PATH_BYTES], const char *directory, int64_t step);

#endif
