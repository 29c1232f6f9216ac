/* parallel: one-off work split into parts, each run by a thread that ends with its part.
 *
 * OpenMP ends the process if a thread cannot be started; here the caller runs that part itself. */
#ifndef KILN_CORE_PARALLEL_H
#define KILN_CORE_PARALLEL_H

#include <stdbool.h>

/* Does `part` of `n_parts`. */
typedef void parallel_body(void *context, int part, int n_parts);

/* The number of threads OpenMP would use (OMP_NUM_THREADS, or the processors), 256 at most. */
int parallel_n_parts(void);

/* Lets OpenMP start no more threads than that, unless OMP_NUM_THREADS says how many.  At the start of a
 * program. */
void parallel_keep_to_quota(void);

/* The threads of one of several processes on a machine. */
struct parallel_share {
    int threads; /* threads that the process uses */
    int share;   /* share of the machine's processors, 1 at least */
    bool given;  /* OMP_NUM_THREADS sets `threads`; else the lower of `share` and the allowed processors */
};

/* This process is one of n_processes on this machine: sets how many threads it uses. */
struct parallel_share parallel_share(int n_processes);

/* Runs the body for all parts. */
void parallel_run(parallel_body *body, void *context);

#endif
