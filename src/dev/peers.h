/* peers: the ranks that share the layers of a model, each with a slice of them, as layers see them:
 * collectives that an exec carries, so that a layer calls them between its ops without knowing how ranks
 * exchange memory (dist/comm_peers.h knows).  A layer of one rank is the same code: the calls then do
 * nothing.
 *
 * They are queued like ops: after the ops before them, and before those after them.  A recording is cut at
 * each, and its replay makes the calls again (dev/queue.h, queue_call).  On a table that only plans they are
 * counted.  A rank whose exec has failed makes them too, and so reports its failure to the others. */
#ifndef KILN_DEV_PEERS_H
#define KILN_DEV_PEERS_H

#include "dev/queue.h"

struct peers {
    int rank, size;
    /* functions of peers_sum, peers_max, peers_gather and peers_scatter; NULL: they only count */
    queue_function *sum, *max, *gather, *scatter;
    void *self;
};

/* The rank among the peers, and their number; 0 and 1 without peers. */
int peers_rank(const struct exec *x);
int peers_size(const struct exec *x);

/* t = the sum of t over all peers, in place.  Dense fp32, fp64 or bf16; in bf16 the peers' rounded values are
 * summed in fp32 and rounded once more, so a product of which each has a part is better summed in fp32.  The
 * order does not depend on timing (dist/comm.h). */
void peers_sum(struct exec *x, tensor t);

/* t = the largest of each element over all peers, in place.  Dense fp32, of any sign; a NaN may be the
 * largest, or be left out. */
void peers_max(struct exec *x, tensor t);

/* Rows [r n, (r + 1) n) of the slowest dim of t = those of peer r, of size * n rows.  Dense, any dtype. */
void peers_gather(struct exec *x, tensor t);

/* This peer's rows of t, as peers_gather counts them, = their sum over all peers; the other rows then have
 * undefined contents.  Dtypes and bits are those of peers_sum.  A scatter and a gather together send the
 * bytes of a sum. */
void peers_scatter(struct exec *x, tensor t);

#endif
