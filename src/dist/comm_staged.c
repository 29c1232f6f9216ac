#include "dist/comm_staged.h"

#include <stdlib.h>

struct comm_staged {
    struct comm inner;
    struct comm part; /* the same, if it was split off for this one; else zeroes */
    void *piece;      /* [COMM_STAGED_PIECE_BYTES] */
    int64_t *bounds;  /* [size + 1] of the parts of a piece */
};

/* What is done with each piece of a tensor. */
struct exchange {
    void (*with)(const struct comm *inner, struct exec *x, tensor piece, int other);
    int other;         /* a rank, for those that name one */
    bool gives, takes; /* whether this rank's elements are read, and written */
};

static void sum(const struct comm *inner, struct exec *x, tensor piece, int other)
{
    (void)other;
    comm_all_reduce_sum(inner, x, piece);
}

static void max(const struct comm *inner, struct exec *x, tensor piece, int other)
{
    (void)other;
    comm_all_reduce_max(inner, x, piece);
}

/* A failed copy is an error that all ranks hear of in the exchange of the piece, and the last one's in their
 * next call. */
static struct status exchange_piece(const struct comm_staged *s, struct exec *x, tensor piece,
                                    const struct exchange *e)
{
    tensor copy = tensor_1d(s->piece, piece.dtype, piece.dims[0]);
    struct exec host = {.device = &device_cpu, .layer_index = -1};
    if (e->gives) {
        exec_copy_out(x, copy.data, piece.data, tensor_bytes(piece));
    }
    host.status = x->status;
    e->with(&s->inner, &host, copy, e->other);
    TRY(host.status);
    if (e->takes) {
        exec_copy_in(x, piece.data, copy.data, tensor_bytes(piece));
    }
    return status_ok();
}

/* A tensor without elements is one empty piece, as other tables exchange it. */
static struct status exchange_all(const struct comm_staged *s, struct exec *x, tensor t, struct exchange e)
{
    int64_t n = tensor_count(t), most = COMM_STAGED_PIECE_BYTES / (int64_t)dtype_bytes(t.dtype), first = 0;
    tensor flat = tensor_1d(t.data, t.dtype, n);
    do {
        int64_t n_piece = n - first < most ? n - first : most;
        TRY(exchange_piece(s, x, tensor_slice(flat, first, n_piece), &e));
        first += n_piece;
    } while (first < n);
    return x->status;
}

static struct status agree(void *state, struct status mine)
{
    const struct comm_staged *s = state;
    return comm_agree(&s->inner, mine);
}

static struct status all_reduce_sum(void *state, struct exec *x, tensor t)
{
    return exchange_all(state, x, t, (struct exchange){.with = sum, .gives = true, .takes = true});
}

static struct status all_reduce_max(void *state, struct exec *x, tensor t)
{
    return exchange_all(state, x, t, (struct exchange){.with = max, .gives = true, .takes = true});
}

static struct status broadcast(void *state, struct exec *x, tensor t, int root)
{
    const struct comm_staged *s = state;
    bool is_root = s->inner.rank == root;
    return exchange_all(
        s, x, t,
        (struct exchange){.with = comm_broadcast, .other = root, .gives = is_root, .takes = !is_root});
}

/* This rank takes its part of each piece. */
static struct status reduce_scatter_sum(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    const struct comm_staged *s = state;
    int64_t n = t.dims[0], most = COMM_STAGED_PIECE_BYTES / (int64_t)dtype_bytes(t.dtype), first = 0;
    do {
        tensor piece = tensor_slice(t, first, n - first < most ? n - first : most);
        tensor copy = tensor_1d(s->piece, t.dtype, piece.dims[0]);
        struct exec host = {.device = &device_cpu, .layer_index = -1};
        exec_copy_out(x, copy.data, piece.data, tensor_bytes(piece));
        host.status = x->status;
        comm_cut_bounds(s->bounds, bounds, s->inner.size, first, first + piece.dims[0]);
        comm_queue_reduce_scatter_sum(&s->inner, &host, copy, s->bounds);
        comm_join(&s->inner, &host);
        TRY(host.status);
        int64_t begin = s->bounds[s->inner.rank], n_mine = s->bounds[s->inner.rank + 1] - begin;
        exec_copy_in(x, tensor_slice(piece, begin, n_mine).data, tensor_slice(copy, begin, n_mine).data,
                     (size_t)n_mine * dtype_bytes(t.dtype));
        first += piece.dims[0];
    } while (first < n);
    return x->status;
}

/* Rank after rank, so that a piece is enough. */
static struct status all_gather(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    const struct comm_staged *s = state;
    TRY(comm_agree(&s->inner, x->status)); /* there may be nothing to gather */
    for (int r = 0; r < s->inner.size; r++) {
        if (bounds[r] < bounds[r + 1]) {
            TRY(broadcast(state, x, tensor_slice(t, bounds[r], bounds[r + 1] - bounds[r]), r));
        }
    }
    return status_ok();
}

/* x has the status `mine` of this rank, and the inner messages carry it. */
static struct status send(void *state, struct exec *x, struct status mine, tensor t, int to)
{
    (void)mine;
    return exchange_all(state, x, t, (struct exchange){.with = comm_send, .other = to, .gives = true});
}

static struct status receive(void *state, struct exec *x, struct status mine, tensor t, int from)
{
    (void)mine;
    return exchange_all(state, x, t, (struct exchange){.with = comm_receive, .other = from, .takes = true});
}

static void leave(void *state, struct status why)
{
    const struct comm_staged *s = state;
    comm_leave(&s->inner, why);
}

/* All ranks make the agreement, in which those that are alone have nothing to lack. */
static struct status split(const struct comm *whole, const struct comm_group *g, struct comm *part)
{
    const struct comm_staged *s = whole->state;
    struct comm_staged *p = NULL;
    struct comm inner;
    TRY(comm_split(&s->inner, &inner, g->first, g->stride, g->n));
    struct status status = comm_agree(&s->inner, g->n == 1 ? status_ok() : comm_staged_create(&p, &inner));
    if (failed(status)) {
        comm_staged_destroy(p);
        comm_part_close(&inner);
        return status;
    }
    if (p != NULL) {
        p->part = inner;
    }
    *part = p == NULL ? inner : comm_staged_rank(p);
    return status;
}

static void close_part(struct comm *part)
{
    struct comm_staged *p = part->state;
    comm_part_close(&p->part);
    comm_staged_destroy(p);
}

static int64_t sent(const void *state)
{
    return comm_sent(&((const struct comm_staged *)state)->inner);
}

static const struct comm_type type = {
    .name = "staged",
    .agree = agree,
    .all_reduce_sum = all_reduce_sum,
    .all_reduce_max = all_reduce_max,
    .all_reduce_max_signed = all_reduce_max,
    .all_gather = all_gather,
    .reduce_scatter_sum = reduce_scatter_sum,
    .broadcast = broadcast,
    .send = send,
    .receive = receive,
    .sent = sent,
    .leave = leave,
    .split = split,
    .close_part = close_part,
};

struct status comm_staged_create(struct comm_staged **staged, const struct comm *inner)
{
    struct comm_staged *s = calloc(1, sizeof *s);
    *staged = s;
    if (s != NULL) {
        *s = (struct comm_staged){.inner = *inner,
                                  .piece = malloc(COMM_STAGED_PIECE_BYTES),
                                  .bounds = calloc((size_t)inner->size + 1, sizeof *s->bounds)};
    }
    if (s == NULL || s->piece == NULL || s->bounds == NULL) {
        comm_staged_destroy(s);
        *staged = NULL;
        return status_error(STATUS_MEMORY, "out of memory to stage what ranks exchange");
    }
    return status_ok();
}

void comm_staged_destroy(struct comm_staged *staged)
{
    if (staged != NULL) {
        free(staged->piece);
        free(staged->bounds);
        free(staged);
    }
}

struct comm comm_staged_rank(struct comm_staged *staged)
{
    struct comm c = staged->inner;
    c.type = &type;
    c.state = staged;
    return c;
}
