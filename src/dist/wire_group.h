/* wire_group: sums, gatherings and broadcasts of all ranks, of those of a node, or of every k-th one, which
 * all of them have met to make.
 *
 * All are made of two exchanges, piece by piece: each gives every other its part of what it has (a scatter),
 * or its own part to all (a gather).  A sum in parts is scatters, after each of which a rank adds up its part
 * by the tree of dist/reduce; a complete sum has a gather after each, so that a rank sends 2 (n - 1) / n of
 * the bytes, which is the least there is.  Ranks that share memory (dist/node_window.h) write to their slot
 * what the others read after they have met; all others send messages. */
#ifndef KILN_DIST_WIRE_GROUP_H
#define KILN_DIST_WIRE_GROUP_H

#include "dist/reduce.h"
#include "dist/wire_ranks.h"

enum { WIRE_GROUP_PIECE_BYTES = 4 << 20 };

/* Ranks first, first + stride, ...: n of them, this one the index-th. */
struct wire_group {
    int first, stride, n, index;
    bool shares;       /* the ranks have the node's shared memory, and use it */
    char *room;        /* [WIRE_GROUP_PIECE_BYTES] memory for pieces that are received; borrowed */
    int64_t *equal;    /* [n + 1] bounds of equal parts */
    const void **from; /* [n] the pieces that are summed */
};

/* Allocates for the other fields, which are set.  STATUS_MEMORY. */
struct status wire_group_init(struct wire_group *g);

/* Safe on a zeroed struct. */
void wire_group_fini(struct wire_group *g);

/* reduce_sum or reduce_max of data [n] over the group, and over `across` too unless that is NULL: ranks in
 * the same place of other groups, with which each sums its part. */
struct status wire_group_reduce(struct wire_ranks *w, struct wire_group *g, struct wire_group *across,
                                void *data, int64_t n, enum dtype dtype, reduction *reduce,
                                const char *doing);

/* Sums t [n] over the group: the i-th rank gets elements [bounds[r], bounds[r + 1]) of the sum, r being first
 * + i * stride. */
struct status wire_group_scatter(struct wire_ranks *w, struct wire_group *g, tensor t, const int64_t *bounds,
                                 int first);

/* Gathers t on all ranks of the group: the i-th has rows [bounds[r], bounds[r + 1]), r being as above. */
struct status wire_group_gather(struct wire_ranks *w, struct wire_group *g, tensor t, const int64_t *bounds,
                                int first);

/* Copies data [bytes] of the group's root-th rank to all. */
struct status wire_group_broadcast(struct wire_ranks *w, struct wire_group *g, void *data, int64_t bytes,
                                   int root);

#endif
