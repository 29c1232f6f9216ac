#include "dev/peers.h"

int peers_rank(const struct exec *x)
{
    return x->peers == NULL ? 0 : x->peers->rank;
}

int peers_size(const struct exec *x)
{
    return x->peers == NULL ? 1 : x->peers->size;
}

/* Counts and queues a collective.  Each peer sends `times` the bytes without its own part, the least there is
 * (dist/ring_cost.h). */
static void call(struct exec *x, queue_function *function, tensor t, int times)
{
    const struct peers *p = x->peers;
    CHECK(tensor_is_dense(t), "peers exchange a tensor with gaps");
    if (!failed(x->status)) {
        x->totals.peer_bytes += times * (double)tensor_bytes(t) * (p->size - 1) / p->size;
    }
    if (function != NULL) {
        queue_call(x, function, p->self, t);
    }
}

static void check_rows(const struct exec *x, tensor t)
{
    CHECK(t.n_dims > 0 && t.dims[0] % x->peers->size == 0, "%lld rows for %d peers", (long long)t.dims[0],
          x->peers->size);
}

void peers_sum(struct exec *x, tensor t)
{
    if (peers_size(x) > 1) {
        call(x, x->peers->sum, t, 2);
    }
}

void peers_max(struct exec *x, tensor t)
{
    if (peers_size(x) > 1) {
        call(x, x->peers->max, t, 2);
    }
}

void peers_gather(struct exec *x, tensor t)
{
    if (peers_size(x) > 1) {
        check_rows(x, t);
        call(x, x->peers->gather, t, 1);
    }
}

void peers_scatter(struct exec *x, tensor t)
{
    if (peers_size(x) > 1) {
        check_rows(x, t);
        call(x, x->peers->scatter, t, 1);
    }
}
