/* Attention out of pages, as a decoder generates: one query, or a prompt's, over the keys and values of a
 * cache.
 *
 * Pages are read once, where they lie: 32 keys side by side are 32 lanes of scores, so nothing is
 * copied or transposed, and no score needs a sum across lanes.  Bound by memory for one query; a block of
 * queries shares what is read.  The rule: the sums of a query depend on the places of its keys alone.
 * Scores are summed in the order of columns, results in ranges of 256 keys from the first one, and ranges
 * in their order.  So a query has the same bits whatever is computed with it, and whether its keys were
 * cached or came with it. */
#include "ops/cpu/attention_tile.h"
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/tile_vector.h"
#include "ops/workspace.h"

enum {
    PAGE = OPS_CACHE_PAGE,
    RANGE = WORKSPACE_CACHED_RANGE,
    QUERIES = WORKSPACE_CACHED_QUERIES,
    PAIR = 2,                                   /* vectors of scores summed at a time */
    COLUMN_VECTORS = TILE_VECTOR == 16 ? 4 : 2, /* vectors of results: 8 or 16 accumulators of 4 queries */
};

/* ---- the pages of a cache ---- */

struct append_call {
    tensor keys, values, k, v;
    const int32_t *slots;
};

static void append_elements(char *to, int64_t step, const char *from, int64_t n, size_t size)
{
    for (int64_t i = 0; i < n; i++) {
        memcpy(to + (size_t)(i * step) * size, from + (size_t)i * size, size);
    }
}

/* A token. */
static void append_item(const void *context, int64_t item, void *lane)
{
    const struct append_call *c = context;
    int64_t slot = c->slots[item], n_heads = c->k.dims[1], d = c->k.dims[2];
    size_t size = dtype_bytes(c->k.dtype);
    (void)lane;
    for (int64_t n = 0; slot >= 0 && n < n_heads; n++) {
        int64_t row = (slot / PAGE * n_heads + n) * PAGE * d, place = slot % PAGE;
        const char *k =
            (const char *)c->k.data + (size_t)(item * c->k.strides[0] + n * c->k.strides[1]) * size;
        const char *v =
            (const char *)c->v.data + (size_t)(item * c->v.strides[0] + n * c->v.strides[1]) * size;
        if (size == sizeof(float)) {
            append_elements((char *)c->keys.data + (size_t)(row + place) * size, PAGE, k, d, sizeof(float));
        } else {
            append_elements((char *)c->keys.data + (size_t)(row + place) * size, PAGE, k, d,
                            sizeof(uint16_t));
        }
        memcpy((char *)c->values.data + (size_t)(row + place * d) * size, v, (size_t)d * size);
    }
}

static void cpu_append_rows(struct exec *x, tensor keys, tensor values, tensor k, tensor v, tensor slots)
{
    const char *op = "append_rows";
    if (!accept_tensors(x, op, ACCEPT_LIST(k, v, keys, values), NULL, 0) ||
        !accept_pages(x, op, keys, values, k.dims[1], k.dims[2]) ||
        !accept_indices(x, op, "slot", slots, -1, keys.dims[0] / k.dims[1] * PAGE)) {
        return;
    }
    struct append_call c = {keys, values, k, v, slots.data};
    lanes_run(x, op, tensor_count(slots), 0, append_item, &c);
}

/* ---- attention ---- */

struct cached_call {
    const struct attention *a;
    tensor out, q;
    const char *keys, *values;
    enum dtype dtype;
    int64_t n_heads, n_kv_heads, head_size, table_width, n_sequences;
    const int64_t *starts; /* [n_sequences + 1] the first block of queries of each sequence */
    int64_t n_ranges;      /* ranges of the longest sequence */
    float *apart; /* partial results of ranges that are computed apart; NULL: an item has all ranges */
};

/* Up to QUERIES queries of a head. */
struct block {
    int64_t head, kv_head;
    int64_t row, n;             /* rows of the stream */
    int64_t n_before, n_q, n_k; /* queries of the sequence before these, all of them, and its keys */
    int64_t first, n_keys;      /* the first key that the first query sees; keys up to the last one's last */
    const int32_t *pages;       /* pages of the sequence */
    float slope;
};

/* The keys that query i of a block sees. */
static struct attention_span visible(const struct cached_call *c, const struct block *b, int64_t i)
{
    return attention_visible(c->a, b->n_before + i, b->n_q, b->n_k);
}

static struct block block_of(const struct cached_call *c, int64_t index)
{
    int64_t number = index / c->n_heads, head = index % c->n_heads, low = 0, high = c->n_sequences;
    while (high - low > 1) { /* the sequence that the block is of */
        int64_t middle = (low + high) / 2;
        low = c->starts[middle] <= number ? middle : low;
        high = c->starts[middle] <= number ? high : middle;
    }
    const int32_t *q = (const int32_t *)c->a->cu_seqlens_q.data + low,
                  *k = (const int32_t *)c->a->cu_seqlens_kv.data + low;
    int64_t first = (number - c->starts[low]) * QUERIES, n = kernel_min(QUERIES, q[1] - q[0] - first);
    int64_t n_q = q[1] - q[0], n_k = k[1] - k[0];
    return (struct block){
        .head = head,
        .kv_head = head / (c->n_heads / c->n_kv_heads),
        .row = q[0] + first,
        .n = n,
        .n_before = first,
        .n_q = n_q,
        .n_k = n_k,
        .first = attention_visible(c->a, first, n_q, n_k).first,
        .n_keys = attention_visible(c->a, first + n - 1, n_q, n_k).end,
        .pages = (const int32_t *)c->a->block_table.data + low * c->table_width,
        .slope = tensor_is_null(c->a->alibi_slopes) ? 0.0f : ((const float *)c->a->alibi_slopes.data)[head]};
}

static inline tile_vector load(const void *p, int64_t at, const bool is_bf16)
{
    return is_bf16 ? tile_from_bf16((const uint16_t *)p + at) : tile_load((const float *)p + at);
}

/* The data that is read next, prefetched while a page is multiplied: pages lie anywhere, so the processor
 * does not foresee where they begin. */
struct ahead {
    const char *keys, *values; /* keys of one page, values of one */
};

static inline void ask_ahead(const struct ahead *a, int64_t at, const int n)
{
    enum { LINE_BYTES = 64 };
#pragma GCC unroll 2
    for (int i = 0; i < n; i += LINE_BYTES) {
        __builtin_prefetch(a->keys + at + i, 0, 3);
        __builtin_prefetch(a->values + at + i, 0, 2);
    }
}

/* scores[i, first ..] = q_i . k of two vectors of keys of a page, of n queries, a constant. */
static inline __attribute__((always_inline)) void pair_scores(float *scores, const float *q,
                                                              int64_t head_size, const void *keys,
                                                              const struct ahead *ahead, int64_t first,
                                                              const int n, const bool is_bf16)
{
    const int bytes = is_bf16 ? sizeof(uint16_t) : sizeof(float);
    tile_vector sum[QUERIES][PAIR] = {0};
    for (int64_t d = 0; d < head_size; d++) {
        ask_ahead(ahead, (d * PAGE + first) * bytes, PAIR * TILE_VECTOR * bytes);
#pragma GCC unroll 2
        for (int v = 0; v < PAIR; v++) {
            tile_vector k = load(keys, d * PAGE + first + v * TILE_VECTOR, is_bf16);
#pragma GCC unroll 4
            for (int i = 0; i < n; i++) {
                sum[i][v] += q[i * head_size + d] * k;
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
        *tile_at(scores + i * RANGE + first) = sum[i][0];
        *tile_at(scores + i * RANGE + first + TILE_VECTOR) = sum[i][1];
    }
}

static inline __attribute__((always_inline)) void page_scores(float *scores, const float *q,
                                                              int64_t head_size, const void *keys,
                                                              const struct ahead *ahead, const int n,
                                                              const bool is_bf16)
{
    for (int64_t first = 0; first < PAGE; first += PAIR * TILE_VECTOR) {
        pair_scores(scores, q, head_size, keys, ahead, first, n, is_bf16);
    }
}

/* o[i, column ..] = sum_j p[i, j] v[j, column ..] over keys of a range, n_vectors vectors of columns. */
static inline __attribute__((always_inline)) void
add_values(float *o, int64_t o_stride, const float *p, const struct cached_call *c, const char *const *pages,
           struct attention_span keys, int64_t column, const int n, const int n_vectors, const bool is_bf16)
{
    tile_vector sum[QUERIES][COLUMN_VECTORS] = {0};
    for (int64_t j = keys.first; j < keys.end; j++) {
        int64_t row = j % PAGE * c->head_size + column;
#pragma GCC unroll 4
        for (int v = 0; v < n_vectors; v++) {
            tile_vector values = load(pages[j / PAGE], row + v * TILE_VECTOR, is_bf16);
#pragma GCC unroll 4
            for (int i = 0; i < n; i++) {
                sum[i][v] += p[i * RANGE + j] * values;
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
#pragma GCC unroll 4
        for (int v = 0; v < n_vectors; v++) {
            *tile_at(o + i * o_stride + column + v * TILE_VECTOR) = sum[i][v];
        }
    }
}

/* Columns that do not fill a vector, one by one. */
static void add_value_column(float *o, int64_t o_stride, const float *p, const struct cached_call *c,
                             const char *const *pages, struct attention_span keys, int64_t column, int n)
{
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int64_t j = keys.first; j < keys.end; j++) {
            int64_t at = j % PAGE * c->head_size + column;
            sum += p[i * RANGE + j] * (c->dtype == DTYPE_BF16
                                           ? bf16_to_f32(((const uint16_t *)pages[j / PAGE])[at])
                                           : ((const float *)pages[j / PAGE])[at]);
        }
        o[i * o_stride + column] = sum;
    }
}

static inline __attribute__((always_inline)) void
range_values(float *o, int64_t o_stride, const float *p, const struct cached_call *c,
             const char *const *pages, struct attention_span keys, const int n, const bool is_bf16)
{
    int64_t column = 0;
    for (; column + COLUMN_VECTORS * TILE_VECTOR <= c->head_size; column += COLUMN_VECTORS * TILE_VECTOR) {
        add_values(o, o_stride, p, c, pages, keys, column, n, COLUMN_VECTORS, is_bf16);
    }
    for (; column + TILE_VECTOR <= c->head_size; column += TILE_VECTOR) {
        add_values(o, o_stride, p, c, pages, keys, column, n, 1, is_bf16);
    }
    for (; column < c->head_size; column++) {
        add_value_column(o, o_stride, p, c, pages, keys, column, n);
    }
}

static void hide(float *s, struct attention_span seen, float value)
{
    for (int64_t j = 0; j < seen.first; j++) {
        s[j] = value;
    }
    for (int64_t j = seen.end; j < RANGE; j++) {
        s[j] = value;
    }
}

/* s = e^(s - max) of the scores that are seen of a range, key j of which is `behind` places past the query,
 * leaves max and the sum. Slopes times these small distances lose fewer bits than slopes times places, and
 * give the same softmax. */
static void softmax_range(float *s, struct attention_span seen, int64_t behind, float scale, float slope,
                          float *max, float *sum)
{
    float most = -INFINITY;
    tile_vector total = {0};
#pragma omp simd reduction(max : most)
    for (int j = (int)seen.first; j < (int)seen.end; j++) {
        s[j] = scale * s[j] + slope * (float)(behind + j);
        most = s[j] > most ? s[j] : most;
    }
    hide(s, seen, -INFINITY);
    for (int64_t j = 0; j < RANGE; j += TILE_VECTOR) {
        tile_vector e = tile_exp2((tile_load(s + j) - most) * VMATH_LOG2_E);
        *tile_at(s + j) = e;
        total += e;
    }
    hide(s, seen, 0); /* the smallest power of two is no zero */
    *max = most;
    *sum = tile_sum(total);
}

static int64_t page_bytes(const struct cached_call *c)
{
    return PAGE * c->head_size * (int64_t)dtype_bytes(c->dtype);
}

/* Bytes to the page that holds key `key` of a block's sequence, of the head of its keys and values. */
static int64_t place_of(const struct cached_call *c, const struct block *b, int64_t key)
{
    return (b->pages[key / PAGE] * c->n_kv_heads + b->kv_head) * page_bytes(c);
}

/* Partial results [n, n_ranges, head_size + 2] of n queries, a constant, with keys [first, first + n_keys),
 * by way of their scores.  Pages in front of all windows are not read. */
static inline __attribute__((always_inline)) void range_of(float *partial, float *scores, const float *q,
                                                           const struct cached_call *c, const struct block *b,
                                                           int64_t first, int64_t n_keys, const int n,
                                                           const bool is_bf16)
{
    const char *pages[RANGE / PAGE];
    int64_t stride = c->n_ranges * (c->head_size + 2),
            begin = b->first > first ? (b->first - first) / PAGE : 0;
    for (int64_t k = begin; k * PAGE < n_keys; k++) {
        int64_t at = place_of(c, b, first + k * PAGE);
        int64_t behind = place_of(c, b, first + kernel_min((k + 1) * PAGE, n_keys - 1));
        struct ahead ahead = {c->keys + behind, c->values + at};
        pages[k] = ahead.values;
        page_scores(scores + k * PAGE, q, c->head_size, c->keys + at, &ahead, n, is_bf16);
    }
    for (int i = 0; i < n; i++) {
        struct attention_span all = visible(c, b, i);
        struct attention_span seen = {all.first > first ? all.first - first : 0,
                                      kernel_min(all.end - first, n_keys)};
        float *to = partial + i * stride + c->head_size;
        if (seen.end > seen.first) {
            softmax_range(scores + i * RANGE, seen, first + 1 - all.end, (float)c->a->scale, b->slope, to,
                          to + 1);
        } else {
            memset(scores + i * RANGE, 0, RANGE * sizeof *scores);
            to[0] = -INFINITY, to[1] = 0;
        }
    }
    range_values(partial, stride, scores, c, pages, (struct attention_span){begin * PAGE, n_keys}, n,
                 is_bf16);
}

#define RANGE_OF_N(n)                                                                                        \
    c->dtype == DTYPE_BF16 ? range_of(partial, scores, q, c, b, first, n_keys, n, true)                      \
                           : range_of(partial, scores, q, c, b, first, n_keys, n, false)

/* One range of a block. */
static void compute_range(float *partial, float *scores, const float *q, const struct cached_call *c,
                          const struct block *b, int64_t range)
{
    int64_t first = range * RANGE, n_keys = kernel_min(RANGE, b->n_keys - first);
    if (b->n == 1) {
        RANGE_OF_N(1);
    } else if (b->n == 2) {
        RANGE_OF_N(2);
    } else if (b->n == 3) {
        RANGE_OF_N(3);
    } else {
        RANGE_OF_N(4);
    }
}

static void load_queries(float *q, const struct cached_call *c, const struct block *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        int64_t at = (b->row + i) * c->q.strides[0] + b->head * c->q.strides[1];
        if (c->dtype == DTYPE_BF16) {
            rows_from_bf16(q + i * c->head_size, (const uint16_t *)c->q.data + at, c->head_size);
        } else {
            memcpy(q + i * c->head_size, (const float *)c->q.data + at, (size_t)c->head_size * sizeof *q);
        }
    }
}

static void store_row(const struct cached_call *c, int64_t row, int64_t head, const float *o, float factor)
{
    int64_t at = row * c->out.strides[0] + head * c->out.strides[1];
    for (int64_t i = 0; i < c->head_size; i++) {
        if (c->dtype == DTYPE_BF16) {
            ((uint16_t *)c->out.data)[at + i] = bf16_from_f32(factor * o[i]);
        } else {
            ((float *)c->out.data)[at + i] = factor * o[i];
        }
    }
}

/* Adds the partial results of the ranges that a query sees, in their order, into the first. */
static void join(const struct cached_call *c, const struct block *b, int64_t i, float *partial)
{
    struct attention_span seen = visible(c, b, i);
    int64_t size = c->head_size + 2, begin = seen.first / RANGE, n = kernel_blocks(seen.end, RANGE);
    float most = -INFINITY, sum = 0;
    for (int64_t r = begin; r < n; r++) {
        float max = partial[r * size + c->head_size];
        most = max > most ? max : most;
    }
    for (int64_t r = begin; r < n; r++) {
        float *from = partial + r * size, factor = vmath_exp(from[c->head_size] - most);
        sum += factor * from[c->head_size + 1];
        for (int64_t d = 0; d < c->head_size; d++) {
            partial[d] = r == begin ? factor * from[d] : partial[d] + factor * from[d];
        }
    }
    if (n == 0) {
        memset(partial, 0, (size_t)c->head_size * sizeof *partial);
    }
    store_row(c, b->row + i, b->head, partial, n == 0 ? 0.0f : 1 / sum);
}

/* The lane: queries, scores, and partial results unless they are kept apart. */
static size_t lane_bytes(const struct cached_call *c)
{
    int64_t partial = c->apart == NULL ? QUERIES * c->n_ranges * (c->head_size + 2) : 0;
    return (size_t)(QUERIES * (c->head_size + RANGE) + partial) * sizeof(float);
}

/* Computes all ranges of a block, and joins them. */
static void whole_item(const void *context, int64_t item, void *lane)
{
    const struct cached_call *c = context;
    struct block b = block_of(c, item);
    float *scores = lane, *q = scores + QUERIES * RANGE, *partial = q + QUERIES * c->head_size;
    load_queries(q, c, &b);
    for (int64_t r = b.first / RANGE; r * RANGE < b.n_keys; r++) {
        compute_range(partial + r * (c->head_size + 2), scores, q, c, &b, r);
    }
    for (int64_t i = 0; i < b.n; i++) {
        join(c, &b, i, partial + i * c->n_ranges * (c->head_size + 2));
    }
}

/* The place of the partial results of a block that are kept apart. */
static float *apart_of(const struct cached_call *c, const struct block *b)
{
    return c->apart + (b->row * c->n_heads + b->head * b->n) * c->n_ranges * (c->head_size + 2);
}

static void range_item(const void *context, int64_t item, void *lane)
{
    const struct cached_call *c = context;
    struct block b = block_of(c, item / c->n_ranges);
    float *scores = lane, *q = scores + QUERIES * RANGE;
    int64_t range = item % c->n_ranges;
    if (range >= b.first / RANGE && range * RANGE < b.n_keys) {
        load_queries(q, c, &b);
        compute_range(apart_of(c, &b) + range * (c->head_size + 2), scores, q, c, &b, range);
    }
}

static void join_item(const void *context, int64_t item, void *lane)
{
    const struct cached_call *c = context;
    struct block b = block_of(c, item);
    (void)lane;
    for (int64_t i = 0; i < b.n; i++) {
        join(c, &b, i, apart_of(c, &b) + i * c->n_ranges * (c->head_size + 2));
    }
}

static bool accept_cached(struct exec *x, const char *op, const struct cached_call *c, tensor keys,
                          tensor values)
{
    const struct attention *a = c->a;
    if (!accept_tensors(x, op, ACCEPT_LIST(c->q, c->out, keys, values), ACCEPT_LIST(a->alibi_slopes)) ||
        !accept_pages(x, op, keys, values, c->n_kv_heads, c->head_size) ||
        !accept_indices(x, op, "query boundary", a->cu_seqlens_q, 0, c->q.dims[0] + 1) ||
        !accept_indices(x, op, "key boundary", a->cu_seqlens_kv, 0, INT32_MAX) ||
        !accept_indices(x, op, "page", a->block_table, 0, keys.dims[0] / c->n_kv_heads)) {
        return false;
    }
    const int32_t *q = a->cu_seqlens_q.data, *k = a->cu_seqlens_kv.data;
    int64_t most = kernel_min(c->table_width * PAGE, a->max_seqlen_kv);
    for (int64_t b = 0; b < c->n_sequences; b++) {
        if (q[b + 1] < q[b] || k[b + 1] < k[b] || k[b + 1] - k[b] > most) {
            exec_fail(x, STATUS_DATA, op, "sequence %lld has %d queries and %d keys, of at most %lld keys",
                      (long long)b, q[b + 1] - q[b], k[b + 1] - k[b], (long long)most);
            return false;
        }
    }
    return true;
}

/* Lays out the blocks of queries; returns their number. */
static int64_t lay_out(struct cached_call *c, int64_t *starts)
{
    const int32_t *q = c->a->cu_seqlens_q.data;
    starts[0] = 0;
    for (int64_t b = 0; b < c->n_sequences; b++) {
        starts[b + 1] = starts[b] + kernel_blocks(q[b + 1] - q[b], QUERIES);
    }
    c->starts = starts;
    return starts[c->n_sequences];
}

static void cpu_attention_cached(struct exec *x, tensor out, tensor q, tensor keys, tensor values,
                                 struct attention a)
{
    const char *op = "attention_cached";
    struct cached_call c = {.a = &a,
                            .out = out,
                            .q = q,
                            .keys = keys.data,
                            .values = values.data,
                            .dtype = q.dtype,
                            .n_heads = q.dims[1],
                            .n_kv_heads = a.n_kv_heads > 0 ? a.n_kv_heads : q.dims[1],
                            .head_size = q.dims[2],
                            .table_width = tensor_cols(a.block_table),
                            .n_sequences = tensor_count(a.cu_seqlens_q) - 1,
                            .n_ranges = workspace_cached_ranges(a.max_seqlen_kv)};
    if (!accept_cached(x, op, &c, keys, values)) {
        return;
    }
    char *scratch = exec_scratch(
        x, workspace_attention_cached(q.dims[0], c.n_sequences, c.n_heads, c.head_size, a.max_seqlen_kv));
    int64_t items = lay_out(&c, (int64_t *)scratch) * c.n_heads;
    attention_clear_outside(out, a.cu_seqlens_q);
    if (items > WORKSPACE_CACHED_APART || c.n_ranges == 1) {
        lanes_run(x, op, items, lane_bytes(&c), whole_item, &c);
        return;
    }
    c.apart = (float *)(scratch + workspace_cached_starts(c.n_sequences));
    lanes_run(x, op, items * c.n_ranges, lane_bytes(&c), range_item, &c);
    lanes_run(x, op, items, 0, join_item, &c);
}

KERNEL_FILL(attention_cached, struct ops)
{
    t->append_rows = cpu_append_rows;
    t->attention_cached = cpu_attention_cached;
}
