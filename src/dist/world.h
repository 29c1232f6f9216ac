/* world: the ranks of the run that this process is one of, found from the launcher's variables
 * (core/launcher.h). */
#ifndef KILN_DIST_WORLD_H
#define KILN_DIST_WORLD_H

#include "dist/comm.h"

/* A single process gets comm_self; one of several gets the ranks that were started together.
 * STATUS_UNAVAILABLE says what is missing for several, and what to install or to type instead.  Call it once,
 * before any thread is started. */
struct status world_open(struct comm *world);

/* Leaves the other ranks: `why` is OK at the end of the work, and an error ends them too. */
void world_close(struct comm *world, struct status why);

/* A process of kiln uses the first GPU that it sees, so world_open shows each rank of a node another one, by
 * CUDA_VISIBLE_DEVICES, which CUDA reads when it is first used: that of its number on the node, of those in
 * the variable, or if it is not set, of all; with more ranks than GPUs, ranks share GPUs in order.  A single
 * GPU in the variable, which a scheduler has chosen for the rank, stays.  For tests. */
void world_show_device(int local_rank);

/* The choice, for tests: `list` is the variable's value or NULL, `n_chips` how many GPUs the node has.
 * False: there is nothing to choose from. */
bool world_choose_device(char *chosen, size_t n, const char *list, int n_chips, int local_rank);

#endif
