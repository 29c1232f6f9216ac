/* save_ranks: a checkpoint that several ranks write together, each its own slices (model/checkpoint.h). */
#ifndef KILN_TRAIN_SAVE_RANKS_H
#define KILN_TRAIN_SAVE_RANKS_H

#include "dist/comm.h"
#include "model/checkpoint.h"

/* Writes DIRECTORY/ckpt_STEP as checkpoint_save does, from the slices of all ranks; part and n_parts are set
 * here.  All ranks call it, with the same directory, table and step, and see the same file system; only the first needs the
 * configuration, the vocabulary and the extras.  All return the same error, whichever rank failed, and nothing is left
 * behind.  The device of `x`, whose memory the ranks exchange, must use host memory. */
struct status save_ranks(const struct comm *comm, struct exec *x, const char *directory,
                         const struct checkpoint_contents *contents);

#endif
