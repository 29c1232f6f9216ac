#include "dist/comm_peers.h"

#include "ops/ops.h"

#include <stdlib.h>

static void sum(void *self, struct exec *x, tensor t)
{
    const struct comm_peers *p = self;
    comm_all_reduce_sum(&p->comm, x, t);
}

static void max(void *self, struct exec *x, tensor t)
{
    const struct comm_peers *p = self;
    comm_all_reduce_max_signed(&p->comm, x, t);
}

static const int64_t *equal_parts(struct comm_peers *p, int64_t n)
{
    for (int r = 0; r <= p->comm.size; r++) {
        p->bounds[r] = n / p->comm.size * r;
    }
    return p->bounds;
}

/* Clears the rows of peers that are not there (comm_emulated.h): the old contents are no activations. */
static void clear_others(const struct comm_peers *p, struct exec *x, tensor t)
{
    int64_t n = t.dims[0] / p->comm.size, own = n * p->comm.rank;
    if (p->comm.emulated != NULL) {
        x->ops->fill(x, tensor_slice(t, 0, own), 0);
        x->ops->fill(x, tensor_slice(t, own + n, t.dims[0] - own - n), 0);
    }
}

static void gather(void *self, struct exec *x, tensor t)
{
    struct comm_peers *p = self;
    clear_others(p, x, t);
    comm_all_gather(&p->comm, x, t, equal_parts(p, t.dims[0]));
}

/* Flattens t: the rows of a peer are neighbouring elements. */
static void scatter(void *self, struct exec *x, tensor t)
{
    struct comm_peers *p = self;
    int64_t n = tensor_count(t);
    comm_queue_reduce_scatter_sum(&p->comm, x, tensor_1d(t.data, t.dtype, n), equal_parts(p, n));
    comm_join(&p->comm, x);
}

struct status comm_peers_init(struct comm_peers *p, const struct comm *c)
{
    *p = (struct comm_peers){.comm = *c, .bounds = calloc((size_t)c->size + 1, sizeof *p->bounds)};
    p->peers = (struct peers){.rank = c->rank,
                              .size = c->size,
                              .sum = sum,
                              .max = max,
                              .gather = gather,
                              .scatter = scatter,
                              .self = p};
    return p->bounds != NULL ? status_ok()
                             : status_error(STATUS_MEMORY, "out of memory for %d peers", c->size);
}

void comm_peers_fini(struct comm_peers *p)
{
    free(p->bounds);
    *p = (struct comm_peers){0};
}
