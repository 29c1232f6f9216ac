/* comm_wire: the communicator of processes that exchange messages by a wire (dist/wire.h): tensors in host
 * memory.  Ranks of one node share memory.  Where several nodes each have the same number of neighbouring
 * ranks, a power of two, sums and gatherings go within the nodes by memory, and between them by messages of
 * each rank to those in the same place of the other nodes; else all ranks send to all (dist/wire_group). */
#ifndef KILN_DIST_COMM_WIRE_H
#define KILN_DIST_COMM_WIRE_H

#include "dist/comm.h"
#include "dist/wire.h"

struct comm_wire_options {
    double deadline_s; /* longest time that ranks wait for each other */
    /* silence after which a rank counts as lost (dist/heartbeat.h); 0: there are no heartbeats */
    double silence_s;
    /* most ranks of a node that may share memory (dist/node_window.h): 0 none, INT_MAX all */
    int most_sharing;
};

/* Opens a communicator of the ranks of an open wire, which it takes over and closes, also if it fails.  All
 * ranks call it.  STATUS_UNAVAILABLE: they are not of the same build. */
struct status comm_wire_open(struct comm *c, const struct wire *wire,
                             const struct comm_wire_options *options);

/* The number of ranks of an open wire that were heard to beat (dist/heartbeat.h): only they can be found
 * silent. */
int comm_wire_heard(const struct comm *c);

/* Frees the communicator and closes the wire; call it after comm_leave. */
void comm_wire_close(struct comm *c);

#endif
