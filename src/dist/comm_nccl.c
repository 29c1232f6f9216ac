#include "dist/comm_nccl.h"

#include "dist/comm_staged.h"
#include "dist/nccl_link.h"

#include <stdio.h>
#include <stdlib.h>

struct comm_nccl {
    struct comm control;
    struct comm part; /* the same, if it was split off for this one; else zeroes */
    struct exec x;    /* where its tensors are */
    double deadline_s;
    char record[512];
    int n_parts; /* that were split off: they number their records */
    struct nccl_library library;
    struct nccl_link *link;
    struct comm_staged *messages;
};

/* Whatever one rank heard of ends its part of NCCL's communicator, in which it would otherwise wait for ranks
 * that do not come. */
static struct status heard(const struct comm_nccl *n, struct status s)
{
    if (failed(s)) {
        nccl_link_end(n->link, s);
    }
    return s;
}

/* This rank's own error: the exec's, else one that was found since the last call. */
static struct status own(const struct comm_nccl *n, struct status mine)
{
    return failed(mine) ? mine : nccl_link_check(n->link);
}

static struct status agree(void *state, struct status mine)
{
    const struct comm_nccl *n = state;
    return heard(n, comm_agree(&n->control, own(n, mine)));
}

/* An exec on the host with this rank's status, for calls over the control communicator. */
static struct exec on_host(const struct comm_nccl *n, const struct exec *x)
{
    return (struct exec){.device = &device_cpu, .layer_index = -1, .status = own(n, x->status)};
}

/* ---- collectives ---- */

struct arguments {
    tensor t;
    int op; /* of a reduction */
    int dtype, root, rank, size;
    const int64_t *bounds;
};

static struct status queue(const struct comm_nccl *n, const struct exec *x, const struct comm_call *call,
                           nccl_collective *collective, struct arguments a)
{
    CHECK(nccl_link_is_of(n->link, x), "a communicator of another exec");
    TRY(heard(n, comm_call_agree(&n->control, call)));
    a.rank = n->control.rank;
    a.size = n->control.size;
    return call->count == 0 ? status_ok() : nccl_link_queue(n->link, call, collective, &a);
}

static int dtype_of(enum dtype dtype)
{
    return dtype == DTYPE_F64 ? NCCL_FLOAT64 : dtype == DTYPE_BF16 ? NCCL_BFLOAT16 : NCCL_FLOAT32;
}

static int reduce(const struct nccl_library *library, void *comm, void *stream, const void *arguments)
{
    const struct arguments *a = arguments;
    return library->all_reduce(a->t.data, a->t.data, (size_t)tensor_count(a->t), a->dtype, a->op, comm,
                               stream);
}

static struct status all_reduce_sum(void *state, struct exec *x, tensor t)
{
    const struct comm_nccl *n = state;
    struct exec host = on_host(n, x);
    struct comm_call call = comm_call_of(CALL_ALL_REDUCE_SUM, &host, t);
    return queue(n, x, &call, reduce, (struct arguments){.t = t, .op = NCCL_SUM, .dtype = dtype_of(t.dtype)});
}

static struct status max_of(const struct comm_nccl *n, struct exec *x, tensor t, int dtype)
{
    struct exec host = on_host(n, x);
    struct comm_call call = comm_call_of(CALL_ALL_REDUCE_MAX, &host, t);
    return queue(n, x, &call, reduce, (struct arguments){.t = t, .op = NCCL_MAX, .dtype = dtype});
}

/* Of magnitudes as integers of the same bits, since NCCL's maximum of numbers drops a NaN, and here it is the
 * largest. */
static struct status all_reduce_max(void *state, struct exec *x, tensor t)
{
    return max_of(state, x, t, NCCL_INT32);
}

static struct status all_reduce_max_signed(void *state, struct exec *x, tensor t)
{
    return max_of(state, x, t, NCCL_FLOAT32);
}

static tensor part_of(const struct arguments *a, int rank)
{
    return tensor_slice(a->t, a->bounds[rank], a->bounds[rank + 1] - a->bounds[rank]);
}

static bool parts_are_equal(const struct arguments *a)
{
    int64_t rows = a->bounds[1];
    int r = 0;
    while (r < a->size && a->bounds[r + 1] == (r + 1) * rows) {
        r++;
    }
    return r == a->size;
}

typedef int part_call(const struct nccl_library *library, void *comm, void *stream, tensor part, int dtype,
                      int rank);

/* A call for each rank's part, if there is one, which run as one. */
static int in_group(const struct nccl_library *library, void *comm, void *stream, const struct arguments *a,
                    part_call *call)
{
    int first = library->group_start();
    for (int r = 0; r < a->size && first == NCCL_SUCCESS; r++) {
        tensor part = part_of(a, r);
        if (tensor_bytes(part) > 0) {
            int result = call(library, comm, stream, part, a->dtype, r);
            first = result == NCCL_IN_PROGRESS ? NCCL_SUCCESS : result;
        }
    }
    int last = library->group_end();
    return first != NCCL_SUCCESS ? first : last;
}

static int cast_part(const struct nccl_library *library, void *comm, void *stream, tensor part, int dtype,
                     int rank)
{
    (void)dtype;
    return library->broadcast(part.data, part.data, tensor_bytes(part), NCCL_INT8, rank, comm, stream);
}

static int sum_part(const struct nccl_library *library, void *comm, void *stream, tensor part, int dtype,
                    int rank)
{
    return library->reduce(part.data, part.data, (size_t)tensor_count(part), dtype, NCCL_SUM, rank, comm,
                           stream);
}

/* NCCL gathers only equal parts; others are broadcasts. */
static int gather(const struct nccl_library *library, void *comm, void *stream, const void *arguments)
{
    const struct arguments *a = arguments;
    if (parts_are_equal(a)) {
        tensor mine = part_of(a, a->rank);
        return library->all_gather(mine.data, a->t.data, tensor_bytes(mine), NCCL_INT8, comm, stream);
    }
    return in_group(library, comm, stream, a, cast_part);
}

static struct status all_gather(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    const struct comm_nccl *n = state;
    struct exec host = on_host(n, x);
    struct comm_call call = comm_call_gather(&host, t, bounds, n->control.size);
    return queue(n, x, &call, gather, (struct arguments){.t = t, .bounds = bounds});
}

/* NCCL's reduce-scatter has only equal parts, which shards of a bucket are not. */
static int scatter(const struct nccl_library *library, void *comm, void *stream, const void *arguments)
{
    return in_group(library, comm, stream, arguments, sum_part);
}

static struct status reduce_scatter_sum(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    const struct comm_nccl *n = state;
    struct exec host = on_host(n, x);
    struct comm_call call = comm_call_scatter(&host, t, bounds, n->control.size);
    return queue(n, x, &call, scatter,
                 (struct arguments){.t = t, .dtype = dtype_of(t.dtype), .bounds = bounds});
}

static int cast(const struct nccl_library *library, void *comm, void *stream, const void *arguments)
{
    const struct arguments *a = arguments;
    return library->broadcast(a->t.data, a->t.data, tensor_bytes(a->t), NCCL_INT8, a->root, comm, stream);
}

static struct status broadcast(void *state, struct exec *x, tensor t, int root)
{
    const struct comm_nccl *n = state;
    struct exec host = on_host(n, x);
    struct comm_call call = comm_call_broadcast(&host, t, root);
    return queue(n, x, &call, cast, (struct arguments){.t = t, .root = root});
}

static struct status join(void *state, struct exec *x)
{
    (void)x;
    return nccl_link_join(((const struct comm_nccl *)state)->link);
}

static struct status check(void *state)
{
    return nccl_link_check(((const struct comm_nccl *)state)->link);
}

/* ---- between two ranks: through the host's memory ---- */

static struct status send(void *state, struct exec *x, struct status mine, tensor t, int to)
{
    const struct comm_nccl *n = state;
    struct comm staged = comm_staged_rank(n->messages);
    x->status = own(n, mine);
    return heard(n, staged.type->send(staged.state, x, x->status, t, to));
}

static struct status receive(void *state, struct exec *x, struct status mine, tensor t, int from)
{
    const struct comm_nccl *n = state;
    struct comm staged = comm_staged_rank(n->messages);
    x->status = own(n, mine);
    return heard(n, staged.type->receive(staged.state, x, x->status, t, from));
}

/* ---- life ---- */

static void leave(void *state, struct status why)
{
    const struct comm_nccl *n = state;
    comm_leave(&n->control, heard(n, why));
}

/* A communicator of NCCL's own, with a stream and a thread of its own. */
static struct status split(const struct comm *whole, const struct comm_group *g, struct comm *part)
{
    struct comm_nccl *n = whole->state, *p = NULL;
    struct comm control;
    char record[sizeof n->record + 16] = "";
    TRY(heard(n, comm_split(&n->control, &control, g->first, g->stride, g->n)));
    n->n_parts++;
    if (g->n == 1) {
        *part = control;
        return status_ok();
    }
    if (n->record[0] != '\0') {
        snprintf(record, sizeof record, "%s.part%d", n->record, n->n_parts);
    }
    struct comm_nccl_config config = {.deadline_s = n->deadline_s,
                                      .record = record[0] == '\0' ? NULL : record};
    struct status s = heard(n, comm_nccl_create(&p, &control, &n->library, &n->x, &config));
    if (failed(s) || p == NULL) {
        comm_part_close(&control);
        return s;
    }
    p->part = control;
    *part = comm_nccl_rank(p);
    return s;
}

/* NCCL's end waits for all ranks, so they agree that there are all. */
static void close_part(struct comm *part)
{
    struct comm_nccl *n = part->state;
    struct comm control = n->part;
    (void)agree(n, status_ok());
    comm_nccl_destroy(n);
    comm_part_close(&control);
}

static const struct comm_type type = {
    .name = "nccl",
    .sums_in_another_order = true,
    .agree = agree,
    .all_reduce_sum = all_reduce_sum,
    .all_reduce_max = all_reduce_max,
    .all_reduce_max_signed = all_reduce_max_signed,
    .all_gather = all_gather,
    .reduce_scatter_sum = reduce_scatter_sum,
    .broadcast = broadcast,
    .join = join,
    .check = check,
    .send = send,
    .receive = receive,
    .leave = leave,
    .split = split,
    .close_part = close_part,
};

/* Rank 0's; the id says where it listens. */
static struct status share_id(struct comm_nccl *n, struct nccl_id *id)
{
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    if (n->control.rank == 0) {
        int result = n->library.get_unique_id(id);
        x.status = result == NCCL_SUCCESS ? status_ok()
                                          : status_error(STATUS_INTERNAL, "NCCL gives no id: %s",
                                                         n->library.error_string(result));
    }
    comm_broadcast(&n->control, &x, tensor_1d(id->bytes, DTYPE_U8, sizeof *id), 0);
    return x.status;
}

static struct status open_parts(struct comm_nccl *n, const struct exec *x, const struct comm_nccl_config *c)
{
    struct nccl_id id = {{0}};
    struct nccl_link_config link = {.control = &n->control, .deadline_s = c->deadline_s, .record = c->record};
    TRY(comm_agree(&n->control, comm_staged_create(&n->messages, &n->control)));
    TRY(share_id(n, &id));
    return comm_agree(&n->control, nccl_link_open(&n->link, &n->library, id, x, &link));
}

struct status comm_nccl_create(struct comm_nccl **nccl, const struct comm *control,
                               const struct nccl_library *library, const struct exec *x,
                               const struct comm_nccl_config *config)
{
    struct comm_nccl *n = calloc(1, sizeof *n);
    *nccl = NULL;
    struct status s = comm_agree(
        control, n != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for a communicator"));
    if (failed(s) || n == NULL) {
        free(n);
        return s;
    }
    n->control = *control;
    n->library = *library;
    n->x = (struct exec){.device = x->device, .context = x->context, .layer_index = -1};
    n->deadline_s = config->deadline_s;
    snprintf(n->record, sizeof n->record, "%s", config->record == NULL ? "" : config->record);
    s = open_parts(n, x, config);
    if (failed(s)) {
        if (n->link != NULL) {
            nccl_link_end(n->link, s);
        }
        comm_nccl_destroy(n);
        return s;
    }
    *nccl = n;
    return s;
}

void comm_nccl_destroy(struct comm_nccl *nccl)
{
    if (nccl != NULL) {
        nccl_link_close(nccl->link);
        comm_staged_destroy(nccl->messages);
        free(nccl);
    }
}

struct comm comm_nccl_rank(struct comm_nccl *nccl)
{
    struct comm c = nccl->control;
    c.type = &type;
    c.state = nccl;
    return c;
}
