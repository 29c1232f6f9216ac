/* comm_device: the communicator for an exec's tensors, wherever they are: the host's own, NCCL where each
 * rank has a GPU of its own, else through the host's memory, and why.
 *
 * A run has two communicators: `control`, on the host, for what ranks exchange between steps; and this one,
 * for gradients, weights and norms.  On the host they are the same.  Leaving one is leaving the other, so a
 * failure in either ends both. */
#ifndef KILN_DIST_COMM_DEVICE_H
#define KILN_DIST_COMM_DEVICE_H

#include "dist/comm_nccl.h"
#include "dist/comm_stage.h"

struct comm_device {
    struct comm comm;
    struct comm_nccl *nccl;
    struct comm_stage stage;
};

/* Chooses and opens; `control` is a communicator of the ranks on the host, borrowed.  All ranks call it and
 * make the same choice; rank 0 logs the choice.  It serves the exec `x` alone.  All ranks return the same
 * error. */
struct status comm_device_open(struct comm_device *d, const struct comm *control, const struct exec *x,
                               const struct comm_nccl_config *config);

/* Closes the communicator; call it before the exec's context is closed.  Safe on a zeroed struct. */
void comm_device_close(struct comm_device *d);

#endif
