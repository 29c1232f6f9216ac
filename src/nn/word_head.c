#include "nn/word_head.h"

#include "core/integers.h"
#include "dev/peers.h"
#include "ops/ops.h"

enum { CHUNK_BYTES = 64 << 20, ROW_GRAIN = 16 };

/* All chunks have nearly one size, because a last chunk of a few rows would be a slow product. */
int64_t word_head_chunk(int64_t n_rows, int64_t vocab_rows)
{
    int64_t most = int_larger(CHUNK_BYTES / (vocab_rows * (int64_t)sizeof(float)), 1);
    return int_smaller(n_rows, most < ROW_GRAIN ? most : most / ROW_GRAIN * ROW_GRAIN);
}

static void carve_slices(struct word_head_acts *a, struct arena *arena, struct word_head_room room, int64_t c)
{
    enum dtype vector = dtype_of_vectors(room.dtype);
    a->maxima = arena_carve_1d(arena, vector, c);
    a->sums = arena_carve_2d(arena, DTYPE_F64, c, 3);
    a->all_logits = a->slices = NULL_TENSOR;
    if (room.whole_logits) {
        a->slices = arena_carve_2d(arena, vector, room.n_slices * c, room.vocab_rows);
        a->all_logits = arena_carve_2d(arena, vector, c, room.n_slices * room.vocab_rows);
    }
}

void word_head_carve(struct word_head_acts *a, struct arena *arena, struct word_head_room room)
{
    enum dtype vector = dtype_of_vectors(room.dtype);
    int64_t chunk = room.chunk > 0      ? room.chunk
                    : room.whole_logits ? room.n_rows
                                        : word_head_chunk(room.n_rows, room.vocab_rows);
    int64_t c = int_smaller(chunk, room.n_rows);
    a->logits = arena_carve_2d(arena, vector, c, room.vocab_rows);
    a->dlogits = room.dtype == vector ? a->logits : arena_carve_2d(arena, room.dtype, c, room.vocab_rows);
    a->loss = arena_carve_1d(arena, vector, room.n_rows);
    a->correct = arena_carve_1d(arena, DTYPE_I32, room.n_rows);
    a->maxima = a->sums = a->slices = NULL_TENSOR;
    a->all_logits = a->logits;
    if (room.n_slices > 1) {
        carve_slices(a, arena, room, c);
    }
}

/* Rows of each chunk but the last: nearly equal parts that fit the memory, so that no product is small. */
static int64_t rows_of_chunks(const struct word_head_acts *a, const struct word_head *h)
{
    int64_t n = h->rows.dims[0], room = int_larger(a->logits.dims[0], 1);
    int64_t n_chunks = int_larger((n + room - 1) / room, 1);
    return int_smaller(int_round_up((n + n_chunks - 1) / n_chunks, ROW_GRAIN), room);
}

/* Rows [first, first + n) of a pass, and their memory. */
struct chunk {
    int64_t first, n;
    tensor rows, logits, dlogits;
};

/* The chunk from row `first`, which is smaller than the others where the rows end. */
static struct chunk chunk_at(const struct word_head_acts *a, const struct word_head *h, int64_t first)
{
    int64_t n = int_smaller(h->rows.dims[0] - first, rows_of_chunks(a, h));
    return (struct chunk){first, n, tensor_slice(h->rows, first, n), tensor_slice(a->logits, 0, n),
                          tensor_slice(a->dlogits, 0, n)};
}

static void chunk_forward(struct exec *x, const struct chunk *c, const struct word_head *h)
{
    /* logits = z E^T + b */
    x->ops->linear(x, c->logits, c->rows, h->word, h->bias);
}

/* The first word of this peer's slice. */
static int64_t first_word(const struct exec *x, const struct word_head *h)
{
    return peers_rank(x) * h->word.dims[0];
}

/* The loss over all peers' words, in two exchanges. */
static void chunk_loss_of_peers(struct exec *x, const struct chunk *c, tensor dlogits,
                                const struct word_head_acts *a, const struct word_head *h)
{
    tensor maxima = tensor_slice(a->maxima, 0, c->n), sums = tensor_slice(a->sums, 0, c->n);
    tensor labels = tensor_slice(h->labels, c->first, c->n);
    int64_t first = first_word(x, h);
    x->ops->slice_maxima(x, maxima, c->logits, first, h->n_words);
    peers_max(x, maxima);
    x->ops->slice_sums(x, sums, c->logits, maxima, labels, first, h->n_words);
    peers_sum(x, sums);
    x->ops->slice_cross_entropy(x, tensor_slice(a->loss, c->first, c->n),
                                tensor_slice(a->correct, c->first, c->n), dlogits, c->logits, maxima, sums,
                                labels, first, h->n_words, h->scale);
}

static void chunk_loss(struct exec *x, const struct chunk *c, tensor dlogits, const struct word_head_acts *a,
                       const struct word_head *h)
{
    if (peers_size(x) > 1) {
        chunk_loss_of_peers(x, c, dlogits, a, h);
        return;
    }
    x->ops->cross_entropy(x, tensor_slice(a->loss, c->first, c->n), tensor_slice(a->correct, c->first, c->n),
                          dlogits, c->logits, tensor_slice(h->labels, c->first, c->n), h->n_words, h->scale);
}

static void add_sums(struct exec *x, tensor sums, const struct word_head_acts *a)
{
    if (!tensor_is_null(sums)) {
        x->ops->sum(x, tensor_slice(sums, 0, 1), a->loss);
        x->ops->sum(x, tensor_slice(sums, 1, 1), a->correct);
    }
}

/* Computes the logits of all peers' words: each peer computes its slice at its place in `slices`, which are
 * gathered and then copied next to each other. */
static void chunk_forward_of_peers(struct exec *x, struct chunk *c, const struct word_head_acts *a,
                                   const struct word_head *h)
{
    int size = peers_size(x);
    int64_t v = h->word.dims[0];
    tensor slices = tensor_slice(a->slices, 0, size * c->n), all = tensor_slice(a->all_logits, 0, c->n);
    c->logits = tensor_slice(slices, peers_rank(x) * c->n, c->n);
    chunk_forward(x, c, h);
    peers_gather(x, slices);
    for (int r = 0; r < size; r++) {
        x->ops->cast(x, tensor_columns(all, r * v, v), tensor_slice(slices, r * c->n, c->n));
    }
}

void word_head_forward(struct exec *x, const struct word_head_acts *a, const struct word_head *h)
{
    for (int64_t i = 0; i < h->rows.dims[0]; i += rows_of_chunks(a, h)) {
        struct chunk c = chunk_at(a, h, i);
        if (peers_size(x) > 1 && !tensor_is_null(a->all_logits)) { /* else nobody reads all of them */
            chunk_forward_of_peers(x, &c, a, h);
        } else {
            chunk_forward(x, &c, h);
        }
    }
}

void word_head_measure(struct exec *x, tensor sums, const struct word_head_acts *a, const struct word_head *h)
{
    for (int64_t i = 0; i < h->rows.dims[0]; i += rows_of_chunks(a, h)) {
        struct chunk c = chunk_at(a, h, i);
        chunk_forward(x, &c, h);
        chunk_loss(x, &c, NULL_TENSOR, a, h);
    }
    add_sums(x, sums, a);
}

/* Both products read the gradients of the logits before the next chunk takes their memory. */
static void chunk_backward(struct exec *x, const struct word_head_gradients *g, const struct chunk *c,
                           const struct word_head *h)
{
    /* logits = z E^T + b */
    x->ops->linear_backward_weight(x, g->word, g->bias, c->dlogits, c->rows, true);
    x->ops->linear_backward_input(x, tensor_slice(g->rows, c->first, c->n), c->dlogits, h->word, false);
}

void word_head_learn(struct exec *x, tensor sums, const struct word_head_gradients *g,
                     const struct word_head_acts *a, const struct word_head *h)
{
    for (int64_t i = 0; i < h->rows.dims[0]; i += rows_of_chunks(a, h)) {
        struct chunk c = chunk_at(a, h, i);
        chunk_forward(x, &c, h);
        chunk_loss(x, &c, c.dlogits, a, h);
        chunk_backward(x, g, &c, h);
    }
    if (h->rows.dims[0] > 0) {
        peers_sum(x, g->rows);
    }
    add_sums(x, sums, a);
}
