/* comm_threads: ranks that are threads of one process, for testing whatever ranks do.  Tensors are in host
 * memory; each thread writes into the tensors of the others while all of them are in the call.  A thread
 * leaves a collective only when all have finished with its tensors, so its caller may then change them. */
#ifndef KILN_DIST_COMM_THREADS_H
#define KILN_DIST_COMM_THREADS_H

#include "dist/comm.h"

struct comm_threads;

/* For `size` ranks that wait for each other for at most `deadline_s` seconds.  STATUS_MEMORY. */
struct status comm_threads_create(struct comm_threads **threads, int size, double deadline_s);

/* Call it after all ranks have left. */
void comm_threads_destroy(struct comm_threads *threads);

/* The communicator of rank `rank`; a view of `threads`. */
struct comm comm_threads_rank(struct comm_threads *threads, int rank);

#endif
