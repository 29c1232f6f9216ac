/* wire_ranks: ranks that exchange messages by a wire, of the world or of a part of it, and wait for each
 * other with a deadline.
 *
 * Every call between ranks begins with a meeting: each rank sends rank 0 the call that it is in and whether
 * it has failed, and rank 0 sends all the same answer; on one node, each writes it where all can read it.
 * Errors and lost ranks, which also end a wait, are found by dist/wire_watch.h.  In a world that was split a
 * failed rank does not come: it sends its error to all at once, since others may wait for it in a call of
 * another part. */
#ifndef KILN_DIST_WIRE_RANKS_H
#define KILN_DIST_WIRE_RANKS_H

#include "dist/comm_call.h"
#include "dist/node_window.h"
#include "dist/wire_watch.h"

/* The most communicators: the world, which is the first, and its parts.  A wire takes any tag below 32,768
 * (MPI_TAG_UB is at least 32,767). */
enum { WIRE_RANKS_PARTS = 32768 / WIRE_TAGS };

struct wire_ranks {
    struct wire wire;         /* wire with rank and size of this communicator */
    struct wire_watch *watch; /* the world's, borrowed */
    struct comm_numbers numbers;
    /* number of the part, the same on all its ranks; parts that have two ranks in common have different
     * ones */
    int number;
    int64_t deadline_ns;
    bool is_crowded; /* more ranks on this node than processors: a waiting rank must not keep one busy */
    bool is_asking;  /* the wait is for rank 0's answer */
    struct node_window window; /* shared memory of this node's ranks, if it is open */
    int *seats;                /* [size] a rank's place there; -1: it is elsewhere */
    int n_seats;
    bool is_one_node;        /* all ranks have a seat: they meet there */
    struct comm_call *calls; /* [size] calls of a meeting; on several nodes at rank 0 only */
    struct comm_call mine;   /* call of this rank */
    struct status verdict;   /* result of the last meeting */
    struct wire_op *ops;     /* [2 size] messages that this rank waits for */
    int *whom;               /* [2 size] the rank of each */
    int n_ops;
    int64_t sent_bytes; /* bytes of tensors (comm_sent) */
};

/* The ranks of `comm`, which all are on the world's wire, borrowed as the watch is.  STATUS_MEMORY. */
struct status wire_ranks_init(struct wire_ranks *w, const struct wire *wire, struct wire_watch *watch,
                              const struct comm *comm, int number, int64_t deadline_ns);
void wire_ranks_fini(struct wire_ranks *w);

/* Begins a message that wire_ranks_wait does not wait for. */
struct status wire_ranks_begin(struct wire_ranks *w, struct wire_op *op, int to, enum wire_tag tag,
                               const void *bytes, size_t n);

/* Begin a message, at most INT_MAX bytes, of those that the next wait is for; nothing if there are no bytes.
 * An error sticks.  WIRE_DATA is counted as sent. */
void wire_ranks_send(struct wire_ranks *w, int to, enum wire_tag tag, const void *bytes, size_t n);
void wire_ranks_receive(struct wire_ranks *w, int from, enum wire_tag tag, void *bytes, size_t n);

/* Waits for the messages that were begun; `doing` says what for, as in "a sum". */
struct status wire_ranks_wait(struct wire_ranks *w, const char *doing);

/* Comes to the next meeting of the node's window, and waits until all its ranks have come. */
struct status wire_ranks_come(struct wire_ranks *w, const char *doing);

/* Waits for all ranks, and returns the same on all (comm_call_judge). */
struct status wire_ranks_meet(struct wire_ranks *w, const struct comm_call *call);

/* Whether a wait that began at `start_ns` must end: an error was heard of, or the deadline is over. */
bool wire_ranks_is_late(struct wire_ranks *w, int64_t start_ns);

#endif
