/* Attention backward: probabilities are recomputed from the saved logarithm of the denominator (Dao 2023,
 * arXiv:2307.08691, algorithm 2); gradients of keys and values add up over the blocks of queries, in
 * order. */
#include "ops/cpu/attention_tile.h"
#include "ops/cpu/row_runs.h"
#include "ops/cpu/rows.h"

enum { QUERY_BLOCK = 64 };

struct tiles {
    float *keys_t, *values_t; /* [row_words, stride], transposed */
    float *keys;              /* [padded_k, row_words]; the values pass through it */
    float *dk, *dv;           /* [padded_k, width] */
    float *q, *dout;          /* [QUERY_BLOCK, row_words] */
    float *dq;                /* [QUERY_BLOCK, width] */
    float *p, *ds;            /* [QUERY_BLOCK, stride]: scores and dP at first */
    /* these tensors with pairs across the rows, in half the number of rows; without pairs the same memory */
    float *keys_across, *q_across, *dout_across, *p_across, *ds_across;
    uint16_t *bits;
};

static struct tiles carve(const struct attention_call *c, int64_t padded_k, void *lane, size_t *bytes)
{
    struct tiles t;
    float *p = lane;
    int64_t stride = attention_stride(padded_k), of_keys = padded_k * c->width;
    int64_t of_queries = QUERY_BLOCK * c->width;
    t.keys_t = p, p += c->row_words * stride;
    t.values_t = p, p += c->row_words * stride;
    t.keys = t.keys_across = p, p += of_keys;
    t.dk = p, p += of_keys;
    t.dv = p, p += of_keys;
    t.q = t.q_across = p, p += of_queries;
    t.dout = t.dout_across = p, p += of_queries;
    t.dq = p, p += of_queries;
    t.p = t.p_across = p, p += QUERY_BLOCK * stride;
    t.ds = t.ds_across = p, p += QUERY_BLOCK * stride;
    if (c->pairs) {
        t.keys_across = p, p += of_keys / 2;
        t.q_across = p, p += of_queries / 2;
        t.dout_across = p, p += of_queries / 2;
        t.ds_across = p, p += QUERY_BLOCK / 2 * stride;
    }
    t.bits = (uint16_t *)p;
    int64_t n_bits = dropout_bits_count(QUERY_BLOCK, padded_k / DROPOUT_COLUMNS);
    *bytes = (size_t)((char *)(t.bits + n_bits) - (char *)lane);
    return t;
}

/* The dot product of a row of each tensor. */
static float dot(tensor a, tensor b, int64_t head, int64_t row)
{
    const void *x = attention_row(a, head, row), *y = attention_row(b, head, row);
    float sum = 0;
    if (a.dtype == DTYPE_F32) {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < a.dims[2]; i++) {
            sum += ((const float *)x)[i] * ((const float *)y)[i];
        }
    } else {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < a.dims[2]; i++) {
            sum += bf16_to_f32(((const uint16_t *)x)[i]) * bf16_to_f32(((const uint16_t *)y)[i]);
        }
    }
    return sum;
}

/* One row of scores and of dP, and its statistics. */
struct row {
    float *p, *ds;
    const uint16_t *bits;
    float scale, lse, delta, keep_scale;
    uint32_t threshold;
};

/* A vector of columns: the probability after dropout, and the gradient of q k^T. */
struct step {
    tile_vector p, ds;
};

static inline __attribute__((always_inline)) struct step row_step(const struct row *r, int64_t j,
                                                                  const bool drops)
{
    tile_vector exponent = (r->scale * tile_load(r->p + j) - r->lse) * VMATH_LOG2_E;
    tile_vector p = tile_exp2(exponent), dp = tile_load(r->ds + j), slope = r->scale * p;
    if (drops) {
        tile_vector keep = tile_keep((tile_vector){0} + r->keep_scale, r->bits + j, r->threshold);
        return (struct step){p * keep, slope * (keep * dp - r->delta)};
    }
    return (struct step){p, slope * (dp - r->delta)};
}

/* Two rows in place, p and ds. */
static inline __attribute__((always_inline)) void two_rows(const struct row *a, const struct row *b,
                                                           int64_t padded, const bool drops)
{
    for (int64_t j = 0; j < padded; j += TILE_VECTOR) {
        struct step x = row_step(a, j, drops), y = row_step(b, j, drops);
        *tile_at(a->p + j) = x.p;
        *tile_at(a->ds + j) = x.ds;
        *tile_at(b->p + j) = y.p;
        *tile_at(b->ds + j) = y.ds;
    }
}

/* Two rows as two_rows, stored in bf16: p across the rows, ds across them and, in place, along them. */
static inline __attribute__((always_inline)) void two_paired_rows(const struct row *a, const struct row *b,
                                                                  float *p_across, float *ds_across,
                                                                  int64_t padded, const bool drops)
{
    for (int64_t j = 0; j < padded; j += TILE_VECTOR) {
        struct step x = row_step(a, j, drops), y = row_step(b, j, drops);
        *tile_at(p_across + j) = tile_pair_across(x.p, y.p);
        *tile_at(ds_across + j) = tile_pair_across(x.ds, y.ds);
        tile_store_along((uint16_t *)a->ds + j, x.ds);
        tile_store_along((uint16_t *)b->ds + j, y.ds);
    }
}

/* A block of queries [i0, i0 + n), and the keys that they see. */
struct block {
    int64_t i0, n;
    struct attention_span seen;
};

/* Row r of the block; a padding row if r >= n. */
static struct row row_of(const struct attention_call *c, const struct attention_head *h,
                         const struct tiles *t, const struct block *b, int64_t r)
{
    const struct attention_span seen = b->seen;
    int64_t stream_row = h->q0 + b->i0 + r, at = r * h->stride;
    struct attention_span visible = r < b->n ? attention_visible(c->a, b->i0 + r, h->n_q, h->n_k)
                                             : (struct attention_span){seen.first, seen.first};
    struct row row = {
        .p = t->p + at + seen.first,
        .ds = t->ds + at + seen.first,
        .bits = t->bits + kernel_min(r, b->n - 1) * attention_bits_stride(h, seen),
        .scale = (float)c->a->scale,
        .keep_scale = c->keep_scale,
        .threshold = c->threshold,
    };
    if (visible.end > visible.first) {
        row.lse = ((const float *)c->lse.data)[stream_row * c->n_heads + h->index];
        row.delta = dot(c->dout, c->out, h->index, stream_row);
    }
    attention_mask(t->p + at, visible, seen, row.scale, h->slope);
    memset(row.ds, 0, (size_t)(visible.first - seen.first) * sizeof(float));
    memset(t->ds + at + visible.end, 0, (size_t)(seen.end - visible.end) * sizeof(float));
    return row;
}

/* Computes p and ds from scores and dP, as words for the products that follow. */
static void softmax_backward(const struct attention_call *c, const struct attention_head *h,
                             const struct tiles *t, const struct block *block)
{
    int64_t first = block->seen.first, n_seen = block->seen.end - first, last = block->n - 1;
    for (int64_t r = 0; r <= last; r += 2) {
        attention_ask_for(c->out, h->index, h->q0 + block->i0 + kernel_min(r + ROWS_AHEAD, last));
        attention_ask_for(c->out, h->index, h->q0 + block->i0 + kernel_min(r + ROWS_AHEAD + 1, last));
        struct row a = row_of(c, h, t, block, r), b = row_of(c, h, t, block, r + 1);
        float *p_across = t->p_across + r / 2 * h->stride + first;
        float *ds_across = t->ds_across + r / 2 * h->stride + first;
        if (TILE_PAIRS && c->pairs && c->threshold != 0) {
            two_paired_rows(&a, &b, p_across, ds_across, n_seen, true);
        } else if (TILE_PAIRS && c->pairs) {
            two_paired_rows(&a, &b, p_across, ds_across, n_seen, false);
        } else if (c->threshold != 0) {
            two_rows(&a, &b, n_seen, true);
        } else {
            two_rows(&a, &b, n_seen, false);
        }
    }
}

/* Adds to the gradients of the keys and values that the block sees. */
static void query_block(const struct attention_call *c, const struct attention_head *h, const struct tiles *t,
                        int64_t i0, int64_t n)
{
    const struct block b = {i0, n, attention_seen(c, h, i0, n)};
    int64_t m = kernel_round_up(n, TILE_ROWS), stride = h->stride, width = c->width, row0 = h->q0 + i0;
    int64_t head_words = attention_words(c, c->head_size), query_words = attention_words(c, n);
    int64_t first = b.seen.first, n_seen = b.seen.end - first;
    attention_load_along(t->q, c, c->q, h->index, row0, n, m);
    attention_load_along(t->dout, c, c->dout, h->index, row0, n, m);
    tile_product(t->p + first, stride, (struct tile_left){t->q, c->row_words, 1}, t->keys_t + first, stride,
                 m, n_seen, head_words, false, c->pairs);
    tile_product(t->ds + first, stride, (struct tile_left){t->dout, c->row_words, 1}, t->values_t + first,
                 stride, m, n_seen, head_words, false, c->pairs);
    if (c->threshold != 0) {
        attention_draw(t->bits, c, h, b.seen, row0, n);
    }
    softmax_backward(c, h, t, &b);
    if (c->pairs) {
        attention_pair_across(t->q_across, c, t->q, m);
        attention_pair_across(t->dout_across, c, t->dout, m);
    }
    tile_product(t->dv + first * width, width, (struct tile_left){t->p_across + first, 1, stride},
                 t->dout_across, width, n_seen, width, query_words, true, c->pairs);
    tile_product(t->dk + first * width, width, (struct tile_left){t->ds_across + first, 1, stride},
                 t->q_across, width, n_seen, width, query_words, true, c->pairs);
    tile_product(t->dq, width, (struct tile_left){t->ds + first, stride, 1},
                 t->keys_across + attention_words(c, first) * width, width, m, width,
                 attention_words(c, kernel_min(b.seen.end, h->n_k) - first), false, c->pairs);
    for (int64_t r = 0; r < n; r++) {
        attention_store(c->dq, h->index, row0 + r, t->dq + r * width, 1.0f);
    }
}

/* All heads that share keys and values, in their order. */
static void attention_item(const void *context, int64_t item, void *lane)
{
    const struct attention_call *c = context;
    struct attention_head h = attention_head_of(c, item * c->group);
    size_t bytes;
    struct tiles t = carve(c, h.padded_k, lane, &bytes);
    attention_load_along(t.keys, c, c->v, h.kv_index, h.k0, h.n_k, h.padded_k);
    tile_transpose(t.values_t, h.stride, t.keys, c->row_words, h.padded_k, c->row_words);
    attention_load_along(t.keys, c, c->k, h.kv_index, h.k0, h.n_k, h.padded_k);
    tile_transpose(t.keys_t, h.stride, t.keys, c->row_words, h.padded_k, c->row_words);
    if (c->pairs) {
        attention_pair_across(t.keys_across, c, t.keys, h.padded_k);
    }
    memset(t.dk, 0, (size_t)(h.padded_k * c->width) * sizeof(float));
    memset(t.dv, 0, (size_t)(h.padded_k * c->width) * sizeof(float));
    for (int64_t member = 0; member < c->group; member++) {
        struct attention_head of = attention_head_of(c, item * c->group + member);
        for (int64_t i = 0; i < h.n_q; i += QUERY_BLOCK) {
            query_block(c, &of, &t, i, kernel_min(QUERY_BLOCK, h.n_q - i));
        }
    }
    for (int64_t r = 0; r < h.n_k; r++) {
        attention_store(c->dk, h.kv_index, h.k0 + r, t.dk + r * c->width, 1.0f);
        attention_store(c->dv, h.kv_index, h.k0 + r, t.dv + r * c->width, 1.0f);
    }
}

/* Columns of a gradient that are summed over its rows. */
struct column_sums {
    tensor t; /* [T, N, D] */
    float *partials;
};

static void sum_run(const void *context, int64_t run, void *lane)
{
    const struct column_sums *c = context;
    int64_t rows = c->t.dims[0], cols = c->t.dims[1] * c->t.dims[2];
    float *sums = c->partials + run * cols;
    memset(sums, 0, (size_t)cols * sizeof *sums);
    for (int64_t r = row_run_begin(rows, run); r < row_run_begin(rows, run + 1); r++) {
        const void *row = attention_row(c->t, 0, r);
        const float *in = row;
        if (c->t.dtype == DTYPE_BF16) {
            rows_from_bf16(lane, row, cols);
            in = lane;
        }
#pragma omp simd
        for (int64_t i = 0; i < cols; i++) {
            sums[i] += in[i];
        }
    }
}

/* total += sum over rows, of all columns of all heads. */
static void sum_columns(struct exec *x, float *total, tensor t, float *partials)
{
    int64_t cols = t.dims[1] * t.dims[2], runs = row_runs(t.dims[0]);
    struct column_sums c = {t, partials};
    if (runs > 0) {
        lanes_run(x, "attention_backward", runs, (size_t)cols * sizeof(float), sum_run, &c);
    }
    if (runs > 0 && !failed(x->status)) {
        row_runs_add(total, partials, runs, cols, cols);
    }
}

static void cpu_attention_backward(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias, tensor dout,
                                   tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a)
{
    struct attention_call c = {
        .a = &a, .out = out, .lse = lse, .q = q, .k = k, .v = v, .dq = dq, .dk = dk, .dv = dv, .dout = dout};
    if (!attention_accept(x, "attention_backward", &c)) {
        return;
    }
    attention_prepare(&c, x);
    attention_clear_outside(dq, a.cu_seqlens_q);
    attention_clear_outside(dk, a.cu_seqlens_kv);
    attention_clear_outside(dv, a.cu_seqlens_kv);
    size_t bytes;
    float start[1];
    carve(&c, attention_max_padded_k(&c), start, &bytes);
    lanes_run(x, "attention_backward", attention_items(&c) / c.group, bytes, attention_item, &c);
    if (!tensor_is_null(dbias) && !failed(x->status)) {
        int64_t cols = q.dims[1] * q.dims[2], kv_cols = k.dims[1] * k.dims[2];
        float *total = dbias.data;
        float *partials = exec_scratch(
            x, workspace_attention_sums((struct workspace_sums){q.dims[0], cols},
                                        (struct workspace_sums){k.dims[0], kv_cols},
                                        tensor_count(a.cu_seqlens_q) - 1, a.max_seqlen_q, a.max_seqlen_kv));
        sum_columns(x, total, dq, partials);
        sum_columns(x, total + cols, dk, partials);
        sum_columns(x, total + cols + kv_cols, dv, partials);
    }
}

KERNEL_FILL(attention_backward, struct ops)
{
    t->attention_backward = cpu_attention_backward;
}
