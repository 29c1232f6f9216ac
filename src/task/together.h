/* together: what the ranks of a run exchange between its steps.  All make the same calls; with a single rank
 * nothing is exchanged.  A rank that has given up agrees on its error (comm_agree) instead, and each call of
 * the others returns it. */
#ifndef KILN_TASK_TOGETHER_H
#define KILN_TASK_TOGETHER_H

#include "core/batch.h"
#include "dist/comm.h"

/* *any: `mine` is true on some rank. */
struct status together_any(const struct comm *world, bool mine, bool *any);

/* Like together_any; the others also get n numbers of the first rank.  Where so_far is a failure on some
 * rank, all return it. */
struct status together_any_beside(const struct comm *world, struct status so_far, bool mine, bool *any,
                                  double *of_first, int n);

/* numbers[n] become their sums over all ranks; where so_far is a failure on some rank, all return it. */
struct status together_sum(const struct comm *world, struct status so_far, double *numbers, int64_t n);

/* The largest of all ranks' numbers, in fp32. */
struct status together_largest(const struct comm *world, double mine, double *largest);

/* The counts of a step's parts become those of the global batch.  `lacks`: this rank could not make its part.
 * *any_lacks: some rank could not.  *of_first becomes the first rank's. */
struct status together_count(const struct comm *world, struct batch_step *part, bool lacks, bool *any_lacks,
                             double *of_first);

/* STATUS_DATA unless all ranks have the same number, such as the step that they resume from; `what` names
 * it. */
struct status together_same(const struct comm *world, int64_t mine, const char *what);

/* Whether this rank, the first one or an emulated one, is the one that writes logs and reports, and checks
 * and cleans what the run writes to. */
bool together_is_first(const struct comm *world);

#endif
