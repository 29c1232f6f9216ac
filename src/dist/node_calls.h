/* node_calls: sums, gatherings and broadcasts of ranks that share the memory of a node (dist/node_window.h), after they have met.  All go
 * piece by piece: each rank copies its part to its slot, and the ranks then read each other's.  A sum has the tree of dist/reduce. */
#ifndef KILN_DIST_NODE_CALLS_H
#define KILN_DIST_NODE_CALLS_H

#include "dist/reduce.h"
#include "dist/wire_ranks.h"

/* reduce_sum or reduce_max of t over the ranks; `from` [size] is scratch. */
struct status node_calls_reduce(struct wire_ranks *w, tensor t, reduction *reduce, const void **from,
                                const char *doing);

/* As comm_all_gather and comm_broadcast. */
struct status node_calls_gather(struct wire_ranks *w, tensor t, const int64_t *bounds);
struct status node_calls_broadcast(struct wire_ranks *w, tensor t, int root);

#endif
