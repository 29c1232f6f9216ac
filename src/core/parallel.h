/* parallel: work that is done once, cut into parts, each in a thread that lives as long as its part.
 *
 * OpenMP ends the process where a thread cannot be had; here the caller then does that part too. */
#ifndef KILN_CORE_PARALLEL_H
#define KILN_CORE_PARALLEL_H

/* Does `part` of `n_parts`. */
typedef void parallel_body(void *context, int part, int n_parts);

/* As many as OpenMP would have threads (OMP_NUM_THREADS, or the processors), 256 at most. */
int parallel_n_parts(void);

/* Runs the body for all parts. */
void parallel_run(parallel_body *body, void *context);

#endif
