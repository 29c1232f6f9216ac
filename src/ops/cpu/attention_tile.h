/* attention_tile: code shared by the forward and the backward of attention.  A work item is one head of one
 * sequence.  Its rows are copied into padded tiles in the lane, and queries are processed in blocks, so the
 * scores of a block stay in the cache.  Tiles are fp32, or pairs of bf16 (tile_product.h) if the tensors are
 * bf16 and the processor can multiply them; scores, their softmax and all sums are always fp32. */
#ifndef KILN_OPS_CPU_ATTENTION_TILE_H
#define KILN_OPS_CPU_ATTENTION_TILE_H

#include "ops/cpu/dropout_bits.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/tile_product.h"

struct attention_call {
    const struct attention *a;
    tensor out, lse, q, k, v;
    tensor dq, dk, dv, dout;           /* backward only */
    int64_t n_heads, head_size, width; /* width: head_size padded to full tiles */
    int64_t group;                     /* heads that share keys and values */
    int64_t row_words;                 /* width in words, for pairs along the row */
    bool pairs;                        /* multiplied tiles consist of pairs */
    uint64_t key;
    uint32_t threshold;
    float keep_scale;
};

/* One head of one sequence. */
struct attention_head {
    int64_t index, kv_index; /* its number, and that of its keys and values */
    int64_t q0, n_q, k0, n_k;
    int64_t padded_k; /* n_k padded to full tiles */
    int64_t stride;   /* stride of scores and of transposed keys */
    float slope;
};

/* Checks dtypes and sequence boundaries; false, with the reason in the exec, if the kernels would read
 * outside. */
static inline bool attention_accept(struct exec *x, const char *op, const struct attention_call *c)
{
    const struct attention *a = c->a;
    if (!accept_tensors(x, op, ACCEPT_LIST(c->q, c->k, c->v, c->out, c->dq, c->dk, c->dv, c->dout),
                        ACCEPT_LIST(c->lse, a->alibi_slopes)) ||
        !accept_indices(x, op, "query boundary", a->cu_seqlens_q, 0, c->q.dims[0] + 1) ||
        !accept_indices(x, op, "key boundary", a->cu_seqlens_kv, 0, c->k.dims[0] + 1) ||
        !accept_indices(x, op, "row key", a->row_keys, INT32_MIN, INT64_MAX)) {
        return false;
    }
    if (!tensor_is_null(a->block_table)) {
        exec_fail(x, STATUS_USAGE, op,
                  "attention reads the stream; what reads keys through a block table is attention_cached");
        return false;
    }
    if (!(a->scale > 0)) {
        exec_fail(x, STATUS_USAGE, op, "the scale of the scores must be positive, but is %g", a->scale);
        return false;
    }
    const int32_t *q = a->cu_seqlens_q.data, *k = a->cu_seqlens_kv.data;
    for (int64_t b = 0; b + 1 < tensor_count(a->cu_seqlens_q); b++) {
        if (q[b + 1] < q[b] || k[b + 1] < k[b]) {
            exec_fail(x, STATUS_DATA, op, "sequence %lld ends before it begins", (long long)b);
            return false;
        }
    }
    return true;
}

/* n elements along the inner dimension of a product, in words. */
static inline int64_t attention_words(const struct attention_call *c, int64_t n)
{
    return c->pairs ? kernel_blocks(n, 2) : n;
}

static inline void attention_prepare(struct attention_call *c, const struct exec *x)
{
    c->n_heads = c->q.dims[1];
    c->group = c->n_heads / c->k.dims[1];
    c->head_size = c->q.dims[2];
    c->width = kernel_round_up(c->head_size, TILE_COLS);
    c->pairs = TILE_PAIRS && c->q.dtype == DTYPE_BF16;
    c->row_words = kernel_round_up(attention_words(c, c->head_size), TILE_COLS);
    c->key = exec_dropout_key(x);
    c->threshold = dropout_threshold(c->a->dropout);
    c->keep_scale = (float)dropout_scale(c->a->dropout);
}

static inline int64_t attention_items(const struct attention_call *c)
{
    return (tensor_count(c->a->cu_seqlens_q) - 1) * c->n_heads;
}

/* The stride of scores: an odd number of cache lines, so that columns of long rows do not all fall into the
 * same sets of the cache. */
static inline int64_t attention_stride(int64_t padded_k)
{
    return (padded_k / TILE_COLS | 1) * TILE_COLS;
}

/* The longest sequence of keys, padded: what the lanes are sized for. */
static inline int64_t attention_max_padded_k(const struct attention_call *c)
{
    const int32_t *k = c->a->cu_seqlens_kv.data;
    int64_t max = 0;
    for (int64_t b = 0; b + 1 < tensor_count(c->a->cu_seqlens_kv); b++) {
        max = k[b + 1] - k[b] > max ? k[b + 1] - k[b] : max;
    }
    return kernel_round_up(max, TILE_COLS);
}

/* Head `item` of all sequences. */
static inline struct attention_head attention_head_of(const struct attention_call *c, int64_t item)
{
    const struct attention *a = c->a;
    const int32_t *q = a->cu_seqlens_q.data, *k = a->cu_seqlens_kv.data;
    int64_t b = item / c->n_heads, index = item % c->n_heads;
    struct attention_head h = {index, index / c->group, q[b], q[b + 1] - q[b], k[b], k[b + 1] - k[b], 0, 0,
                               0};
    h.padded_k = kernel_round_up(h.n_k, TILE_COLS);
    h.stride = attention_stride(h.padded_k);
    h.slope = tensor_is_null(a->alibi_slopes) ? 0.0f : ((const float *)a->alibi_slopes.data)[index];
    return h;
}

/* Keys [first, end) of a sequence. */
struct attention_span {
    int64_t first, end;
};

/* The keys that query i of n_q sees, of n_k. */
static inline struct attention_span attention_visible(const struct attention *a, int64_t i, int64_t n_q,
                                                      int64_t n_k)
{
    int64_t place = i + n_k - n_q, w = a->window, end = a->causal ? place + 1 : n_k;
    end = w > 0 ? kernel_min(end, place + w + 1) : end;
    end = end < 0 ? 0 : end;
    return (struct attention_span){w > 0 && place > w ? kernel_min(place - w, end) : 0, end};
}

/* The keys that some of the queries [i, i + n) see, in full tiles: blocks outside are skipped. */
static inline struct attention_span attention_seen(const struct attention_call *c,
                                                   const struct attention_head *h, int64_t i, int64_t n)
{
    int64_t first = attention_visible(c->a, i, h->n_q, h->n_k).first;
    int64_t end = attention_visible(c->a, i + n - 1, h->n_q, h->n_k).end;
    return (struct attention_span){first / TILE_COLS * TILE_COLS, kernel_round_up(end, TILE_COLS)};
}

/* Adds the slope to a row of scores, in units of the scale, and gives keys of the computed ones that are not
 * visible no probability. */
static inline void attention_mask(float *s, struct attention_span visible, struct attention_span computed,
                                  float scale, float slope)
{
    if (slope != 0.0f) {
#pragma omp simd
        for (int j = (int)visible.first; j < (int)visible.end; j++) {
            s[j] += slope / scale * (float)j;
        }
    }
    for (int64_t j = computed.first; j < visible.first; j++) {
        s[j] = -INFINITY;
    }
    for (int64_t j = visible.end; j < computed.end; j++) {
        s[j] = -INFINITY;
    }
}

static inline const void *attention_row(tensor t, int64_t head, int64_t row)
{
    return (const char *)t.data + (row * t.strides[0] + head * t.strides[1]) * (int64_t)dtype_bytes(t.dtype);
}

/* Prefetches rows: those of a head are far apart, so the processor does not predict them. */
enum { ROWS_AHEAD = 16 };

static inline void attention_ask_for(tensor t, int64_t head, int64_t row)
{
    const char *bytes = attention_row(t, head, row);
    __builtin_prefetch(bytes);
    __builtin_prefetch(bytes + 64);
}

/* Heads are short: a call of memcpy per row would take longer than the copy itself. */
static inline void attention_copy(char *restrict out, const char *restrict in, size_t bytes)
{
    enum { PIECE = 32 };
    size_t i = 0;
    for (; i + PIECE <= bytes; i += PIECE) {
        memcpy(out + i, in + i, PIECE);
    }
    for (; i < bytes; i++) {
        out[i] = in[i];
    }
}

/* Copies rows [first, first + n) of a head into [padded_rows, c->row_words] words, with pairs along the rows;
 * zero beyond n rows and head_size columns. */
static inline void attention_load_along(float *restrict out, const struct attention_call *c, tensor t,
                                        int64_t head, int64_t first, int64_t n, int64_t padded_rows)
{
    int64_t size = t.dims[2], stride = c->row_words;
    size_t in_place = (size_t)size * (t.dtype == DTYPE_F32 ? sizeof(float) : sizeof(uint16_t));
    for (int64_t r = 0; r < n; r++) {
        float *row = out + r * stride;
        attention_ask_for(t, head, first + kernel_min(r + ROWS_AHEAD, n - 1));
        size_t used = c->pairs ? in_place : (size_t)size * sizeof(float);
        if (c->pairs || t.dtype == DTYPE_F32) {
            attention_copy((char *)row, attention_row(t, head, first + r), used);
        } else {
            rows_from_bf16(row, attention_row(t, head, first + r), size);
        }
        memset((char *)row + used, 0, (size_t)stride * sizeof(float) - used);
    }
    memset(out + n * stride, 0, (size_t)((padded_rows - n) * stride) * sizeof(float));
}

/* Copies an even number of rows, loaded with pairs along them, into [rows / 2, c->width] words with pairs
 * across the rows. */
static inline void attention_pair_across(float *restrict out, const struct attention_call *c,
                                         const float *restrict along, int64_t rows)
{
    for (int64_t r = 0; r < rows; r += 2) {
        const uint16_t *a = (const uint16_t *)(along + r * c->row_words), *b = a + 2 * c->row_words;
        uint32_t *words = (uint32_t *)(out + r / 2 * c->width);
        for (int64_t i = 0; i < c->width; i++) {
            words[i] = a[i] | (uint32_t)b[i] << 16;
        }
    }
}

/* Stores `factor` times the first head_size columns of a row. */
static inline void attention_store(tensor t, int64_t head, int64_t row, const float *restrict in,
                                   float factor)
{
    int64_t size = t.dims[2], offset = row * t.strides[0] + head * t.strides[1];
    if (t.dtype == DTYPE_F32) {
        float *out = (float *)t.data + offset;
        for (int64_t i = 0; i < size; i++) {
            out[i] = factor * in[i];
        }
    } else {
        uint16_t *out = (uint16_t *)t.data + offset;
        for (int64_t i = 0; i < size; i++) {
            out[i] = bf16_from_f32(factor * in[i]);
        }
    }
}

/* The 16-bit numbers of the probabilities of `rows` queries from row `first` of the stream and the computed
 * keys, side by side; the stride is attention_bits_stride. */
static inline int64_t attention_bits_stride(const struct attention_head *h, struct attention_span computed)
{
    return kernel_round_up(kernel_min(computed.end, h->n_k) - computed.first, DROPOUT_COLUMNS);
}

static inline void attention_draw(uint16_t *bits, const struct attention_call *c,
                                  const struct attention_head *h, struct attention_span computed,
                                  int64_t first, int64_t rows)
{
    int64_t column = (c->a->first_head + h->index) * 65536 + computed.first;
    struct dropout_bits d = {c->key, c->a->dropout.site, (uint32_t)(column / DROPOUT_COLUMNS),
                             attention_bits_stride(h, computed) / DROPOUT_COLUMNS,
                             (const int32_t *)c->a->row_keys.data + 2 * first};
    dropout_bits(bits, d, rows);
}

/* Rows of the stream that belong to no sequence get zeros. */
static inline void attention_clear_outside(tensor t, tensor cu_seqlens)
{
    const int32_t *cu = cu_seqlens.data;
    int64_t begin = cu[0], end = cu[tensor_count(cu_seqlens) - 1];
    for (int64_t row = begin > 0 ? 0 : end; row < t.dims[0]; row = row + 1 == begin ? end : row + 1) {
        for (int64_t head = 0; head < t.dims[1]; head++) {
            memset((char *)t.data +
                       (row * t.strides[0] + head * t.strides[1]) * (int64_t)dtype_bytes(t.dtype),
                   0, (size_t)t.dims[2] * dtype_bytes(t.dtype));
        }
    }
}

#endif
