#include "dist/node_calls.h"

#include "core/integers.h"

#include <string.h>

/* Of which none is smaller than 2 bytes: ranks never write to the same cache line. */
enum { LINE_ELEMENTS = 32 };

/* The first of n elements that the rank in a seat adds up. */
static int64_t share_begin(const struct wire_ranks *w, int64_t n, int seat)
{
    int64_t lines = (n + LINE_ELEMENTS - 1) / LINE_ELEMENTS;
    return int_smaller(lines * seat / w->window.size * LINE_ELEMENTS, n);
}

/* Copies n elements but not [first, end). */
static void copy_others(char *to, const char *from, int64_t n, int64_t first, int64_t end, size_t bytes)
{
    memcpy(to, from, (size_t)first * bytes);
    memcpy(to + (size_t)end * bytes, from + (size_t)end * bytes, (size_t)(n - end) * bytes);
}

/* What this rank adds up itself, it reads and writes in place.  Others read its slot until the meeting after
 * the sums, and its result until the next meeting of any kind. */
static struct status reduce_piece(struct wire_ranks *w, char *data, int64_t n, enum dtype dtype,
                                  reduction *reduce, const void **from, const struct node_between *between,
                                  const char *doing)
{
    const struct node_window *window = &w->window;
    size_t bytes = dtype_bytes(dtype);
    char *result = node_window_result(window, 0);
    int64_t first = share_begin(w, n, window->rank), end = share_begin(w, n, window->rank + 1);
    char *mine = data + (size_t)first * bytes;
    w->sent_bytes += (n - (end - first) + (end - first) * (int64_t)(window->size - 1)) * (int64_t)bytes;
    copy_others(node_window_slot(window, window->rank), data, n, first, end, bytes);
    TRY(wire_ranks_come(w, doing));
    for (int i = 0; i < window->size; i++) {
        from[i] = i == window->rank ? data : node_window_slot(window, i);
    }
    reduce(mine, from, window->size, first, end - first, dtype);
    if (between->reduce != NULL) {
        TRY(between->reduce(between->context, mine, end - first, dtype, reduce, doing));
    }
    memcpy(result + (size_t)first * bytes, mine, (size_t)(end - first) * bytes);
    TRY(wire_ranks_come(w, doing));
    copy_others(data, result, n, first, end, bytes);
    return status_ok();
}

struct status node_calls_reduce(struct wire_ranks *w, tensor t, reduction *reduce, const void **from,
                                const struct node_between *between, const char *doing)
{
    int64_t bytes = (int64_t)dtype_bytes(t.dtype), most = NODE_WINDOW_PIECE_BYTES / bytes,
            n = tensor_count(t);
    for (int64_t i = 0; i < n; i += most) {
        TRY(reduce_piece(w, (char *)t.data + i * bytes, int_smaller(n - i, most), t.dtype, reduce, from,
                         between, doing));
    }
    return status_ok();
}

/* What is left of a rank's rows, at most `most` bytes, and where it belongs. */
static size_t rows_at(const tensor *t, const int64_t *bounds, int rank, int64_t done, int64_t most,
                      char **data)
{
    int64_t row_bytes = (int64_t)tensor_bytes(*t) / t->dims[0];
    int64_t left = (bounds[rank + 1] - bounds[rank]) * row_bytes - done;
    *data = (char *)t->data + bounds[rank] * row_bytes + done;
    return left > 0 ? (size_t)int_smaller(left, most) : 0;
}

/* Bytes of the largest part of those of a node's ranks. */
static int64_t largest_part(const struct wire_ranks *w, const tensor *t, const int64_t *bounds, int first)
{
    int64_t most = 0;
    for (int r = first; r < first + w->window.size; r++) {
        most = bounds[r + 1] - bounds[r] > most ? bounds[r + 1] - bounds[r] : most;
    }
    return most == 0 ? 0 : most * (int64_t)tensor_bytes(*t) / t->dims[0];
}

/* Half a slot has a piece for each rank, of its part; the halves take turns as in a gathering. */
struct status node_calls_scatter(struct wire_ranks *w, tensor t, const int64_t *bounds, int first,
                                 const void **from)
{
    const struct node_window *window = &w->window;
    const char *doing = comm_call_name(CALL_REDUCE_SCATTER_SUM);
    int64_t element = (int64_t)dtype_bytes(t.dtype), half = 0, most = largest_part(w, &t, bounds, first);
    int64_t piece =
        NODE_WINDOW_PIECE_BYTES / 2 / window->size / LINE_ELEMENTS / element * LINE_ELEMENTS * element;
    char *data;
    CHECK(piece > 0, "%d ranks of a node", window->size);
    for (int64_t done = 0; done < most; done += piece) {
        for (int i = 0; i < window->size; i++) {
            size_t bytes = rows_at(&t, bounds, first + i, done, piece, &data);
            if (bytes > 0 && i != window->rank) {
                w->sent_bytes += (int64_t)bytes;
                memcpy((char *)node_window_slot(window, window->rank) + half + i * piece, data, bytes);
            }
        }
        TRY(wire_ranks_come(w, doing));
        int64_t bytes = (int64_t)rows_at(&t, bounds, first + window->rank, done, piece, &data);
        for (int i = 0; i < window->size; i++) {
            from[i] =
                i == window->rank ? data : (char *)node_window_slot(window, i) + half + window->rank * piece;
        }
        reduce_sum(data, from, window->size, 0, bytes / element, t.dtype);
        half = NODE_WINDOW_PIECE_BYTES / 2 - half;
    }
    return wire_ranks_come(w, doing);
}

/* One half of a slot is written while others still read the other.  The last meeting gives the slots back. */
struct status node_calls_gather(struct wire_ranks *w, tensor t, const int64_t *bounds, int first)
{
    const struct node_window *window = &w->window;
    const char *doing = comm_call_name(CALL_ALL_GATHER);
    char *data;
    int64_t half = 0, most = largest_part(w, &t, bounds, first);
    for (int64_t done = 0; done < most; done += NODE_WINDOW_PIECE_BYTES / 2) {
        size_t bytes = rows_at(&t, bounds, first + window->rank, done, NODE_WINDOW_PIECE_BYTES / 2, &data);
        if (bytes > 0) {
            w->sent_bytes += (int64_t)bytes * (window->size - 1);
            memcpy((char *)node_window_slot(window, window->rank) + half, data, bytes);
        }
        TRY(wire_ranks_come(w, doing));
        for (int i = 0; i < window->size; i++) {
            bytes = rows_at(&t, bounds, first + i, done, NODE_WINDOW_PIECE_BYTES / 2, &data);
            if (bytes > 0 && i != window->rank) {
                memcpy(data, (char *)node_window_slot(window, i) + half, bytes);
            }
        }
        half = NODE_WINDOW_PIECE_BYTES / 2 - half;
    }
    return wire_ranks_come(w, doing);
}

/* The root writes one result while the others read the other one. */
struct status node_calls_broadcast(struct wire_ranks *w, tensor t, int root)
{
    const char *doing = comm_call_name(CALL_BROADCAST);
    int64_t bytes = (int64_t)tensor_bytes(t);
    for (int64_t done = 0, i = 0; done < bytes; done += NODE_WINDOW_PIECE_BYTES, i = 1 - i) {
        size_t some = (size_t)int_smaller(bytes - done, NODE_WINDOW_PIECE_BYTES);
        void *result = node_window_result(&w->window, (int)i);
        if (w->wire.rank == root) {
            w->sent_bytes += (int64_t)some * (w->window.size - 1);
            memcpy(result, (char *)t.data + done, some);
        }
        TRY(wire_ranks_come(w, doing));
        if (w->wire.rank != root) {
            memcpy((char *)t.data + done, result, some);
        }
    }
    return status_ok();
}
