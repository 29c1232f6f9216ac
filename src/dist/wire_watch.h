/* wire_watch: what a process hears of all ranks of a wire outside of calls: the first error, who has left,
 * and who is gone.  It is of the world, and shared by all communicators that are parts of it.
 *
 * An error outside of a meeting (a rank that waited too long, or leaves) is sent to all as a note, which
 * every wait looks for; a wait also looks for ranks whose heartbeat has stopped, and for processes of its
 * node that have ended.  The first error that a rank has heard of stays. */
#ifndef KILN_DIST_WIRE_WATCH_H
#define KILN_DIST_WIRE_WATCH_H

#include "dist/heartbeat.h"
#include "dist/node_window.h"
#include "dist/wire.h"

struct wire_watch {
    struct wire wire;
    struct status failure; /* the first; it stays */
    struct status note;    /* note that is being received; OK: its sender has left */
    struct wire_op note_op;
    struct status told;       /* the note that is being sent */
    struct wire_op *told_ops; /* [size] */
    int64_t *left_ns;         /* [size] time when a rank was heard to leave, or seen to be gone; 0: neither */
    bool *is_gone;            /* [size] the rank's process has ended without notice */
    struct heartbeat *heartbeat;      /* borrowed; NULL: not yet */
    const struct node_window *window; /* memory of this node's ranks, borrowed; NULL: it is not open */
    const int *seats;                 /* [size] a rank's place there; -1: it is elsewhere */
    int64_t looked_ns;                /* time of the last look whether the processes of the node live */
    /* the world was split: not all ranks meet in a call, so each error is sent at once */
    bool has_parts;
    bool has_left; /* this rank makes no more calls */
};

/* Takes the wire over, whatever it returns.  STATUS_MEMORY. */
struct status wire_watch_init(struct wire_watch *w, const struct wire *wire);
void wire_watch_fini(struct wire_watch *w);

/* Stores this rank's error and sends it to all others, unless there is one already; returns the one that
 * stays. */
struct status wire_watch_fail(struct wire_watch *w, struct status s);

/* Stores an error, unless there is one already, and sends it to nobody: all others have it, or will get
 * it. */
void wire_watch_store(struct wire_watch *w, struct status s);

/* Takes the notes that have come. */
void wire_watch_hear(struct wire_watch *w);

/* Looks for the silent, and every few milliseconds whether the processes of the node are there. */
void wire_watch_look(struct wire_watch *w, int64_t now);

/* Whether a rank has left, or is gone, and what it sent before must have come by now. */
bool wire_watch_has_left(const struct wire_watch *w, int rank, int64_t now);

/* Says that this rank makes no more calls. */
void wire_watch_leave(struct wire_watch *w, struct status why);

/* Bytes of a status that are sent: an OK one is sent without the bytes of its message. */
size_t wire_status_bytes(const struct status *s);

/* A rank that waits looks again at once, then lets others run first, and at last sleeps, an eighth of the
 * time that it has waited so far: short waits end soon, and long ones cost no processor. */
enum { WIRE_SPIN_NS = 30000, WIRE_YIELD_NS = 300000 };
void wire_watch_pause(int64_t idle_ns, bool is_crowded);

#endif
