#include "dist/comm_emulated.h"

#include "ops/ops.h"

/* `bytes` are those of the counter that the call belongs to. */
static struct status count(struct comm_traffic *t, const struct exec *x, double *bytes, tensor of)
{
    if (!failed(x->status)) {
        t->n_calls++;
        *bytes += (double)tensor_bytes(of);
    }
    return x->status;
}

static struct status agree(void *state, struct status mine)
{
    (void)state;
    return mine;
}

static struct status all_reduce_sum(void *state, struct exec *x, tensor t)
{
    struct comm_traffic *c = state;
    return count(c, x, t.dtype == DTYPE_F64 ? &c->number_bytes : &c->reduced_bytes, t);
}

static struct status all_reduce_max(void *state, struct exec *x, tensor t)
{
    struct comm_traffic *c = state;
    return count(c, x, &c->number_bytes, t);
}

static struct status all_gather(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    struct comm_traffic *c = state;
    (void)bounds;
    return count(c, x, &c->gathered_bytes, t);
}

static struct status reduce_scatter_sum(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    (void)bounds;
    return all_reduce_sum(state, x, t);
}

static struct status broadcast(void *state, struct exec *x, tensor t, int root)
{
    (void)root;
    return all_reduce_max(state, x, t);
}

static struct status send(void *state, struct exec *x, struct status mine, tensor t, int to)
{
    struct comm_traffic *c = state;
    (void)to;
    return failed(mine) ? mine : count(c, x, &c->message_bytes, t);
}

/* Not what was there: activations that nobody has made may be no numbers. */
static struct status receive(void *state, struct exec *x, struct status mine, tensor t, int from)
{
    (void)state, (void)from;
    if (failed(mine)) {
        return mine;
    }
    x->ops->fill(x, t, 0);
    return x->status;
}

static void leave(void *state, struct status why)
{
    (void)state, (void)why;
}

/* Another view of the same rank, whose calls are counted with those of the whole. */
static struct status split(const struct comm *whole, const struct comm_group *g, struct comm *part)
{
    *part = g->n == 1 ? comm_alone(whole) : *whole;
    part->rank = (whole->rank - g->first) / g->stride;
    part->size = g->n;
    part->numbers = comm_numbers_of(whole, g);
    return status_ok();
}

static const struct comm_type type = {
    .name = "emulation",
    .agree = agree,
    .all_reduce_sum = all_reduce_sum,
    .all_reduce_max = all_reduce_max,
    .all_reduce_max_signed = all_reduce_max,
    .all_gather = all_gather,
    .reduce_scatter_sum = reduce_scatter_sum,
    .broadcast = broadcast,
    .send = send,
    .receive = receive,
    .leave = leave,
    .split = split,
};

struct comm comm_emulated_rank(struct comm_emulated *e)
{
    CHECK(e->rank >= 0 && e->rank < e->size, "rank %d of %d", e->rank, e->size);
    return (struct comm){.type = &type,
                         .rank = e->rank,
                         .size = e->size,
                         .numbers = {0, 1, e->size},
                         .n_local = 1,
                         .emulated = e,
                         .state = &e->numbers};
}

void comm_emulated_count_apart(struct comm *part, struct comm_traffic *t)
{
    if (part->emulated != NULL) {
        part->state = t;
    }
}

struct comm comm_emulated_tensors(const struct comm *control)
{
    struct comm c = *control;
    CHECK(c.emulated != NULL, "ranks that are there");
    c.state = &c.emulated->tensors;
    return c;
}
