/* parallel: one-off work split into parts, each run by a thread that ends with its part.
 *
 * OpenMP ends the process if a thread cannot be started; here the caller runs that part itself. */
#ifndef KILN_CORE_PARALLEL_H
#define KILN_CORE_PARALLEL_H

/* Does `part` of `n_parts`. */
typedef void parallel_body(void *context, int part, int n_parts);

/* The number of threads OpenMP would use (OMP_NUM_THREADS, or the processors), 256 at most. */
int parallel_n_parts(void);

/* This process is one of n_processes on this machine: unless OMP_NUM_THREADS says how many threads, it uses its share of the
 * processors that the machine has, and not more than it may run on. */
void parallel_share(int n_processes);

/* Runs the body for all parts. */
void parallel_run(parallel_body *body, void *context);

#endif
