/* comm_stage: memory of the host through which a communicator that takes tensors there exchanges those of any
 * device, piece by piece: slow, and in need of only one piece.  It is for ranks that share a GPU, which NCCL
 * refuses, for machines without NCCL, and for messages. */
#ifndef KILN_DIST_COMM_STAGE_H
#define KILN_DIST_COMM_STAGE_H

#include "dist/comm_call.h"

enum { COMM_STAGE_PIECE_BYTES = 4 << 20 };

/* Host memory for comm.stage, shared by a communicator and its parts. */
struct comm_stage {
    void *piece;     /* [COMM_STAGE_PIECE_BYTES] */
    int64_t *bounds; /* [size + 1] bounds of the parts of a piece */
};

/* Allocates for a communicator of `size` ranks.  STATUS_MEMORY. */
struct status comm_stage_init(struct comm_stage *s, int size);

/* Safe on a zeroed struct. */
void comm_stage_fini(struct comm_stage *s);

/* Makes a call by calls of the table, piece by piece; for comm.c. */
struct status comm_stage_call(const struct comm *c, struct exec *x, const struct comm_call *call, tensor t,
                              const int64_t *bounds);

#endif
