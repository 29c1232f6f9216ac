/* comm_threads: ranks that are threads of one process, for tests of everything that ranks do.  Tensors are in host memory;
 * each thread writes into the tensors of the others while all of them wait in the call. */
#ifndef KILN_DIST_COMM_THREADS_H
#define KILN_DIST_COMM_THREADS_H

#include "dist/comm.h"

struct comm_threads;

/* For `size` ranks that wait for each other at most so long.  STATUS_MEMORY. */
struct status comm_threads_create(struct comm_threads **threads, int size, double deadline_s);

/* After all ranks have left. */
void comm_threads_destroy(struct comm_threads *threads);

/* What rank `rank` calls with; a view of `threads`. */
struct comm comm_threads_rank(struct comm_threads *threads, int rank);

#endif
