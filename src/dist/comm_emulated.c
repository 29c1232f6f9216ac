#include "dist/comm_emulated.h"

#include "dist/comm_call.h"
#include "ops/ops.h"

static double *counter(struct comm_traffic *t, const struct comm_call *call)
{
    switch (call->kind) {
    case CALL_ALL_REDUCE_SUM:
    case CALL_REDUCE_SCATTER_SUM: return call->dtype == DTYPE_F64 ? &t->number_bytes : &t->reduced_bytes;
    case CALL_ALL_GATHER: return &t->gathered_bytes;
    case CALL_SEND: return &t->message_bytes;
    default: return &t->number_bytes;
    }
}

/* A receive fills its tensor with zeros: memory that nobody has written may hold NaN. */
static struct status call(void *state, struct exec *x, const struct comm_call *mine, tensor t,
                          const int64_t *bounds)
{
    struct comm_traffic *c = state;
    (void)bounds;
    if (failed(mine->status) || mine->kind == CALL_AGREE) {
        return mine->status;
    }
    if (mine->kind == CALL_RECEIVE) {
        x->ops->fill(x, t, 0);
        return x->status;
    }
    c->n_calls++;
    *counter(c, mine) += (double)tensor_bytes(t);
    return status_ok();
}

/* Makes another view of the same rank, whose calls are counted with those of the communicator it is split
 * from. */
static struct status split(const struct comm *whole, const struct comm_group *g, struct comm *part)
{
    *part = g->n == 1 ? comm_alone(whole) : *whole;
    part->rank = (whole->rank - g->first) / g->stride;
    part->size = g->n;
    part->numbers = comm_numbers_of(whole, g);
    return status_ok();
}

static const struct comm_type type = {.name = "emulation", .call = call, .split = split};

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
