/* Checks arguments and passes each call to the communicator's table. A call is made even if this
 * rank's exec has failed: without it the other ranks would wait, and would not hear of the error. */
#include "dist/comm.h"

#include <stdlib.h>

/* A request to stop is returned only if no rank has an error. */
struct status comm_worse(struct status a, struct status b)
{
    bool only_b = !failed(a) || (a.code == STATUS_PREEMPTED && failed(b) && b.code != STATUS_PREEMPTED);
    return only_b ? b : a;
}

struct status comm_named(struct status s, int rank, int size)
{
    return status_context(s, "rank %d of %d", rank, size);
}

int comm_number(const struct comm_numbers *numbers, int rank)
{
    return numbers->first + rank * numbers->stride;
}

struct status comm_named_by(struct status s, const struct comm_numbers *numbers, int rank)
{
    return comm_named(s, comm_number(numbers, rank), numbers->world);
}

/* Parts that lie outside the elements become empty. */
void comm_cut_bounds(int64_t *cut, const int64_t *bounds, int size, int64_t begin, int64_t end)
{
    for (int r = 0; r <= size; r++) {
        int64_t at = bounds[r] < begin ? begin : bounds[r] > end ? end : bounds[r];
        cut[r] = at - begin;
    }
}

struct status comm_agree(const struct comm *c, struct status mine)
{
    return c->type->agree(c->state, mine);
}

/* Puts the rank in front of the exec's own error, which has none. */
static void take(struct exec *x, struct status s)
{
    if (failed(s)) {
        x->status = s;
    }
}

static void check(const struct comm *c, tensor t, int rank)
{
    CHECK(tensor_is_dense(t), "a tensor with gaps");
    CHECK(rank >= 0 && rank < c->size, "rank %d of %d", rank, c->size);
}

void comm_queue_all_reduce_sum(const struct comm *c, struct exec *x, tensor t)
{
    check(c, t, c->rank);
    take(x, c->type->all_reduce_sum(c->state, x, t));
}

void comm_join(const struct comm *c, struct exec *x)
{
    if (c->type->join != NULL && !failed(x->status)) {
        take(x, c->type->join(c->state, x));
    }
}

struct status comm_lost(const struct comm *c)
{
    return c->type->lost != NULL ? c->type->lost(c->state) : status_ok();
}

struct status comm_check(const struct comm *c)
{
    return c->type->check == NULL ? status_ok() : c->type->check(c->state);
}

void comm_all_reduce_sum(const struct comm *c, struct exec *x, tensor t)
{
    comm_queue_all_reduce_sum(c, x, t);
    comm_join(c, x);
}

void comm_all_reduce_max(const struct comm *c, struct exec *x, tensor t)
{
    check(c, t, c->rank);
    take(x, c->type->all_reduce_max(c->state, x, t));
    comm_join(c, x);
}

void comm_all_reduce_max_signed(const struct comm *c, struct exec *x, tensor t)
{
    check(c, t, c->rank);
    take(x, c->type->all_reduce_max_signed(c->state, x, t));
    comm_join(c, x);
}

static void check_parts(const struct comm *c, tensor t, const int64_t *bounds)
{
    check(c, t, c->rank);
    CHECK(bounds[0] == 0 && bounds[c->size] == t.dims[0], "parts of %lld rows, of %lld",
          (long long)bounds[c->size], (long long)t.dims[0]);
}

void comm_queue_reduce_scatter_sum(const struct comm *c, struct exec *x, tensor t, const int64_t *bounds)
{
    check_parts(c, t, bounds);
    CHECK(t.n_dims == 1, "a sum in parts of %d dims", t.n_dims);
    take(x, c->type->reduce_scatter_sum(c->state, x, t, bounds));
}

void comm_all_gather(const struct comm *c, struct exec *x, tensor t, const int64_t *bounds)
{
    check_parts(c, t, bounds);
    take(x, c->type->all_gather(c->state, x, t, bounds));
    comm_join(c, x);
}

void comm_broadcast(const struct comm *c, struct exec *x, tensor t, int root)
{
    check(c, t, root);
    take(x, c->type->broadcast(c->state, x, t, root));
    comm_join(c, x);
}

void comm_send(const struct comm *c, struct exec *x, tensor t, int to)
{
    check(c, t, to);
    CHECK(to != c->rank, "rank %d sends to itself", to);
    take(x, c->type->send(c->state, x, x->status, t, to));
}

void comm_receive(const struct comm *c, struct exec *x, tensor t, int from)
{
    check(c, t, from);
    CHECK(from != c->rank, "rank %d receives from itself", from);
    take(x, c->type->receive(c->state, x, x->status, t, from));
}

struct status comm_share_rows(const struct comm *c, void *all, size_t n)
{
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    int64_t *bounds = calloc((size_t)c->size + 1, sizeof *bounds);
    struct status s = comm_agree(
        c, bounds != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for %d ranks", c->size));
    if (!failed(s) && bounds != NULL) {
        for (int r = 0; r <= c->size; r++) {
            bounds[r] = r;
        }
        comm_all_gather(c, &x, tensor_2d(all, DTYPE_U8, c->size, (int64_t)n), bounds);
        s = x.status;
    }
    free(bounds);
    return s;
}

int64_t comm_sent(const struct comm *c)
{
    return c->type->sent == NULL ? -1 : c->type->sent(c->state);
}

void comm_leave(const struct comm *c, struct status why)
{
    c->type->leave(c->state, why);
}
