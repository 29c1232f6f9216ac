/* same_run: whether all ranks of a run do the same.  A rank adds what decides its work as named values:
 * settings, what its input files hold, the instruction set of its kernels.  Ranks then compare them before
 * any work begins, so that ranks with different command lines, models or data never train one model together
 * (docs/decisions/0070_same_run.md). */
#ifndef KILN_DIST_SAME_RUN_H
#define KILN_DIST_SAME_RUN_H

#include "core/buf.h"
#include "dist/comm.h"

/* Zero it first; same_run_check frees it. */
struct same_run {
    struct buf items;
};

/* Adds a named value; both texts are copied.  All ranks add the same names in the same order. */
void same_run_add(struct same_run *r, const char *name, const char *value);
void same_run_add_hash(struct same_run *r, const char *name, uint64_t hash);

/* Compares the values of all ranks, which all call it.  An error with `code`, the same on all ranks, names
 * the first value in which the lowest rank that differs from rank 0 does so, with both values.  With one
 * rank, or emulated ranks, nothing is compared. */
struct status same_run_check(struct same_run *r, const struct comm *world, enum status_code code);

#endif
