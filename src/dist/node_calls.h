/* node_calls: sums, gatherings and broadcasts of ranks that share the memory of a node (dist/node_window.h),
 * after they have met.  All go piece by piece: each rank copies its part to its slot, and the ranks then read
 * each other's.  A sum has the tree of dist/reduce. */
#ifndef KILN_DIST_NODE_CALLS_H
#define KILN_DIST_NODE_CALLS_H

#include "dist/reduce.h"
#include "dist/wire_ranks.h"

/* What is done with the sums of a node's ranks, by each with those that it has made. */
struct node_between {
    struct status (*reduce)(void *context, void *data, int64_t n, enum dtype dtype, reduction *reduce,
                            const char *doing); /* NULL: nothing, there is one node */
    void *context;
};

/* reduce_sum or reduce_max of t over the ranks; `from` [n_seats] is scratch. */
struct status node_calls_reduce(struct wire_ranks *w, tensor t, reduction *reduce, const void **from,
                                const struct node_between *between, const char *doing);

/* The sums over the node's ranks of parts [first, first + n_seats) of t [n], of which the rank in seat i gets
 * that of rank first + i. */
struct status node_calls_scatter(struct wire_ranks *w, tensor t, const int64_t *bounds, int first,
                                 const void **from);

/* Rows of ranks [first, first + n_seats), of which the one in seat i has those of rank first + i. */
struct status node_calls_gather(struct wire_ranks *w, tensor t, const int64_t *bounds, int first);

/* As comm_broadcast, of one node. */
struct status node_calls_broadcast(struct wire_ranks *w, tensor t, int root);

#endif
