/* Checks arguments and passes each call to the communicator's table, or through memory of the host.  A call
 * is made even if this rank's exec has failed: without it the other ranks would wait, and would not hear of
 * the error.  A rank alone has no table. */
#include "dist/comm.h"

#include "dist/comm_call.h"
#include "dist/comm_stage.h"

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

bool comm_group_has(const struct comm_group *g, int rank)
{
    int past = rank - g->first;
    return past >= 0 && past % g->stride == 0 && past / g->stride < g->n;
}

struct comm_numbers comm_numbers_of(const struct comm *whole, const struct comm_group *g)
{
    const struct comm_numbers *of = &whole->numbers;
    return (struct comm_numbers){comm_number(of, g->first), of->stride * g->stride, of->world};
}

/* Parts that lie outside the elements become empty. */
void comm_cut_bounds(int64_t *cut, const int64_t *bounds, int size, int64_t begin, int64_t end)
{
    for (int r = 0; r <= size; r++) {
        int64_t at = bounds[r] < begin ? begin : bounds[r] > end ? end : bounds[r];
        cut[r] = at - begin;
    }
}

/* ---- one rank ---- */

static const struct comm_type alone = {.name = "self"};

struct comm comm_self(void)
{
    return (struct comm){.type = &alone, .size = 1, .numbers = {0, 1, 1}, .n_local = 1};
}

struct comm comm_alone(const struct comm *whole)
{
    struct comm c = comm_self();
    c.numbers = (struct comm_numbers){comm_number(&whole->numbers, whole->rank), 1, whole->numbers.world};
    c.local_rank = whole->local_rank;
    c.n_local = whole->n_local;
    return c;
}

/* ---- calls ---- */

/* A rank's own error has no rank number in front of it yet; the error that a call returns has one. */
static void call(const struct comm *c, struct exec *x, enum comm_call_kind kind, tensor t,
                 const int64_t *bounds, int other)
{
    struct comm_call said = comm_call_of(kind, x, t, bounds, c->size, other);
    CHECK(tensor_is_dense(t), "a tensor with gaps");
    CHECK(other >= 0 && other < c->size, "rank %d of %d", other, c->size);
    if (c->type == &alone) {
        return;
    }
    struct status s = c->stage != NULL && !x->device->is_host ? comm_stage_call(c, x, &said, t, bounds)
                                                              : c->type->call(c->state, x, &said, t, bounds);
    if (failed(s)) {
        x->status = s;
    }
}

struct status comm_agree(const struct comm *c, struct status mine)
{
    struct exec x = {.device = &device_cpu, .layer_index = -1, .status = mine};
    call(c, &x, CALL_AGREE, NULL_TENSOR, NULL, 0);
    return x.status;
}

void comm_queue_all_reduce_sum(const struct comm *c, struct exec *x, tensor t)
{
    call(c, x, CALL_ALL_REDUCE_SUM, t, NULL, 0);
}

void comm_join(const struct comm *c, struct exec *x)
{
    if (c->type->join != NULL && !failed(x->status)) {
        x->status = c->type->join(c->state, x);
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
    call(c, x, CALL_ALL_REDUCE_MAX, t, NULL, 0);
    comm_join(c, x);
}

void comm_all_reduce_max_signed(const struct comm *c, struct exec *x, tensor t)
{
    call(c, x, CALL_ALL_REDUCE_MAX_SIGNED, t, NULL, 0);
    comm_join(c, x);
}

static void check_parts(const struct comm *c, tensor t, const int64_t *bounds)
{
    CHECK(bounds[0] == 0 && bounds[c->size] == t.dims[0], "parts of %lld rows, of %lld",
          (long long)bounds[c->size], (long long)t.dims[0]);
}

void comm_queue_reduce_scatter_sum(const struct comm *c, struct exec *x, tensor t, const int64_t *bounds)
{
    check_parts(c, t, bounds);
    CHECK(t.n_dims == 1, "a sum in parts of %d dims", t.n_dims);
    call(c, x, CALL_REDUCE_SCATTER_SUM, t, bounds, 0);
}

void comm_all_gather(const struct comm *c, struct exec *x, tensor t, const int64_t *bounds)
{
    check_parts(c, t, bounds);
    call(c, x, CALL_ALL_GATHER, t, bounds, 0);
    comm_join(c, x);
}

void comm_broadcast(const struct comm *c, struct exec *x, tensor t, int root)
{
    call(c, x, CALL_BROADCAST, t, NULL, root);
    comm_join(c, x);
}

void comm_send(const struct comm *c, struct exec *x, tensor t, int to)
{
    CHECK(to != c->rank, "rank %d sends to itself", to);
    call(c, x, CALL_SEND, t, NULL, to);
}

void comm_receive(const struct comm *c, struct exec *x, tensor t, int from)
{
    CHECK(from != c->rank, "rank %d receives from itself", from);
    call(c, x, CALL_RECEIVE, t, NULL, from);
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
    return c->type == &alone ? 0 : c->type->sent == NULL ? -1 : c->type->sent(c->state);
}

void comm_leave(const struct comm *c, struct status why)
{
    if (c->type->leave != NULL) {
        c->type->leave(c->state, why);
    }
}

/* ---- parts ---- */

struct status comm_split(const struct comm *c, struct comm *part, int first, int stride, int n)
{
    struct comm_group g = {first, stride, n};
    CHECK(n > 0 && stride > 0 && first >= 0 && first + (n - 1) * (int64_t)stride < c->size,
          "a group of %d ranks from %d on, each %d after the last, of %d", n, first, stride, c->size);
    CHECK(comm_group_has(&g, c->rank), "rank %d is not in the group that it splits off", c->rank);
    *part = c->type == &alone ? *c : (struct comm){0};
    return c->type == &alone ? status_ok() : c->type->split(c, &g, part);
}

void comm_part_close(struct comm *part)
{
    if (part->type != NULL && part->type->close_part != NULL) {
        part->type->close_part(part);
    }
    *part = (struct comm){0};
}
