/* comm_nccl: ranks that each have a GPU, over NVIDIA's NCCL (docs/decisions/0061_nccl.md).  Tensors move by
 * NCCL on a stream of its own, at the same time as the exec's work; what ranks agree on, and messages between
 * two of them, go over a communicator on the host.  NCCL adds in its own order: the same ranks on the same
 * machines get the same bits, others need not.
 *
 * A collective first agrees over `control`, where the host waits for all ranks.  Then NCCL's call is queued:
 * its stream waits for the exec's work so far, and the host continues.  comm_join makes the exec's later work
 * wait for the stream.  A thread of dist/nccl_link watches what is queued, and gives NCCL up when a
 * collective passes its deadline or a rank is lost; comm_check and the next call return that error. */
#ifndef KILN_DIST_COMM_NCCL_H
#define KILN_DIST_COMM_NCCL_H

#include "dist/comm.h"
#include "dist/nccl_library.h"

struct comm_nccl_config {
    double deadline_s; /* limit for a collective, once it has begun on this rank's device */
    /* sums must follow the rule's order (comm.h), which NCCL's do not: comm_device then uses another
     * communicator */
    bool keeps_rule;
    const char *record; /* a file for the last collectives after an error (dist/nccl_link.c), or NULL */
};

struct comm_nccl;

/* A communicator of the ranks of `control`, which is borrowed: leaving one is leaving the other.  All ranks
 * call it, each with its own chip.  It serves the exec `x` alone, whose device has streams (dev/device.h).
 * All ranks return the same error. */
struct status comm_nccl_create(struct comm_nccl **nccl, const struct comm *control,
                               const struct nccl_library *library, const struct exec *x,
                               const struct comm_nccl_config *config);

/* Waits for what was queued, and frees all; call it before the exec's context is closed.  Safe on NULL. */
void comm_nccl_destroy(struct comm_nccl *nccl);

/* A view of `nccl`. */
struct comm comm_nccl_rank(struct comm_nccl *nccl);

#endif
