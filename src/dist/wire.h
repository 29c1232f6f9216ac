/* wire: messages between processes that were started together, and nothing more: what a library for messages,
 * such as MPI, must give so that dist/comm_wire can make a communicator of it.  Nothing here waits.
 *
 * Messages from one rank to another with the same tag arrive in order.  A wire is used by one thread at a
 * time. */
#ifndef KILN_DIST_WIRE_H
#define KILN_DIST_WIRE_H

#include "core/status.h"

#include <stddef.h>

enum { WIRE_ANY = -1 }; /* a receive from any rank */

/* Tags of messages: each kind has its own, so that none takes another for its own. */
enum wire_tag { WIRE_HELLO, WIRE_CALL, WIRE_VERDICT, WIRE_DATA, WIRE_HEAD, WIRE_BODY, WIRE_NOTE, WIRE_TAGS };

/* A message that has begun; its memory must stay until it is no longer pending. */
struct wire_op {
    void *request; /* the wire's */
    bool pending;
    int from; /* sender of a receive that has ended */
};

struct wire_type {
    const char *name; /* "MPI" */

    /* Begin to send and to receive n bytes, at most INT_MAX.  A receive may get fewer. */
    struct status (*send)(void *state, struct wire_op *op, int to, int tag, const void *bytes, size_t n);
    struct status (*receive)(void *state, struct wire_op *op, int from, int tag, void *bytes, size_t n);

    /* Moves messages on, and clears `pending` if this one has ended. */
    struct status (*test)(void *state, struct wire_op *op);

    /* Gives up a receive that nobody needs any more, so that its memory may be freed. */
    void (*drop)(void *state, struct wire_op *op);

    /* Ends the wire.  In peace: all ranks do, and it may wait for them.  Else the process is about to end
     * with an error. */
    void (*close)(void *state, bool in_peace);
};

struct wire {
    const struct wire_type *type;
    int rank, size;
    void *state;
    char library[64]; /* "Open MPI 4.1.4" */
};

/* The symbol `kiln_mpi_entry` of libkiln_mpi.so, which only works with a program of the same version and
 * layout. */
struct wire_entry {
    char version[32];
    size_t entry_bytes, wire_bytes, op_bytes, status_bytes;
    struct status (*open)(struct wire *w);
};

#define WIRE_ENTRY_LAYOUT                                                                                    \
    .version = KILN_VERSION, .entry_bytes = sizeof(struct wire_entry), .wire_bytes = sizeof(struct wire),    \
    .op_bytes = sizeof(struct wire_op), .status_bytes = sizeof(struct status)

#endif
