/* visible_devices: which of a node's GPUs a rank uses.  A process of kiln uses the first GPU that it sees; so
 * each rank of a node is shown another one, by CUDA_VISIBLE_DEVICES, which CUDA reads when it is first
 * used. */
#ifndef KILN_DIST_VISIBLE_DEVICES_H
#define KILN_DIST_VISIBLE_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

/* Shows this process the GPU of rank `local_rank` of its node: that number of those in CUDA_VISIBLE_DEVICES,
 * or if that is not set, of all; with more ranks than GPUs they take turns.  A single GPU in the variable,
 * which a scheduler has chosen for the rank, stays. Call it before a device is opened and before threads are
 * started. */
void visible_devices_take(int local_rank);

/* The choice, for tests: `list` is the variable's value or NULL, `n_chips` how many GPUs the node has.
 * False: there is nothing to choose from. */
bool visible_devices_choose(char *chosen, size_t n, const char *list, int n_chips, int local_rank);

#endif
