/* wire_group: sums, gatherings and broadcasts by messages, of all ranks or of every k-th one, which all of
 * them have met to make.
 *
 * A sum goes piece by piece.  Of each piece a rank gets its own part from all others, adds up by the tree of
 * dist/reduce, and sends the result to all: each rank sends 2 (n - 1) / n of the bytes, which is the least
 * there is, in two rounds.  A broadcast is the same with a part for each rank in place of the sum. */
#ifndef KILN_DIST_WIRE_GROUP_H
#define KILN_DIST_WIRE_GROUP_H

#include "dist/reduce.h"
#include "dist/wire_ranks.h"

enum { WIRE_GROUP_PIECE_BYTES = 4 << 20 };

/* Ranks first, first + stride, ...: n of them, this one the index-th. */
struct wire_group {
    int first, stride, n, index;
};

/* Scratch: `from` [n], `piece` [WIRE_GROUP_PIECE_BYTES]. */
struct wire_scratch {
    const void **from;
    char *piece;
};

/* reduce_sum or reduce_max of data [n] over the group. */
struct status wire_group_reduce(struct wire_ranks *w, const struct wire_group *g,
                                const struct wire_scratch *scratch, void *data, int64_t n, enum dtype dtype,
                                reduction *reduce, const char *doing);

/* Of t [n] each rank r of the group gets the sum of elements [bounds[r], bounds[r + 1]) over the group. */
struct status wire_group_scatter(struct wire_ranks *w, const struct wire_group *g,
                                 const struct wire_scratch *scratch, tensor t, const int64_t *bounds);

/* Rows [bounds[r], bounds[r + 1]) of t, of all ranks r of the group, from each to all. */
struct status wire_group_gather(struct wire_ranks *w, const struct wire_group *g, tensor t,
                                const int64_t *bounds);

/* data [bytes] of the group's root-th rank, to all. */
struct status wire_group_broadcast(struct wire_ranks *w, const struct wire_group *g, void *data,
                                   int64_t bytes, int root);

#endif
