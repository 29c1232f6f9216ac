/* tensor_ranks: the ranks of a command that answers with a decoder in slices.  Each has a slice of every
 * layer and of the words (tensor parallel), and of the cache that of its heads; all run the same batches and
 * have the same logits; the first one alone reads standard input and prints. */
#ifndef KILN_CMD_TENSOR_RANKS_H
#define KILN_CMD_TENSOR_RANKS_H

#include "cmd/session_flags.h"
#include "core/option.h"
#include "dist/comm_device.h"
#include "dist/comm_peers.h"

#define TENSOR_RANKS_ROW(at)                                                                                 \
    OPTION_INT_ROW("tensor-model-parallel-size", at, "1", 1, 4096,                                           \
                   "number of ranks that share each layer, started by mpirun, srun or kiln launch: each "    \
                   "loads its slice of the weights only, and the first one reads and prints")

struct tensor_ranks {
    int n;             /* slices */
    struct comm world; /* ranks that have them; one rank: there are no others, or none yet in a dry run */
    struct comm_device tensors;
    struct comm_peers peers;
};

/* Finds the ranks, where there are to be several.  STATUS_USAGE: not so many were started, unless it is for a
 * dry run, which one process may do; else as rank_run_begin. */
struct status tensor_ranks_begin(struct tensor_ranks *t, const struct command *c, const void *args, int64_t n,
                                 bool dry_run);

/* Whether this rank is the one that prints. */
bool tensor_ranks_prints(const struct tensor_ranks *t);

/* session_open for this rank's slice, whose peers are the other ranks.  STATUS_DATA: ranks have opened
 * different models.  All ranks return the same error, and then it is closed.  Neither struct may be moved. */
struct status tensor_ranks_open(struct tensor_ranks *t, struct session *s, const char *path,
                                enum answer answer, struct session_options *o);

/* Plans a rank by session_flags_plan_options, on the first one, for --dry-run. */
struct status tensor_ranks_plan(struct tensor_ranks *t, const struct session_flags *f, enum answer answer,
                                struct session_options *o);

/* Closes the session. */
void tensor_ranks_close(struct tensor_ranks *t, struct session *s);

/* STATUS_DATA on all ranks unless all have the same hash of what `name` says. */
struct status tensor_ranks_compare(const struct tensor_ranks *t, const char *name, uint64_t hash);

/* Ends the ranks' work together: the error of whichever failed, and `s` if none has. */
struct status tensor_ranks_end(struct tensor_ranks *t, struct status s);

#endif
