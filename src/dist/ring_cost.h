/* ring_cost: what a collective by rings sends, and how long that takes.  Plain numbers: nothing is sent.
 *
 * Devices are spread evenly over nodes, n of them on each of `nodes`.  A sum that leaves each its part, or a
 * gathering of parts, first goes round the devices of a node, each of which then has 1 / n of it, and then
 * round the nodes, the n devices of a node at once: (n - 1) / n of the bytes within, and (nodes - 1) / (nodes
 * n) between, which together are (world - 1) / world, the least there is (Patarasuk & Yuan 2009,
 * doi:10.1016/j.jpdc.2008.09.002).  A sum that all have is both, one after the other. */
#ifndef KILN_DIST_RING_COST_H
#define KILN_DIST_RING_COST_H

#include <stdint.h>

/* Bandwidth of the links between devices, in bytes a second that each sends and receives at the same time. */
struct ring_links {
    int64_t per_node; /* devices of a node */
    double within, between;
};

/* Cost for one device.  It receives the same number of bytes as it sends. */
struct ring_cost {
    double within_bytes, between_bytes, seconds;
};

/* Cost of gathering `bytes` from `world` devices, or of summing them and leaving the sum in parts. */
struct ring_cost ring_cost_of(const struct ring_links *links, double bytes, int64_t world);

/* Cost of `n` such collectives. */
struct ring_cost ring_cost_times(struct ring_cost c, double n);

#endif
