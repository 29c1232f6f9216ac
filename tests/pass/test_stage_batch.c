/* A batch on its way to the device: as it is on a device that records nothing; rounded up to few sizes, with
 * a tail that changes nothing, on one that does. */
#include "pass/stage_batch.h"

#include "core/rng.h"
#include "data/text_batch.h"
#include "dev/graph_cache.h"
#include "test.h"

enum { SEQUENCES = 40, LONGEST = 200, MASKED = 30, BATCHES = 200, PAD = 7 };

static const struct device_graphs recorder;
static const struct device recording = {.name = "recording", .is_host = true, .graphs = &recorder};

static bool is_full(int64_t number)
{
    return number % 4 != 0;
}

/* Sequences of random lengths: every fourth batch has as many as its number says, the others are full. */
static void fill(struct batch *b, int64_t number)
{
    struct rng_stream r = rng_stream(rng_key(3, (uint64_t)number));
    batch_clear(b);
    int64_t n_sequences = is_full(number) ? SEQUENCES : 1 + number / 4 % SEQUENCES;
    for (int64_t i = 0; i < n_sequences; i++) {
        int64_t n = 1 + rng_below(&r, LONGEST), m = rng_below(&r, (uint32_t)(n < MASKED ? n : MASKED));
        int32_t *ids = text_batch_add(b, n, n / 2, 1, (int32_t)i);
        for (int64_t t = 0; t < n; t++) {
            ids[t] = (int32_t)(100 + t);
        }
        for (int64_t k = 0; k < m; k++) {
            text_batch_masked_positions(b)[k] = (int32_t)k;
            text_batch_masked_labels(b)[k] = 50;
        }
        text_batch_take_masked(b, m);
        text_batch_set_span(b, 0, (int32_t)n - 1);
    }
    batch_finish(b, PAD);
}

static const int32_t *values(tensor t)
{
    return t.data;
}

/* The first n values are those of the batch, the others `rest`. */
static void expect_values(const char *what, tensor t, const int32_t *wanted, int64_t n, int32_t rest)
{
    EXPECT(tensor_count(t) >= n, "%s: room for %lld of %lld", what, (long long)tensor_count(t), (long long)n);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        int32_t value = i < n ? wanted[i] : rest;
        EXPECT(values(t)[i] == value, "%s: %d at %lld of %lld, not %d", what, values(t)[i], (long long)i,
               (long long)n, value);
    }
}

/* Each token of a sequence sees each of it, and each of the tail the tail. */
static double pairs_of(const struct batch *b)
{
    double pairs = 0;
    for (int64_t i = 0; i < b->n_streams; i++) {
        for (int32_t t = b->cu_seqlens[i]; t < b->cu_seqlens[i + 1]; t++) {
            pairs += b->cu_seqlens[i + 1] - b->cu_seqlens[i];
        }
    }
    return pairs;
}

static void expect_bounds(const struct stream *s, const struct batch *b, const struct batch *capacity)
{
    const int32_t *cu = values(s->cu_seqlens);
    int64_t n = tensor_count(s->cu_seqlens) - 1;
    EXPECT(memcmp(cu, b->cu_seqlens, (size_t)(b->n_sequences + 1) * sizeof *cu) == 0, "other sequences");
    EXPECT(n >= tensor_count(s->fields[TEXT_PAIR_LABELS]) && cu[n] == tensor_count(s->ids),
           "%d of %lld tokens in sequences", cu[n], (long long)tensor_count(s->ids));
    for (int64_t i = 0; i < n; i++) {
        int64_t length = cu[i + 1] - cu[i];
        EXPECT(length >= 0 && length <= capacity->max_seqlen &&
                   (i < b->n_sequences || length <= BATCH_TOKEN_BUCKET),
               "sequence %lld has %lld tokens", (long long)i, (long long)length);
    }
}

static void expect_sent(struct stage_block *block, void *memory, size_t bytes, struct exec *x,
                        const struct batch *b, const struct batch *capacity)
{
    const struct stage_numbers numbers = {.dropout_key = 5, .loss_scales = {1, 2, 3}, .scalars = {4}};
    const struct stream *s = &block->stream;
    struct arena arena = arena_over(memory, bytes);
    memset(memory, 0xee, bytes);
    stage_batch_carve(block, &arena, &text_batch_layout, capacity);
    stage_batch_send(block, x, b, &numbers);
    EXPECT_OK(x->status);
    EXPECT(*(const uint64_t *)block->dropout_key.data == 5 && tensor_get(block->loss_scales, 2) == 3 &&
               tensor_get(block->scalars, 0) == 4,
           "other numbers");
    EXPECT(s->n_pairs == pairs_of(b), "%g pairs of queries and keys", s->n_pairs);
    expect_values("ids", s->ids, b->ids, b->n_tokens, 0);
    expect_values("types", s->fields[TEXT_TYPES], b->fields[TEXT_TYPES], b->n_tokens, 0);
    expect_values("positions", s->positions, b->positions, b->n_tokens, 0);
    expect_values("row_keys", s->row_keys, b->row_keys, 2 * b->n_tokens, 0);
    expect_values("masked_rows", s->fields[TEXT_MASKED_ROWS], b->fields[TEXT_MASKED_ROWS], b->n_labels, 0);
    expect_values("masked_labels", s->fields[TEXT_MASKED_LABELS], b->fields[TEXT_MASKED_LABELS], b->n_labels,
                  -1);
    expect_values("cls_rows", s->fields[TEXT_CLS_ROWS], b->fields[TEXT_CLS_ROWS], b->n_sequences, 0);
    expect_values("nsp_labels", s->fields[TEXT_PAIR_LABELS], b->fields[TEXT_PAIR_LABELS], b->n_sequences, -1);
    expect_values("span_labels", s->fields[TEXT_SPAN_LABELS], b->fields[TEXT_SPAN_LABELS], 2 * b->n_sequences,
                  -1);
    expect_bounds(s, b, capacity);
}

/* Sends many batches; returns how many sizes the full ones took. */
static int send_all(const struct device *device)
{
    struct batch_limits limits = text_batch_limits(SEQUENCES, LONGEST, MASKED);
    struct batch b, largest = stage_batch_largest(device, limits);
    struct batch seen[BATCHES];
    struct exec x = {.device = device, .layer_index = -1};
    struct stage_block block;
    struct arena measure = arena_measuring();
    int n_seen = 0;
    stage_batch_carve(&block, &measure, &text_batch_layout, &largest);
    void *memory = aligned_alloc(ARENA_ALIGNMENT, measure.used);
    EXPECT(memory != NULL, "out of memory");
    EXPECT_OK(text_batch_init(&b, limits));
    for (int64_t i = 0; i < BATCHES; i++) {
        fill(&b, i);
        struct batch capacity = stage_batch_capacity(device, limits, &b);
        expect_sent(&block, memory, measure.used, &x, &b, &capacity);
        bool known = !is_full(i);
        for (int k = 0; k < n_seen; k++) {
            known |= memcmp(&seen[k], &capacity, sizeof capacity) == 0;
        }
        if (!known) {
            seen[n_seen++] = capacity;
        }
    }
    batch_fini(&b);
    free(memory);
    return n_seen;
}

static struct status nothing_begins(void *self)
{
    (void)self;
    return status_ok();
}

static struct status a_graph(void *self, void **graph)
{
    *graph = self;
    return status_ok();
}

static struct status nothing_runs(void *self, void *graph)
{
    (void)self, (void)graph;
    return status_ok();
}

static void nothing_is_destroyed(void *self, void *graph)
{
    (void)self, (void)graph;
}

/* Micro-batches of few sequences have the most sizes: nearly all of their work is replayed nonetheless, once
 * half of it is over. */
static void small_batches_are_replayed(void)
{
    enum { FEW = 4, LONG = 512, LABELS = 77, MANY = 4000 };
    static const struct graph_runtime runtime = {nothing_begins, a_graph, nothing_runs, nothing_is_destroyed};
    static struct graph_cache cache;
    struct batch_limits limits = text_batch_limits(FEW, LONG, LABELS);
    struct batch b;
    int64_t n_replayed = 0;
    cache = (struct graph_cache){.runtime = &runtime, .self = &cache};
    EXPECT_OK(text_batch_init(&b, limits));
    for (int64_t i = 0; i < MANY; i++) {
        struct rng_stream r = rng_stream(rng_key(4, (uint64_t)i));
        batch_clear(&b);
        for (int32_t k = 0; k < FEW; k++) {
            int64_t n = 1 + rng_below(&r, LONG);
            memset(text_batch_add(&b, n, n / 2, 1, k), 0, (size_t)n * sizeof(int32_t));
            memset(text_batch_masked_positions(&b), 0, LABELS * sizeof(int32_t));
            text_batch_take_masked(&b, n * 15 / 100);
        }
        batch_finish(&b, PAD);
        struct batch c = stage_batch_capacity(&recording, limits, &b);
        const int64_t key[] = {c.n_tokens, c.n_sequences, c.n_streams, c.n_labels, c.max_seqlen};
        enum device_work work;
        EXPECT_OK(graph_cache_begin(&cache, key, sizeof key, &work));
        if (work == DEVICE_WORK_RECORD) {
            EXPECT_OK(graph_cache_end(&cache, false));
        }
        n_replayed += i >= MANY / 2 && work == DEVICE_WORK_REPLAYED;
    }
    EXPECT(n_replayed > 0.95 * MANY / 2, "%lld of %d are replayed", (long long)n_replayed, MANY / 2);
    graph_cache_clear(&cache);
    batch_fini(&b);
}

int main(void)
{
    small_batches_are_replayed();
    int own = send_all(&device_cpu), rounded = send_all(&recording);
    printf("full batches have %d sizes on the cpu and %d where work is recorded\n", own, rounded);
    EXPECT(own > 100 && rounded < GRAPH_CACHE_GRAPHS, "%d and %d sizes", own, rounded);
    return 0;
}
