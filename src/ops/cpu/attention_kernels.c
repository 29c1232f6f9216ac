/* Attention forward: for each block of queries the scores, their softmax, dropout, and the product with the
 * values. */
#include "ops/cpu/attention_tile.h"

enum { QUERY_BLOCK = 32 };

/* The lane, cut into its tiles. */
struct tiles {
    float *keys;   /* [row_words, stride], transposed */
    float *rows;   /* [padded_k, row_words]: keys, then values */
    float *values; /* [padded_k in words, width], pairs across; without pairs the same as rows */
    float *q;      /* [QUERY_BLOCK, row_words] */
    float *o;      /* [QUERY_BLOCK, width] */
    float *scores; /* [QUERY_BLOCK, stride]; then probabilities, paired along */
    uint16_t *bits;
};

static struct tiles carve(const struct attention_call *c, int64_t padded_k, void *lane, size_t *bytes)
{
    struct tiles t;
    float *p = lane;
    int64_t stride = attention_stride(padded_k);
    t.keys = p, p += c->row_words * stride;
    t.rows = t.values = p, p += padded_k * c->row_words;
    if (c->pairs) {
        t.values = p, p += padded_k / 2 * c->width;
    }
    t.q = p, p += QUERY_BLOCK * c->row_words;
    t.o = p, p += QUERY_BLOCK * c->width;
    t.scores = p, p += QUERY_BLOCK * stride;
    t.bits = (uint16_t *)p;
    int64_t n_bits = dropout_bits_count(QUERY_BLOCK, padded_k / DROPOUT_COLUMNS);
    *bytes = (size_t)((char *)(t.bits + n_bits) - (char *)lane);
    return t;
}

/* The largest of a row of scores; 0 if no key is visible. */
static float row_maximum(const float *s, bool sees_none, int64_t padded)
{
    float max = -INFINITY;
    int64_t n = padded / TILE_COLS * TILE_COLS;
#pragma omp simd reduction(max : max)
    for (int64_t j = 0; j < n; j++) {
        max = s[j] > max ? s[j] : max;
    }
    return sees_none ? 0.0f : max;
}

/* s = e^(scale (s - max)), then dropout, as words for the product with the values; returns the sum before
 * dropout. */
static inline __attribute__((always_inline)) float softmax_row(const struct attention_call *c, float *s,
                                                               const uint16_t *bits, int64_t padded,
                                                               float max, const bool drops, const bool pairs)
{
    float scale = (float)c->a->scale * VMATH_LOG2_E;
    tile_vector sum = {0};
    for (int64_t j = 0; j < padded; j += TILE_VECTOR) {
        tile_vector e = tile_exp2((tile_load(s + j) - max) * scale);
        sum += e;
        e = drops ? tile_keep(e, bits + j, c->threshold) : e;
        if (pairs) {
            tile_store_along((uint16_t *)s + j, e);
        } else {
            *tile_at(s + j) = e;
        }
    }
    return tile_sum(sum);
}

static float softmax(const struct attention_call *c, float *s, const uint16_t *bits, int64_t padded,
                     float max)
{
    bool drops = c->threshold != 0;
    if (TILE_PAIRS && c->pairs) {
        return drops ? softmax_row(c, s, bits, padded, max, true, true)
                     : softmax_row(c, s, bits, padded, max, false, true);
    }
    return drops ? softmax_row(c, s, bits, padded, max, true, false)
                 : softmax_row(c, s, bits, padded, max, false, false);
}

/* Queries [i0, i0 + n) of the sequence. */
static void query_block(const struct attention_call *c, const struct attention_head *h, const struct tiles *t,
                        int64_t i0, int64_t n)
{
    const struct attention_span seen = attention_seen(c, h, i0, n);
    int64_t m = kernel_round_up(n, TILE_ROWS), bits_stride = attention_bits_stride(h, seen);
    int64_t n_seen = seen.end - seen.first,
            words = attention_words(c, kernel_min(seen.end, h->n_k) - seen.first);
    float factor[QUERY_BLOCK], *scores = t->scores + seen.first;
    attention_load_along(t->q, c, c->q, h->index, h->q0 + i0, n, m);
    tile_product(scores, h->stride, (struct tile_left){t->q, c->row_words, 1}, t->keys + seen.first,
                 h->stride, m, n_seen, attention_words(c, c->head_size), false, c->pairs);
    if (c->threshold != 0) {
        attention_draw(t->bits, c, h, seen, h->q0 + i0, n);
    }
    for (int64_t r = 0; r < n; r++) {
        float *s = scores + r * h->stride;
        struct attention_span visible = attention_visible(c->a, i0 + r, h->n_q, h->n_k);
        bool sees_none = visible.first == visible.end;
        attention_mask(t->scores + r * h->stride, visible, seen, (float)c->a->scale, h->slope);
        float max = row_maximum(s, sees_none, n_seen);
        float sum = softmax(c, s, t->bits + r * bits_stride, n_seen, max);
        factor[r] = sees_none ? 0.0f : c->keep_scale / sum;
        ((float *)c->lse.data)[(h->q0 + i0 + r) * c->n_heads + h->index] =
            sees_none ? -INFINITY : (float)c->a->scale * max + logf(sum);
    }
    tile_product(t->o, c->width, (struct tile_left){scores, h->stride, 1},
                 t->values + attention_words(c, seen.first) * c->width, c->width, m, c->width, words, false,
                 c->pairs);
    for (int64_t r = 0; r < n; r++) {
        attention_store(c->out, h->index, h->q0 + i0 + r, t->o + r * c->width, factor[r]);
    }
}

static void attention_item(const void *context, int64_t item, void *lane)
{
    const struct attention_call *c = context;
    struct attention_head h = attention_head_of(c, item);
    size_t bytes;
    struct tiles t = carve(c, h.padded_k, lane, &bytes);
    attention_load_along(t.rows, c, c->k, h.kv_index, h.k0, h.n_k, h.padded_k);
    tile_transpose(t.keys, h.stride, t.rows, c->row_words, h.padded_k, c->row_words);
    attention_load_along(t.rows, c, c->v, h.kv_index, h.k0, h.n_k, h.padded_k);
    if (c->pairs) {
        attention_pair_across(t.values, c, t.rows, h.padded_k);
    }
    for (int64_t i = 0; i < h.n_q; i += QUERY_BLOCK) {
        query_block(c, &h, &t, i, kernel_min(QUERY_BLOCK, h.n_q - i));
    }
}

static void cpu_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v,
                          struct attention a)
{
    struct attention_call c = {.a = &a, .out = out, .lse = lse, .q = q, .k = k, .v = v};
    if (!attention_accept(x, "attention", &c)) {
        return;
    }
    attention_prepare(&c, x);
    attention_clear_outside(out, a.cu_seqlens_q);
    size_t bytes;
    float start[1];
    carve(&c, attention_max_padded_k(&c), start, &bytes);
    lanes_run(x, "attention", attention_items(&c), bytes, attention_item, &c);
}

KERNEL_FILL(attention, struct ops)
{
    t->attention = cpu_attention;
}
