#include "dist/ring_cost.h"

struct ring_cost ring_cost_of(const struct ring_links *links, double bytes, int64_t world)
{
    int64_t nodes = (world + links->per_node - 1) / links->per_node;
    double on_each = (double)world / (double)nodes;
    double within = bytes * (on_each - 1) / on_each;
    double between = bytes * (double)(nodes - 1) / (double)nodes / on_each;
    double seconds = (within > 0 ? within / links->within : 0) + (between > 0 ? between / links->between : 0);
    return (struct ring_cost){within, between, seconds};
}

struct ring_cost ring_cost_times(struct ring_cost c, double n)
{
    return (struct ring_cost){n * c.within_bytes, n * c.between_bytes, n * c.seconds};
}
