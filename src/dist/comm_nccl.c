#include "dist/comm_nccl.h"

#include "dist/comm_stage.h"
#include "dist/nccl_link.h"

#include <stdio.h>
#include <stdlib.h>

struct comm_nccl {
    struct comm control;
    struct comm part; /* control, if it was split off for this communicator; else zeroes */
    struct exec x;    /* exec of the device that has the tensors */
    double deadline_s;
    char record[512];
    int n_parts; /* parts split off so far: they number their records */
    struct nccl_library library;
    struct nccl_link *link;
    struct comm_stage stage;
};

/* Ends this rank's part of NCCL's communicator for any error that the rank has heard of; otherwise it would
 * wait there for ranks that do not come. */
static struct status heard(const struct comm_nccl *n, struct status s)
{
    if (failed(s)) {
        nccl_link_end(n->link, s);
    }
    return s;
}

/* Returns this rank's own error: the exec's, else one that was found since the last call. */
static struct status own(const struct comm_nccl *n, struct status mine)
{
    return failed(mine) ? mine : nccl_link_check(n->link);
}

/* ---- collectives ---- */

struct arguments {
    const struct comm_call *call;
    tensor t;
    int rank, size;
    const int64_t *bounds;
};

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

static int dtype_of(enum dtype dtype)
{
    return dtype == DTYPE_F64 ? NCCL_FLOAT64 : dtype == DTYPE_BF16 ? NCCL_BFLOAT16 : NCCL_FLOAT32;
}

/* NCCL gathers only equal parts, and leaves only equal parts of a sum, which shards of a bucket are not; so
 * there is a call for each rank's part, if it has one, which run as one. */
static int in_group(const struct nccl_library *library, void *comm, void *stream, const struct arguments *a)
{
    int first = library->group_start();
    for (int r = 0; r < a->size && first == NCCL_SUCCESS; r++) {
        tensor part = part_of(a, r);
        if (tensor_bytes(part) > 0) {
            int result =
                a->call->kind == CALL_ALL_GATHER
                    ? library->broadcast(part.data, part.data, tensor_bytes(part), NCCL_INT8, r, comm, stream)
                    : library->reduce(part.data, part.data, (size_t)tensor_count(part), dtype_of(part.dtype),
                                      NCCL_SUM, r, comm, stream);
            first = result == NCCL_IN_PROGRESS ? NCCL_SUCCESS : result;
        }
    }
    int last = library->group_end();
    return first != NCCL_SUCCESS ? first : last;
}

/* The largest of magnitudes is that of integers of the same bits, since NCCL's maximum of numbers drops a
 * NaN, and here it is the largest. */
static int collective(const struct nccl_library *library, void *comm, void *stream, const void *arguments)
{
    const struct arguments *a = arguments;
    size_t n = (size_t)tensor_count(a->t), bytes = tensor_bytes(a->t);
    void *data = a->t.data;
    switch (a->call->kind) {
    case CALL_ALL_REDUCE_SUM:
        return library->all_reduce(data, data, n, dtype_of(a->t.dtype), NCCL_SUM, comm, stream);
    case CALL_ALL_REDUCE_MAX: return library->all_reduce(data, data, n, NCCL_INT32, NCCL_MAX, comm, stream);
    case CALL_ALL_REDUCE_MAX_SIGNED:
        return library->all_reduce(data, data, n, NCCL_FLOAT32, NCCL_MAX, comm, stream);
    case CALL_BROADCAST: return library->broadcast(data, data, bytes, NCCL_INT8, a->call->root, comm, stream);
    default: break;
    }
    if (a->call->kind == CALL_ALL_GATHER && parts_are_equal(a)) {
        tensor mine = part_of(a, a->rank);
        return library->all_gather(mine.data, data, tensor_bytes(mine), NCCL_INT8, comm, stream);
    }
    return in_group(library, comm, stream, a);
}

static struct status queue(const struct comm_nccl *n, const struct exec *x, const struct arguments *a)
{
    CHECK(nccl_link_is_of(n->link, x), "a communicator of another exec");
    TRY(heard(n, comm_call_agree(&n->control, a->call)));
    return a->call->count == 0 ? status_ok() : nccl_link_queue(n->link, a->call, collective, a);
}

/* Messages go through the host's memory. */
static struct status message(struct comm_nccl *n, struct exec *x, const struct comm_call *call, tensor t)
{
    struct comm staged = n->control;
    staged.stage = &n->stage;
    x->status = call->status;
    (call->kind == CALL_SEND ? comm_send : comm_receive)(&staged, x, t, call->root);
    return heard(n, x->status);
}

static struct status call(void *state, struct exec *x, const struct comm_call *mine, tensor t,
                          const int64_t *bounds)
{
    struct comm_nccl *n = state;
    struct comm_call call = *mine;
    call.status = own(n, call.status);
    switch (call.kind) {
    case CALL_AGREE: return heard(n, comm_agree(&n->control, call.status));
    case CALL_SEND:
    case CALL_RECEIVE: return message(n, x, &call, t);
    default: return queue(n, x, &(struct arguments){&call, t, n->control.rank, n->control.size, bounds});
    }
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

/* ---- life ---- */

static void leave(void *state, struct status why)
{
    const struct comm_nccl *n = state;
    comm_leave(&n->control, heard(n, why));
}

/* Each part has its own NCCL communicator, stream and thread. */
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

/* NCCL's end waits for all ranks, so they first agree that all are there. */
static void close_part(struct comm *part)
{
    struct comm_nccl *n = part->state;
    struct comm control = n->part;
    (void)comm_agree(part, status_ok());
    comm_nccl_destroy(n);
    comm_part_close(&control);
}

static const struct comm_type type = {
    .name = "nccl",
    .sums_in_another_order = true,
    .call = call,
    .join = join,
    .check = check,
    .leave = leave,
    .split = split,
    .close_part = close_part,
};

/* Broadcasts rank 0's id, which says where rank 0 listens. */
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
    TRY(comm_agree(&n->control, comm_stage_init(&n->stage, n->control.size)));
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
        comm_stage_fini(&nccl->stage);
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
