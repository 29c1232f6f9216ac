#include "pass/stage_batch.h"

#include "core/integers.h"
#include "dev/queue.h"

#include <string.h>

/* Approximate numbers of different sizes of streams, of selected rows and of numbers of sequences below the
 * limits, on devices that record work; the sizes mostly grow together.  Tokens cost most, and selected rows
 * little. */
enum { TOKEN_SIZES = 64, LABEL_SIZES = 8, SEQUENCE_SIZES = 8, TAIL_PIECE = BATCH_TOKEN_BUCKET };

/* The distance of sizes: a multiple of `least`, so that there are about `n` up to the limit. */
static int64_t bucket_of(int64_t limit, int64_t n, int64_t least)
{
    return limit > 0 ? int_round_up((limit + n - 1) / n, least) : least;
}

/* The longest length, doubled from that of a piece of the tail to the limit: it only bounds the number of
 * attention's tiles, and blocks without a row end at once. */
static int64_t longest_of(int64_t limit, int64_t longest)
{
    int64_t doubled = TAIL_PIECE;
    while (doubled < longest) {
        doubled *= 2;
    }
    return int_smaller(doubled, int_round_up(limit, BATCH_TOKEN_BUCKET));
}

struct batch stage_batch_capacity(const struct device *device, struct batch_limits limits,
                                  const struct batch *batch)
{
    if (device->graphs == NULL) {
        struct batch own = {.n_tokens = batch->n_tokens,
                            .n_sequences = batch->n_sequences,
                            .n_streams = batch->n_streams,
                            .n_labels = batch->n_labels,
                            .max_seqlen = batch->max_seqlen,
                            .max_keys = batch->max_keys,
                            .limits = limits};
        return own;
    }
    CHECK(batch->n_tokens <= limits.n_tokens && batch->n_sequences <= limits.n_sequences &&
              batch->n_labels <= limits.n_labels,
          "a batch of %lld tokens, %lld sequences and %lld labels, above the limits",
          (long long)batch->n_tokens, (long long)batch->n_sequences, (long long)batch->n_labels);
    int64_t tokens = bucket_of(limits.n_tokens, TOKEN_SIZES, BATCH_TOKEN_BUCKET);
    int64_t labels = bucket_of(limits.n_labels, LABEL_SIZES, BATCH_LABEL_BUCKET);
    int64_t sequences = bucket_of(limits.n_sequences, SEQUENCE_SIZES, 1);
    sequences = int_smaller(int_round_up(batch->n_sequences, sequences), limits.n_sequences);
    return (struct batch){
        .n_tokens = int_smaller(int_round_up(batch->n_tokens, tokens), limits.n_tokens),
        .n_sequences = sequences,
        .n_streams = sequences + tokens / TAIL_PIECE, /* the tail is shorter than the bucket */
        .n_labels = int_smaller(int_round_up(batch->n_labels, labels), limits.n_labels),
        .max_seqlen = longest_of(limits.max_seqlen, batch->max_seqlen),
        .max_keys = limits.n_pages > 0 ? longest_of(limits.max_seqlen, batch->max_keys) : 0,
        .limits = limits,
    };
}

struct batch stage_batch_largest(const struct device *device, struct batch_limits limits)
{
    struct batch b = {
        .n_tokens = limits.n_tokens,
        .n_sequences = limits.n_sequences,
        .n_streams = limits.n_sequences,
        .n_labels = limits.n_labels,
        .max_seqlen = limits.max_seqlen,
        .max_keys = limits.n_pages > 0 ? limits.max_seqlen : 0,
    };
    return stage_batch_capacity(device, limits, &b);
}

/* Carves the arrays of a batch that a cache of keys and values needs. */
static void carve_cached(struct stream *s, struct arena *arena, const struct batch *capacity)
{
    s->slots = s->cu_keys = s->pages = NULL_TENSOR;
    s->max_keys = capacity->max_keys;
    if (capacity->limits.n_pages > 0) {
        s->slots = arena_carve_1d(arena, DTYPE_I32, capacity->n_tokens);
        s->cu_keys = arena_carve_1d(arena, DTYPE_I32, capacity->n_streams + 1);
        s->pages = arena_carve_2d(arena, DTYPE_I32, capacity->n_streams, capacity->limits.n_pages);
    }
}

void stage_batch_carve(struct stage_block *block, struct arena *arena, const struct batch_layout *layout,
                       const struct batch *capacity)
{
    struct stream *s = &block->stream;
    CHECK(arena->used == 0, "%zu bytes before the block of a batch", arena->used);
    block->dropout_key = arena_carve_1d(arena, DTYPE_I64, 1);
    block->loss_scales = arena_carve_1d(arena, DTYPE_F64, MODEL_MOST_SUMS);
    block->scalars = arena_carve_1d(arena, DTYPE_F64, OPTIM_N_SCALARS);
    block->memory = block->dropout_key.data;
    block->numbers_bytes = arena->used;
    s->ids = arena_carve_1d(arena, DTYPE_I32, capacity->n_tokens);
    s->positions = arena_carve_1d(arena, DTYPE_I32, capacity->n_tokens);
    s->row_keys = arena_carve_2d(arena, DTYPE_I32, capacity->n_tokens, 2);
    s->cu_seqlens = arena_carve_1d(arena, DTYPE_I32, capacity->n_streams + 1);
    for (int i = 0; i < layout->n_fields; i++) {
        const struct batch_field *f = &layout->fields[i];
        int64_t rows = batch_all_rows(capacity, f->rows);
        s->fields[i] = f->width == 0   ? NULL_TENSOR
                       : f->width == 1 ? arena_carve_1d(arena, f->dtype, rows)
                                       : arena_carve_2d(arena, f->dtype, rows, f->width);
    }
    carve_cached(s, arena, capacity);
    s->max_seqlen = capacity->max_seqlen;
    s->n_pairs = 0;
    block->bytes = arena->used;
}

/* The block where the host writes it. */
struct image {
    const struct stage_block *block;
    char *memory;
};

static void *place_of(const struct image *image, tensor t)
{
    return image->memory + ((const char *)t.data - (const char *)image->block->memory);
}

static void put_numbers(const struct image *image, const struct stage_numbers *n)
{
    const struct stage_block *b = image->block;
    memcpy(place_of(image, b->dropout_key), &n->dropout_key, sizeof n->dropout_key);
    memcpy(place_of(image, b->loss_scales), n->loss_scales, sizeof n->loss_scales);
    memcpy(place_of(image, b->scalars), n->scalars, sizeof n->scalars);
}

/* The first n elements of t, and `rest` in all after them. */
static void put(const struct image *image, tensor t, const int32_t *from, int64_t n, int32_t rest)
{
    int32_t *to = place_of(image, t);
    if (n > 0) {
        memcpy(to, from, (size_t)n * sizeof *to);
    }
    for (int64_t i = n; i < tensor_count(t); i++) {
        to[i] = rest;
    }
}

/* The bounds of the real sequences, of the pieces of the tail, and of sequences without tokens. */
static void put_bounds(const struct image *image, const struct batch *b)
{
    const struct stream *s = &image->block->stream;
    int32_t *to = place_of(image, s->cu_seqlens), end = (int32_t)tensor_count(s->ids);
    memcpy(to, b->cu_seqlens, (size_t)(b->n_sequences + 1) * sizeof *to);
    for (int64_t i = b->n_sequences + 1; i < tensor_count(s->cu_seqlens); i++) {
        to[i] = end - to[i - 1] > TAIL_PIECE ? to[i - 1] + TAIL_PIECE : end;
    }
}

static void put_batch(const struct image *image, const struct batch *b)
{
    const struct stream *s = &image->block->stream;
    put(image, s->ids, b->ids, b->n_tokens, 0); /* any id would do: nothing reads the results of the tail */
    put(image, s->positions, b->positions, b->n_tokens, 0);
    put(image, s->row_keys, b->row_keys, 2 * b->n_tokens, 0);
    put_bounds(image, b);
    for (int i = 0; i < b->layout->n_fields; i++) {
        const struct batch_field *f = &b->layout->fields[i];
        if (f->width > 0) {
            put(image, s->fields[i], b->fields[i], batch_all_rows(b, f->rows) * f->width, f->nothing);
        }
    }
    if (!tensor_is_null(s->slots)) { /* the tail has no keys */
        put(image, s->slots, b->slots, b->n_tokens, -1);
        put(image, s->cu_keys, b->cu_keys, b->n_sequences + 1, b->cu_keys[b->n_sequences]);
        put(image, s->pages, b->pages, b->n_sequences * b->limits.n_pages, 0);
    }
}

static double pairs_of(const struct batch *b)
{
    double pairs = 0;
    for (int64_t i = 0; i < b->n_streams; i++) {
        double n = b->cu_seqlens[i + 1] - b->cu_seqlens[i];
        pairs += n * (b->limits.n_pages > 0 ? b->cu_keys[i + 1] - b->cu_keys[i] : n);
    }
    return pairs;
}

void stage_batch_send(struct stage_block *block, struct exec *x, const struct batch *batch,
                      const struct stage_numbers *numbers)
{
    size_t bytes = batch == NULL ? block->numbers_bytes : block->bytes;
    block->stream.n_pairs = batch == NULL ? block->stream.n_pairs : pairs_of(batch);
    if (block->memory == NULL) {
        return; /* planning */
    }
    struct image image = {block, queue_stage(x, block->memory, bytes)};
    if (image.memory == NULL) {
        return;
    }
    put_numbers(&image, numbers);
    if (batch != NULL) {
        put_batch(&image, batch);
    }
    queue_send(x, block->memory, image.memory, bytes);
}
