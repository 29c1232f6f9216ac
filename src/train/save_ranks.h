/* save_ranks: a checkpoint that several ranks write together, each the slices that it has (model/checkpoint.h). */
#ifndef KILN_TRAIN_SAVE_RANKS_H
#define KILN_TRAIN_SAVE_RANKS_H

#include "dist/comm.h"
#include "model/checkpoint.h"

/* Writes DIRECTORY/ckpt_STEP as checkpoint_save does, of the slices of all ranks; part and n_parts are set here.  All ranks
 * call it, with the same directory, table and step, and see the same file system; only the first needs the configuration, the
 * vocabulary and the extras.  All return the same error, and nothing is left behind: whichever rank failed.  The memory of the
 * device of `x`, which carries what ranks tell each other, is the host's. */
struct status save_ranks(const struct comm *comm, struct exec *x, const char *directory,
                         const struct checkpoint_contents *contents);

#endif
