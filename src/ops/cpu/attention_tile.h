/* attention_tile: what the forward and the backward of attention share.  An item is one head of one sequence;
 * its rows are converted to padded fp32 tiles in the lane, and queries pass through in blocks, so the scores
 * of a block stay in the cache. */
#ifndef KILN_OPS_CPU_ATTENTION_TILE_H
#define KILN_OPS_CPU_ATTENTION_TILE_H

#include "ops/cpu/dropout_bits.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/tile_product.h"
#include "ops/cpu/vmath.h"

struct attention_call {
    const struct attention *a;
    tensor out, lse, q, k, v;
    tensor dq, dk, dv, dout;           /* backward only */
    int64_t n_heads, head_size, width; /* width: head_size padded to whole tiles */
    uint64_t key;
    uint32_t threshold;
    float keep_scale;
};

/* One head of one sequence. */
struct attention_head {
    int64_t index, q0, n_q, k0, n_k;
    int64_t padded_k; /* n_k padded to whole tiles: the stride of scores and of transposed keys */
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
                  "the cpu reads keys and values from the stream, not through a block table");
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

static inline void attention_prepare(struct attention_call *c, const struct exec *x)
{
    c->n_heads = c->q.dims[1];
    c->head_size = c->q.dims[2];
    c->width = kernel_round_up(c->head_size, TILE_COLS);
    c->key = x->dropout_key;
    c->threshold = dropout_threshold(c->a->dropout);
    c->keep_scale = (float)dropout_scale(c->a->dropout);
}

static inline int64_t attention_items(const struct attention_call *c)
{
    return (tensor_count(c->a->cu_seqlens_q) - 1) * c->n_heads;
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

static inline struct attention_head attention_head_of(const struct attention_call *c, int64_t item)
{
    const struct attention *a = c->a;
    const int32_t *q = a->cu_seqlens_q.data, *k = a->cu_seqlens_kv.data;
    int64_t b = item / c->n_heads, index = item % c->n_heads;
    struct attention_head h = {index, q[b], q[b + 1] - q[b], k[b], k[b + 1] - k[b], 0, 0};
    h.padded_k = kernel_round_up(h.n_k, TILE_COLS);
    h.slope = tensor_is_null(a->alibi_slopes) ? 0.0f : ((const float *)a->alibi_slopes.data)[index];
    return h;
}

/* How many keys query i of the sequence sees: the first so many. */
static inline int64_t attention_visible(const struct attention_call *c, const struct attention_head *h,
                                        int64_t i)
{
    int64_t n = h->n_k - (c->a->causal ? h->n_q - 1 - i : 0);
    return n < 0 ? 0 : n;
}

/* Rows [first, first + n) of a head as fp32 [padded_rows, stride]; zero beyond n rows and head_size
 * columns. */
static inline void attention_load(float *restrict out, int64_t stride, tensor t, int64_t head, int64_t first,
                                  int64_t n, int64_t padded_rows)
{
    int64_t size = t.dims[2];
    for (int64_t r = 0; r < n; r++) {
        int64_t offset = (first + r) * t.strides[0] + head * t.strides[1];
        if (t.dtype == DTYPE_F32) {
            memcpy(out + r * stride, (const float *)t.data + offset, (size_t)size * sizeof(float));
        } else {
            rows_from_bf16(out + r * stride, (const uint16_t *)t.data + offset, size);
        }
        memset(out + r * stride + size, 0, (size_t)(stride - size) * sizeof(float));
    }
    memset(out + n * stride, 0, (size_t)((padded_rows - n) * stride) * sizeof(float));
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

/* The 16-bit numbers of the probabilities of `rows` queries from row `first` of the stream; the stride is
 * attention_bits_stride. */
static inline int64_t attention_bits_stride(const struct attention_head *h)
{
    return kernel_round_up(h->n_k, DROPOUT_COLUMNS);
}

static inline void attention_draw(uint16_t *bits, const struct attention_call *c,
                                  const struct attention_head *h, int64_t first, int64_t rows)
{
    struct dropout_bits d = {c->key, c->a->dropout.site, (uint32_t)h->index * (65536 / DROPOUT_COLUMNS),
                             kernel_blocks(h->n_k, DROPOUT_COLUMNS),
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
