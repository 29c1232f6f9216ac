/* comm_wire: the communicator of processes that exchange messages by a wire (dist/wire.h): tensors in host memory.
 *
 * A sum goes piece by piece.  Of each piece a rank gets its own part from all others, adds up by the tree of dist/reduce, and
 * sends the result to all: each rank sends 2 (n - 1) / n of the bytes, which is the least there is, in two rounds.  The memory
 * besides is a piece.  A broadcast is the same with a part for each rank in place of the sum. */
#ifndef KILN_DIST_COMM_WIRE_H
#define KILN_DIST_COMM_WIRE_H

#include "dist/comm.h"
#include "dist/wire.h"

enum { COMM_WIRE_PIECE_BYTES = 4 << 20 };

struct comm_wire_options {
    double deadline_s;  /* how long ranks wait for each other */
    bool shares_memory; /* the ranks of a node share memory, if they can (dist/node_window.h) */
};

/* The ranks of an open wire, which it takes over and closes, also if it fails.  All ranks call it.
 * STATUS_UNAVAILABLE: they are not of the same build. */
struct status comm_wire_open(struct comm *c, const struct wire *wire,
                             const struct comm_wire_options *options);

/* Call it after comm_leave. */
void comm_wire_close(struct comm *c);

/* "Open MPI v4.1.4" */
const char *comm_wire_library(const struct comm *c);

#endif
