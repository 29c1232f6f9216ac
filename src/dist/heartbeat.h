/* heartbeat: each rank's process says every second that it lives, whatever its training does, so that one
 * that is stopped, or whose host or cable is gone, can be distinguished from one that is only slow.
 *
 * A thread of each rank sends small UDP packets to rank 0, which answers them.  Rank 0 watches all others,
 * and they watch rank 0; who was never heard is not watched, so a network without UDP ends no run.  Packets
 * of strangers change nothing: each has a hash whose key only the run's ranks have, and a number that grows,
 * and comes from where its rank is.  The thread calls no collective and nothing of MPI; waits of
 * dist/wire_ranks ask what it found.  Why: docs/decisions/0067_heartbeat.md. */
#ifndef KILN_DIST_HEARTBEAT_H
#define KILN_DIST_HEARTBEAT_H

#include "core/digest.h"
#include "core/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { HEARTBEAT_ADDRESSES = 32 };

/* Key of the packets' hashes, known only to the ranks of a run. */
struct heartbeat_secret {
    unsigned char key[DIGEST_KEY_BYTES];
};

/* Addresses at which a rank listens, and from which it sends. */
struct heartbeat_place {
    char host[64];
    uint16_t port; /* UDP port in network byte order, as the addresses; 0: the rank has no heartbeat */
    uint16_t n_addresses;
    uint32_t addresses[HEARTBEAT_ADDRESSES]; /* IPv4, of all its networks */
};

struct heartbeat {
    int rank, size;
    int64_t silence_ns, beat_ns;
    int socket, wake; /* -1: off */
    struct heartbeat_secret secret;
    uint64_t n_sent;                /* packets; the number of the last one */
    struct heartbeat_place *places; /* [size] */
    int64_t *heard_ns;              /* [size] the thread's: when a rank was heard last; 0: never */
    /* [size] number of the last valid packet; a number that is not above it is a copy */
    uint64_t *heard_number;
    uint32_t first; /* address from which rank 0 answered */
    /* times of the start, of the last heartbeat_turn and of the next beat */
    int64_t begin_ns, looked_ns, next_ns;
    bool has_warned;
    bool has_thread;
    pthread_t thread;
    atomic_int n_heard; /* ranks that were heard, and answered where they are to be */
    atomic_int silent;  /* the first rank that was silent for too long; -1: none */
};

/* Opens the socket.  With silence_s 0 there is no heartbeat; where there is no network for it a warning says
 * so.  STATUS_MEMORY. */
struct status heartbeat_open(struct heartbeat *h, int rank, int size, double silence_s);

/* Begins to beat, once places[] has those of all ranks; the secret is the same on all of them. */
void heartbeat_start(struct heartbeat *h, const struct heartbeat_secret *secret);

/* The thread's work, for tests with a clock of their own: the first beat; and one round, which receives the
 * packets that have come, finds silent ranks and beats when that is due.  Returns when the next beat is
 * due. */
void heartbeat_begin(struct heartbeat *h, const struct heartbeat_secret *secret, int64_t now);
int64_t heartbeat_turn(struct heartbeat *h, int64_t now);

/* Returns a rank that was heard and then was silent for too long; -1: none.  And the error for such a
 * rank. */
int heartbeat_silent(struct heartbeat *h);
struct status heartbeat_loss(const struct heartbeat *h, int rank);

/* Ends the thread, and closes the socket. */
void heartbeat_close(struct heartbeat *h);

#endif
