#include "nn/word_head.h"

#include "core/integers.h"
#include "ops/ops.h"

enum { CHUNK_BYTES = 64 << 20, ROW_GRAIN = 16 };

/* All chunks have nearly one size, because a last chunk of a few rows would be a slow product. */
int64_t word_head_chunk(int64_t n_rows, int64_t vocab_rows)
{
    int64_t most = int_larger(CHUNK_BYTES / (vocab_rows * (int64_t)sizeof(float)), 1);
    return int_smaller(n_rows, most < ROW_GRAIN ? most : most / ROW_GRAIN * ROW_GRAIN);
}

void word_head_carve(struct word_head_acts *a, struct arena *arena, enum dtype dtype, int64_t n_rows,
                     int64_t vocab_rows, int64_t chunk)
{
    enum dtype vector = dtype_of_vectors(dtype);
    int64_t c = chunk < n_rows ? chunk : n_rows;
    a->logits = arena_carve_2d(arena, vector, c, vocab_rows);
    a->dlogits = dtype == vector ? a->logits : arena_carve_2d(arena, dtype, c, vocab_rows);
    a->loss = arena_carve_1d(arena, vector, n_rows);
    a->correct = arena_carve_1d(arena, DTYPE_I32, n_rows);
}

/* Rows of each chunk but the last: nearly equal parts that fit the room, so that no product is small. */
static int64_t rows_of_chunks(const struct word_head_acts *a, const struct word_head *h)
{
    int64_t n = h->rows.dims[0], room = int_larger(a->logits.dims[0], 1);
    int64_t n_chunks = int_larger((n + room - 1) / room, 1);
    return int_smaller(int_round_up((n + n_chunks - 1) / n_chunks, ROW_GRAIN), room);
}

/* Rows [first, first + n) of a pass, and their room. */
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

static void chunk_loss(struct exec *x, const struct chunk *c, tensor dlogits, const struct word_head_acts *a,
                       const struct word_head *h)
{
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

void word_head_forward(struct exec *x, const struct word_head_acts *a, const struct word_head *h)
{
    for (int64_t i = 0; i < h->rows.dims[0]; i += rows_of_chunks(a, h)) {
        struct chunk c = chunk_at(a, h, i);
        chunk_forward(x, &c, h);
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
    add_sums(x, sums, a);
}
