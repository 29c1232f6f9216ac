#include "dist/wire_group.h"

#include "core/integers.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a cache line: ranks never write to the same one. */
enum { LINE_BYTES = 64 };

/* The parts that ranks of a group have: the i-th rank has rows [bounds[r], bounds[r + 1]), r = first + i *
 * stride. */
struct parts {
    char *data;
    const int64_t *bounds;
    int first, stride;
    int64_t row_bytes;
    int64_t done, most; /* bytes of each part: the piece [done, done + most) is exchanged */
    int has_all;        /* rank of the group that needs no part of others; -1: all need them */
};

struct block {
    char *data;
    size_t bytes;
};

/* The piece of the i-th rank's part; shorter, or empty, at the part's end. */
static struct block piece_of(const struct parts *p, int i)
{
    int r = p->first + i * p->stride;
    int64_t left = (p->bounds[r + 1] - p->bounds[r]) * p->row_bytes - p->done;
    return (struct block){p->data + p->bounds[r] * p->row_bytes + p->done,
                          left > 0 ? (size_t)int_smaller(left, p->most) : 0};
}

/* Bytes of the largest part, which all pieces together cover. */
static int64_t largest_part(const struct wire_group *g, const struct parts *p)
{
    int64_t most = 0;
    for (int i = 0; i < g->n; i++) {
        int r = p->first + i * p->stride;
        most = p->bounds[r + 1] - p->bounds[r] > most ? p->bounds[r + 1] - p->bounds[r] : most;
    }
    return most * p->row_bytes;
}

/* Bytes of each part that are scattered at a time: the buffer holds a piece from, or for, each other rank. */
static int64_t scattered_at_once(const struct wire_group *g)
{
    int64_t bytes =
        g->shares ? NODE_WINDOW_SLOT_BYTES / (g->n > 1 ? g->n - 1 : 1) : WIRE_GROUP_PIECE_BYTES / g->n;
    CHECK(bytes >= LINE_BYTES, "%d ranks exchange at once", g->n);
    return bytes / LINE_BYTES * LINE_BYTES;
}

static int64_t gathered_at_once(const struct wire_group *g)
{
    return g->shares ? NODE_WINDOW_SLOT_BYTES : WIRE_GROUP_PIECE_BYTES;
}

/* ---- exchanges by messages ---- */

static int rank_of(const struct wire_group *g, int i)
{
    return g->first + i * g->stride;
}

/* The k-th of the group after this rank, and before it, so that each rank begins with a different one. */
static int after(const struct wire_group *g, int k)
{
    return (g->index + k) % g->n;
}

static int before(const struct wire_group *g, int k)
{
    return (g->index + g->n - k) % g->n;
}

static struct status scatter_by_messages(struct wire_ranks *w, struct wire_group *g, const struct parts *p,
                                         const char *doing)
{
    size_t bytes = piece_of(p, g->index).bytes;
    for (int k = 1; k < g->n; k++) {
        int to = after(g, k), from = before(g, k);
        char *theirs = g->room + (size_t)from * bytes;
        struct block b = piece_of(p, to);
        g->from[from] = theirs;
        wire_ranks_receive(w, rank_of(g, from), WIRE_DATA, theirs, bytes);
        wire_ranks_send(w, rank_of(g, to), WIRE_DATA, b.data, b.bytes);
    }
    return wire_ranks_wait(w, doing);
}

static struct status gather_by_messages(struct wire_ranks *w, const struct wire_group *g,
                                        const struct parts *p, const char *doing)
{
    struct block mine = piece_of(p, g->index);
    for (int k = 1; k < g->n; k++) {
        int to = after(g, k), from = before(g, k);
        struct block theirs = piece_of(p, from);
        if (g->index != p->has_all) {
            wire_ranks_receive(w, rank_of(g, from), WIRE_DATA, theirs.data, theirs.bytes);
        }
        if (to != p->has_all) {
            wire_ranks_send(w, rank_of(g, to), WIRE_DATA, mine.data, mine.bytes);
        }
    }
    return wire_ranks_wait(w, doing);
}

/* ---- exchanges by memory ---- */

/* Offset of the i-th rank's piece in the slot of the j-th, which has none for itself. */
static size_t place_in_slot(const struct parts *p, int i, int j)
{
    return (size_t)(i < j ? i : i - 1) * (size_t)p->most;
}

static struct status scatter_by_memory(struct wire_ranks *w, struct wire_group *g, const struct parts *p,
                                       const char *doing)
{
    char *slot = node_window_next_slot(&w->window);
    for (int i = 0; i < g->n; i++) {
        struct block b = piece_of(p, i);
        if (i != g->index && b.bytes > 0) {
            w->sent_bytes += (int64_t)b.bytes;
            memcpy(slot + place_in_slot(p, i, g->index), b.data, b.bytes);
        }
    }
    TRY(wire_ranks_come(w, doing));
    for (int i = 0; i < g->n; i++) {
        if (i != g->index) {
            g->from[i] = (char *)node_window_slot(&w->window, i) + place_in_slot(p, g->index, i);
        }
    }
    return status_ok();
}

static struct status gather_by_memory(struct wire_ranks *w, const struct wire_group *g, const struct parts *p,
                                      const char *doing)
{
    struct block mine = piece_of(p, g->index);
    if (mine.bytes > 0) {
        w->sent_bytes += (int64_t)mine.bytes * (g->n - 1);
        memcpy(node_window_next_slot(&w->window), mine.data, mine.bytes);
    }
    TRY(wire_ranks_come(w, doing));
    for (int i = 0; i < g->n; i++) {
        struct block theirs = piece_of(p, i);
        if (i != g->index && theirs.bytes > 0) {
            memcpy(theirs.data, node_window_slot(&w->window, i), theirs.bytes);
        }
    }
    return status_ok();
}

/* ---- calls ---- */

static struct status gather_piece(struct wire_ranks *w, const struct wire_group *g, const struct parts *p,
                                  const char *doing)
{
    return (g->shares ? gather_by_memory : gather_by_messages)(w, g, p, doing);
}

/* Makes this rank's piece the sum over all ranks; *mine: where it is. */
static struct status reduce_piece(struct wire_ranks *w, struct wire_group *g, const struct parts *p,
                                  enum dtype dtype, reduction *reduce, struct block *mine, const char *doing)
{
    *mine = piece_of(p, g->index);
    TRY((g->shares ? scatter_by_memory : scatter_by_messages)(w, g, p, doing));
    g->from[g->index] = mine->data;
    reduce(mine->data, g->from, g->n, 0, (int64_t)(mine->bytes / dtype_bytes(dtype)), dtype);
    return status_ok();
}

/* Equal parts of n elements, which begin with a line of any dtype that is summed. */
static struct parts equal_parts(struct wire_group *g, void *data, int64_t n, int64_t element_bytes)
{
    int64_t lines = (n + LINE_BYTES - 1) / LINE_BYTES;
    for (int i = 0; i <= g->n; i++) {
        g->equal[i] = int_smaller(lines * i / g->n * LINE_BYTES, n);
    }
    return (struct parts){.data = data,
                          .bounds = g->equal,
                          .stride = 1,
                          .row_bytes = element_bytes,
                          .most = scattered_at_once(g),
                          .has_all = -1};
}

struct status wire_group_reduce(struct wire_ranks *w, struct wire_group *g, struct wire_group *across,
                                void *data, int64_t n, enum dtype dtype, reduction *reduce, const char *doing)
{
    struct parts p = equal_parts(g, data, n, (int64_t)dtype_bytes(dtype));
    struct block mine;
    for (int64_t most = largest_part(g, &p); p.done < most; p.done += p.most) {
        TRY(reduce_piece(w, g, &p, dtype, reduce, &mine, doing));
        if (across != NULL) {
            TRY(wire_group_reduce(w, across, NULL, mine.data, (int64_t)(mine.bytes / dtype_bytes(dtype)),
                                  dtype, reduce, doing));
        }
        TRY(gather_piece(w, g, &p, doing));
    }
    return status_ok();
}

static struct parts parts_of(const struct wire_group *g, tensor t, const int64_t *bounds, int first,
                             int64_t most)
{
    return (struct parts){.data = t.data,
                          .bounds = bounds,
                          .first = first,
                          .stride = g->stride,
                          .row_bytes = t.dims[0] == 0 ? 0 : (int64_t)tensor_bytes(t) / t.dims[0],
                          .most = most,
                          .has_all = -1};
}

struct status wire_group_scatter(struct wire_ranks *w, struct wire_group *g, tensor t, const int64_t *bounds,
                                 int first)
{
    struct parts p = parts_of(g, t, bounds, first, scattered_at_once(g));
    struct block mine;
    for (int64_t most = largest_part(g, &p); p.done < most; p.done += p.most) {
        TRY(reduce_piece(w, g, &p, t.dtype, reduce_sum, &mine, comm_call_name(CALL_REDUCE_SCATTER_SUM)));
    }
    return status_ok();
}

struct status wire_group_gather(struct wire_ranks *w, struct wire_group *g, tensor t, const int64_t *bounds,
                                int first)
{
    struct parts p = parts_of(g, t, bounds, first, gathered_at_once(g));
    for (int64_t most = largest_part(g, &p); p.done < most; p.done += p.most) {
        TRY(gather_piece(w, g, &p, comm_call_name(CALL_ALL_GATHER)));
    }
    return status_ok();
}

/* With shared memory the root's part has all bytes.  With messages the root sends each rank its part, and the
 * parts are gathered. */
struct status wire_group_broadcast(struct wire_ranks *w, struct wire_group *g, void *data, int64_t bytes,
                                   int root)
{
    const char *doing = comm_call_name(CALL_BROADCAST);
    struct parts p = equal_parts(g, data, bytes, 1);
    p.has_all = root;
    for (int i = 0; i <= g->n && g->shares; i++) {
        g->equal[i] = i <= root ? 0 : bytes;
        p.most = gathered_at_once(g);
    }
    for (int64_t most = largest_part(g, &p); p.done < most; p.done += p.most) {
        struct block mine = piece_of(&p, g->index);
        for (int k = 1; k < g->n && g->index == root && !g->shares; k++) {
            struct block theirs = piece_of(&p, after(g, k));
            wire_ranks_send(w, rank_of(g, after(g, k)), WIRE_DATA, theirs.data, theirs.bytes);
        }
        if (g->index != root && !g->shares) {
            wire_ranks_receive(w, rank_of(g, root), WIRE_DATA, mine.data, mine.bytes);
        }
        TRY(wire_ranks_wait(w, doing));
        TRY(gather_piece(w, g, &p, doing));
    }
    return status_ok();
}

struct status wire_group_init(struct wire_group *g)
{
    g->equal = calloc((size_t)g->n + 1, sizeof *g->equal);
    g->from = calloc((size_t)g->n + 1, sizeof *g->from);
    return g->equal != NULL && g->from != NULL
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for a group of %d ranks", g->n);
}

void wire_group_fini(struct wire_group *g)
{
    free(g->equal);
    free(g->from);
    *g = (struct wire_group){0};
}
