/* megatron_write: the weights of a decoder as Megatron-DeepSpeed's layer files, in fp32, for a number of
 * ranks of tensor parallelism and of stages: global_stepN/layer_NN-model_TT-model_states.pt, and the files
 * that name the folder.  mp_rank_KK_model_states.pt say of each rank what shapes it has, and which model and
 * step it is of; the state of an optimizer is not written.
 *
 * Or, of a run, a universal checkpoint: global_stepN_universal/zero/NAME/{fp32,exp_avg,exp_avg_sq}.pt of
 * whole tensors, the mp_rank file of one rank, and latest_universal, which names the folder. */
#ifndef KILN_MODEL_MEGATRON_WRITE_H
#define KILN_MODEL_MEGATRON_WRITE_H

#include "model/model_dir.h"

/* Rows of the table of words: the pieces, rounded up to 128 times the ranks. */
int64_t megatron_write_rows(const struct model_dir_contents *c);

/* Into a directory that is there.  Rows behind those that the model has are its last row again, as Megatron's
 * own tools fill them: its loss counts them.  STATUS_UNAVAILABLE: the family has no such form; STATUS_USAGE:
 * the ranks or stages do not divide it. */
struct status megatron_write(const char *directory, const struct model_dir_contents *c);

#endif
