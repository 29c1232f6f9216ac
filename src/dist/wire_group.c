#include "dist/wire_group.h"

#include "core/integers.h"

/* Elements, of which each rank of a group has a part. */
struct piece {
    char *data;
    int64_t n;
    size_t element_bytes;
};

static int rank_of(const struct wire_group *g, int i)
{
    return g->first + i * g->stride;
}

/* The k-th of the group after and before this rank: each begins with another. */
static int after(const struct wire_group *g, int k)
{
    return (g->index + k) % g->n;
}

static int before(const struct wire_group *g, int k)
{
    return (g->index + g->n - k) % g->n;
}

static char *part_data(const struct wire_group *g, const struct piece *p, int i)
{
    return p->data + (size_t)(p->n * i / g->n) * p->element_bytes;
}

static size_t part_bytes(const struct wire_group *g, const struct piece *p, int i)
{
    return (size_t)(p->n * (i + 1) / g->n - p->n * i / g->n) * p->element_bytes;
}

/* Each one's part goes to all others, but not to `whole`, which has them all (-1: nobody has). */
static struct status share_parts(struct wire_ranks *w, const struct wire_group *g, const struct piece *p,
                                 int whole, const char *doing)
{
    for (int k = 1; k < g->n; k++) {
        int to = after(g, k), from = before(g, k);
        if (g->index != whole) {
            wire_ranks_receive(w, rank_of(g, from), WIRE_DATA, part_data(g, p, from), part_bytes(g, p, from));
        }
        if (to != whole) {
            wire_ranks_send(w, rank_of(g, to), WIRE_DATA, part_data(g, p, g->index),
                            part_bytes(g, p, g->index));
        }
    }
    return wire_ranks_wait(w, doing);
}

static struct status reduce_piece(struct wire_ranks *w, const struct wire_group *g,
                                  const struct wire_scratch *scratch, const struct piece *p, enum dtype dtype,
                                  reduction *reduce, const char *doing)
{
    size_t bytes = part_bytes(g, p, g->index);
    for (int k = 1; k < g->n; k++) {
        int to = after(g, k), from = before(g, k);
        char *theirs = scratch->piece + (size_t)from * bytes;
        scratch->from[from] = theirs;
        wire_ranks_receive(w, rank_of(g, from), WIRE_DATA, theirs, bytes);
        wire_ranks_send(w, rank_of(g, to), WIRE_DATA, part_data(g, p, to), part_bytes(g, p, to));
    }
    TRY(wire_ranks_wait(w, doing));
    char *mine = part_data(g, p, g->index);
    scratch->from[g->index] = mine;
    reduce(mine, scratch->from, g->n, 0, (int64_t)(bytes / p->element_bytes), dtype);
    return share_parts(w, g, p, -1, doing);
}

/* Elements [first, ...) of n: as many that the parts of all, the largest of which is rounded up, fit into the
 * scratch. */
static struct piece piece_at(const struct wire_group *g, void *data, int64_t n, int64_t first,
                             size_t element_bytes)
{
    int64_t most = WIRE_GROUP_PIECE_BYTES / (int64_t)element_bytes / g->n * g->n;
    return (struct piece){(char *)data + (size_t)first * element_bytes, int_smaller(n - first, most),
                          element_bytes};
}

struct status wire_group_reduce(struct wire_ranks *w, const struct wire_group *g,
                                const struct wire_scratch *scratch, void *data, int64_t n, enum dtype dtype,
                                reduction *reduce, const char *doing)
{
    for (int64_t done = 0; done < n;) {
        struct piece p = piece_at(g, data, n, done, dtype_bytes(dtype));
        TRY(reduce_piece(w, g, scratch, &p, dtype, reduce, doing));
        done += p.n;
    }
    return status_ok();
}

/* The sum of this rank's elements [first, end), of which the others send theirs; they get the same of their
 * parts. */
static struct status scatter_some(struct wire_ranks *w, const struct wire_group *g,
                                  const struct wire_scratch *scratch, tensor t, const int64_t *bounds,
                                  int64_t done, int64_t most)
{
    size_t element = dtype_bytes(t.dtype);
    char *mine = NULL;
    int64_t n_mine = 0;
    for (int k = 0; k < g->n; k++) {
        int to = rank_of(g, after(g, k)), from = before(g, k);
        int64_t left = bounds[to + 1] - bounds[to] - done, n = left > 0 ? int_smaller(left, most) : 0;
        char *theirs = (char *)t.data + (size_t)(bounds[to] + done) * element;
        if (k == 0) {
            mine = theirs;
            n_mine = n;
            scratch->from[g->index] = mine;
            continue;
        }
        scratch->from[from] = scratch->piece + (size_t)(from * most) * element;
        wire_ranks_receive(w, rank_of(g, from), WIRE_DATA, scratch->piece + (size_t)(from * most) * element,
                           (size_t)n_mine * element);
        wire_ranks_send(w, to, WIRE_DATA, theirs, (size_t)n * element);
    }
    TRY(wire_ranks_wait(w, comm_call_name(CALL_REDUCE_SCATTER_SUM)));
    reduce_sum(mine, scratch->from, g->n, 0, n_mine, t.dtype);
    return status_ok();
}

/* The most elements that a rank of the group has. */
static int64_t largest_part(const struct wire_group *g, const int64_t *bounds)
{
    int64_t most = 0;
    for (int i = 0; i < g->n; i++) {
        int64_t n = bounds[rank_of(g, i) + 1] - bounds[rank_of(g, i)];
        most = n > most ? n : most;
    }
    return most;
}

struct status wire_group_scatter(struct wire_ranks *w, const struct wire_group *g,
                                 const struct wire_scratch *scratch, tensor t, const int64_t *bounds)
{
    int64_t at_once = WIRE_GROUP_PIECE_BYTES / (int64_t)dtype_bytes(t.dtype) / g->n;
    for (int64_t done = 0; done < largest_part(g, bounds); done += at_once) {
        TRY(scatter_some(w, g, scratch, t, bounds, done, at_once));
    }
    return status_ok();
}

/* Of each one's rows the bytes [done, done + WIRE_GROUP_PIECE_BYTES), as far as it has so many. */
static struct status gather_some(struct wire_ranks *w, const struct wire_group *g, tensor t,
                                 const int64_t *bounds, int64_t row_bytes, int64_t done)
{
    for (int i = 0; i < g->n; i++) {
        int r = rank_of(g, i);
        int64_t left = (bounds[r + 1] - bounds[r]) * row_bytes - done;
        size_t bytes = left > 0 ? (size_t)int_smaller(left, WIRE_GROUP_PIECE_BYTES) : 0;
        char *data = (char *)t.data + bounds[r] * row_bytes + done;
        for (int k = 1; k < g->n && i == g->index; k++) {
            wire_ranks_send(w, rank_of(g, after(g, k)), WIRE_DATA, data, bytes);
        }
        if (i != g->index) {
            wire_ranks_receive(w, r, WIRE_DATA, data, bytes);
        }
    }
    return wire_ranks_wait(w, comm_call_name(CALL_ALL_GATHER));
}

struct status wire_group_gather(struct wire_ranks *w, const struct wire_group *g, tensor t,
                                const int64_t *bounds)
{
    int64_t row_bytes = t.dims[0] == 0 ? 0 : (int64_t)tensor_bytes(t) / t.dims[0];
    int64_t most = largest_part(g, bounds) * row_bytes;
    for (int64_t done = 0; done < most; done += WIRE_GROUP_PIECE_BYTES) {
        TRY(gather_some(w, g, t, bounds, row_bytes, done));
    }
    return status_ok();
}

/* The root gives each its part, and the parts go to all. */
struct status wire_group_broadcast(struct wire_ranks *w, const struct wire_group *g, void *data,
                                   int64_t bytes, int root)
{
    const char *doing = comm_call_name(CALL_BROADCAST);
    for (int64_t done = 0; done < bytes;) {
        struct piece p = piece_at(g, data, bytes, done, 1);
        for (int k = 1; k < g->n && g->index == root; k++) {
            int to = after(g, k);
            wire_ranks_send(w, rank_of(g, to), WIRE_DATA, part_data(g, &p, to), part_bytes(g, &p, to));
        }
        if (g->index != root) {
            wire_ranks_receive(w, rank_of(g, root), WIRE_DATA, part_data(g, &p, g->index),
                               part_bytes(g, &p, g->index));
        }
        TRY(wire_ranks_wait(w, doing));
        TRY(share_parts(w, g, &p, root, doing));
        done += p.n;
    }
    return status_ok();
}
