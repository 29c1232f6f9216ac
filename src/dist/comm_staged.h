/* comm_staged: a communicator for the tensors of any device, by one that takes only those in host memory:
 * MPI's, or that of threads.  Everything is copied through the host's memory in pieces, so it is slow, and
 * needs only one piece of it.  It is for ranks that share a GPU, which NCCL refuses, and for machines without
 * NCCL. */
#ifndef KILN_DIST_COMM_STAGED_H
#define KILN_DIST_COMM_STAGED_H

#include "dist/comm.h"

enum { COMM_STAGED_PIECE_BYTES = 4 << 20 };

struct comm_staged;

/* A communicator of the same ranks as `inner`, which is borrowed: leaving one is leaving the other.
 * STATUS_MEMORY. */
struct status comm_staged_create(struct comm_staged **staged, const struct comm *inner);

/* Safe on NULL. */
void comm_staged_destroy(struct comm_staged *staged);

/* A view of `staged`. */
struct comm comm_staged_rank(struct comm_staged *staged);

#endif
