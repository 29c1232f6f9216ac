/* wire_ranks: ranks that exchange messages by a wire, wait for each other with a deadline, and tell each
 * other of errors.
 *
 * Every call between ranks begins with a meeting: each rank tells rank 0 which call it is in and whether it
 * has failed, and rank 0 answers all alike; on one node, each writes it where all can read it.  An error
 * outside of a meeting (a rank that waited too long, or leaves) is sent to all as a note, which every wait
 * looks for; so does it for ranks whose heartbeat has stopped.  The first error that a rank has heard of
 * stays. */
#ifndef KILN_DIST_WIRE_RANKS_H
#define KILN_DIST_WIRE_RANKS_H

#include "dist/comm_call.h"
#include "dist/heartbeat.h"
#include "dist/node_window.h"
#include "dist/wire.h"

/* Tags of messages: each kind has its own, so that none takes another for its own. */
enum wire_tag { WIRE_HELLO, WIRE_CALL, WIRE_VERDICT, WIRE_DATA, WIRE_HEAD, WIRE_BODY, WIRE_NOTE };

struct wire_ranks {
    struct wire wire;
    int64_t deadline_ns;
    bool is_crowded; /* more ranks on this node than processors: a waiting rank must not keep one busy */
    bool is_asking;  /* the wait is for rank 0's answer */
    struct status failure; /* the first; it stays */
    struct status note;    /* that is being received; OK: its sender has left */
    struct wire_op note_op;
    struct status told;          /* the note that is being sent */
    struct wire_op *told_ops;    /* [size] */
    int64_t *left_ns;            /* [size] when a rank was heard to leave, or seen to be gone; 0: neither */
    bool *is_gone;               /* [size] its process has ended, and did not say so */
    struct heartbeat *heartbeat; /* borrowed; NULL: not yet */
    struct node_window window;   /* of this node's ranks, if it is open */
    int *seats;                  /* [size] a rank's place there; -1: it is elsewhere */
    int n_seats;
    bool has_window;         /* the ranks of each node are all in their window */
    bool is_one_node;        /* all ranks have a seat: they meet there */
    struct comm_call *calls; /* [size] of a meeting, at rank 0 */
    struct comm_call mine;   /* this rank's */
    struct status verdict;   /* of a meeting */
    struct wire_op *ops;     /* [2 size] what this rank waits for */
    int *whom;               /* [2 size] the rank of each */
    int n_ops;
};

/* Takes the wire over, whatever it returns.  STATUS_MEMORY. */
struct status wire_ranks_init(struct wire_ranks *w, const struct wire *wire, double deadline_s);
void wire_ranks_fini(struct wire_ranks *w);

/* Begin a message, at most INT_MAX bytes, of those that the next wait is for; nothing if there are no bytes.
 * An error sticks. */
void wire_ranks_send(struct wire_ranks *w, int to, enum wire_tag tag, const void *bytes, size_t n);
void wire_ranks_receive(struct wire_ranks *w, int from, enum wire_tag tag, void *bytes, size_t n);

/* Waits for the messages that were begun; `doing` says what for, as in "a sum". */
struct status wire_ranks_wait(struct wire_ranks *w, const char *doing);

/* On one node: waits until all ranks have come here, as often as this one. */
struct status wire_ranks_come(struct wire_ranks *w, const char *doing);

/* Waits for all ranks, and returns the same on all (comm_call_judge). */
struct status wire_ranks_meet(struct wire_ranks *w, const struct comm_call *call);

/* Stores this rank's error and tells all others, unless there is one already; returns the one that stays. */
struct status wire_ranks_fail(struct wire_ranks *w, struct status s);

/* Whether a wait that began at `start_ns` must end: an error was heard of, or the deadline is over. */
bool wire_ranks_is_late(struct wire_ranks *w, int64_t start_ns);

/* Says that this rank makes no more calls. */
void wire_ranks_leave(struct wire_ranks *w, struct status why);

#endif
