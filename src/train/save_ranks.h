/* save_ranks: a checkpoint that several ranks write together, each its own slices (model/checkpoint.h).
 *
 * If one rank cannot write, the save fails on all ranks and training continues: ranks exchange the outcome as
 * data, not as an error of the communicator.  Only a failure of the communicator itself stays in it. */
#ifndef KILN_TRAIN_SAVE_RANKS_H
#define KILN_TRAIN_SAVE_RANKS_H

#include "dist/comm.h"
#include "io/temporary.h"
#include "model/checkpoint.h"

/* A save that has begun. */
struct save_ranks {
    struct checkpoint_save save;     /* the first rank's */
    struct checkpoint_part *parts;   /* [size] the first rank's; owned */
    char path[TEMPORARY_PATH_BYTES]; /* directory that all ranks fill, each by checkpoint_save_part */
};

/* Begins to write DIRECTORY/ckpt_STEP.  All ranks call it, with the same directory, table and step, and see
 * the same file system; only the first needs the configuration, the vocabulary and the extras.  `mine`:
 * whether this rank can save.  All return the same error, whichever rank failed, and then no file remains. */
struct status save_ranks_begin(struct save_ranks *r, const struct comm *comm, const char *directory,
                               const struct checkpoint_contents *c, struct status mine);

/* Ends the save, on all ranks, once each has written its part or failed to, as `mine` says.  All return the
 * same error. */
struct status save_ranks_end(struct save_ranks *r, const struct comm *comm, struct status mine,
                             const struct checkpoint_part *part, const struct checkpoint_contents *c);

/* Call it instead of save_ranks_end, without the others: removes what this rank began. */
void save_ranks_abandon(struct save_ranks *r);

/* Begins a save, writes this rank's part and ends the save.  `mine` is the exec's status. */
struct status save_ranks(const struct comm *comm, const struct exec *x, const char *directory,
                         const struct checkpoint_contents *contents);

#endif
