/* ref_attention: the definition of attention (ops/ref.c). */
#include "ops/ref_slots.h"

#include "ops/attention_bits.h"
#include "ops/ref_access.h"

#include <math.h>
#include <stdlib.h>

static double get_head(tensor t, int64_t row, int64_t head, int64_t i)
{
    return tensor_load(t, row * t.strides[0] + head * t.strides[1] + i * t.strides[2]);
}

static void add_head(tensor t, int64_t row, int64_t head, int64_t i, double value)
{
    int64_t offset = row * t.strides[0] + head * t.strides[1] + i * t.strides[2];
    tensor_store(t, offset, tensor_load(t, offset) + value);
}

/* One query of one head: its row of the stream, its head and that of its keys and values, its sequence and
 * where that begins, and the keys k0 + [first, end) that it sees. */
struct query {
    int64_t row, head, kv_head, k0, first, end, sequence, q0;
};

static double score(struct query q, tensor queries, tensor keys, const struct attention *a, int64_t j)
{
    double sum = 0;
    for (int64_t i = 0; i < queries.dims[2]; i++) {
        sum += get_head(queries, q.row, q.head, i) * get_head(keys, q.k0 + j, q.kv_head, i);
    }
    double slope = tensor_is_null(a->alibi_slopes) ? 0.0 : tensor_get(a->alibi_slopes, q.head);
    return a->scale * sum + slope * (double)j;
}

static double probability_factor(const struct exec *x, const struct attention *a, struct query q, int64_t j)
{
    return dropout_factor(x, a->dropout, a->row_keys, q.row, (a->first_head + q.head) * 65536 + j);
}

static bool has_bits(const struct attention *a)
{
    return !tensor_is_null(a->bits) && dropout_threshold(a->dropout) > 0;
}

static struct attention_element element(struct query q, int64_t j)
{
    return (struct attention_element){q.sequence, q.q0, q.head, q.row - q.q0, j};
}

/* Calls `visit` for every query of every head, in order. */
static void for_each_query(const struct attention *a, int64_t n_heads, int64_t n_kv_heads,
                           void (*visit)(struct query q, void *context), void *context)
{
    for (int64_t b = 0; b + 1 < a->cu_seqlens_q.dims[0]; b++) {
        int64_t q0 = index_at(a->cu_seqlens_q, b), q1 = index_at(a->cu_seqlens_q, b + 1);
        int64_t k0 = index_at(a->cu_seqlens_kv, b), k1 = index_at(a->cu_seqlens_kv, b + 1);
        for (int64_t row = q0; row < q1; row++) {
            int64_t place = row - q0 + (k1 - k0) - (q1 - q0), end = k1 - k0;
            end = a->causal ? place + 1 : end;
            end = a->window > 0 && place + a->window + 1 < end ? place + a->window + 1 : end;
            int64_t first = a->window > 0 && place > a->window ? place - a->window : 0;
            for (int64_t head = 0; head < n_heads; head++) {
                int64_t kv_head = head / (n_heads / n_kv_heads);
                visit((struct query){row, head, kv_head, k0, first, end, b, q0}, context);
            }
        }
    }
}

struct attention_call {
    struct exec *x;
    const struct attention *a;
    tensor dq, dk, dv, dout, out, lse, q, k, v;
};

static void attend(struct query q, void *context)
{
    struct attention_call *c = context;
    double max = -INFINITY, sum = 0;
    for (int64_t j = q.first; j < q.end; j++) {
        max = fmax(max, score(q, c->q, c->k, c->a, j));
    }
    for (int64_t j = q.first; j < q.end; j++) {
        sum += exp(score(q, c->q, c->k, c->a, j) - max);
    }
    double lse = max + log(sum);
    set2(c->lse, q.row, q.head, lse);
    for (int64_t j = q.first; j < q.end; j++) {
        double keep = probability_factor(c->x, c->a, q, j);
        double p = exp(score(q, c->q, c->k, c->a, j) - lse) * keep;
        if (has_bits(c->a)) {
            attention_bits_set(c->a, element(q, j), keep != 0);
        }
        for (int64_t i = 0; i < c->v.dims[2]; i++) {
            add_head(c->out, q.row, q.head, i, p * get_head(c->v, q.k0 + j, q.kv_head, i));
        }
    }
}

void ref_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a)
{
    if (stopped(x)) {
        return;
    }
    ref_fill(x, out, 0);
    struct attention_call c = {.x = x, .a = &a, .out = out, .lse = lse, .q = q, .k = k, .v = v};
    for_each_query(&a, q.dims[1], k.dims[1], attend, &c);
}

static void attend_backward(struct query q, void *context)
{
    struct attention_call *c = context;
    double lse = get2(c->lse, q.row, q.head), dot = 0;
    for (int64_t i = 0; i < c->v.dims[2]; i++) {
        dot += get_head(c->dout, q.row, q.head, i) * get_head(c->out, q.row, q.head, i);
    }
    for (int64_t j = q.first; j < q.end; j++) {
        double p = exp(score(q, c->q, c->k, c->a, j) - lse);
        double keep = !has_bits(c->a)                           ? probability_factor(c->x, c->a, q, j)
                      : attention_bits_get(c->a, element(q, j)) ? dropout_scale(c->a->dropout)
                                                                : 0.0;
        double dp = 0;
        for (int64_t i = 0; i < c->v.dims[2]; i++) {
            double d = get_head(c->dout, q.row, q.head, i);
            dp += keep * d * get_head(c->v, q.k0 + j, q.kv_head, i);
            add_head(c->dv, q.k0 + j, q.kv_head, i, p * keep * d);
        }
        double ds = c->a->scale * p * (dp - dot);
        for (int64_t i = 0; i < c->q.dims[2]; i++) {
            add_head(c->dq, q.row, q.head, i, ds * get_head(c->k, q.k0 + j, q.kv_head, i));
            add_head(c->dk, q.k0 + j, q.kv_head, i, ds * get_head(c->q, q.row, q.head, i));
        }
    }
}

/* total[first + i] += sum over rows of column i. */
static void sum_heads(tensor total, int64_t first, tensor t)
{
    for (int64_t row = 0; row < t.dims[0]; row++) {
        for (int64_t i = 0; i < t.dims[1] * t.dims[2]; i++) {
            add1(total, first + i, get_head(t, row, i / t.dims[2], i % t.dims[2]));
        }
    }
}

void ref_attention_backward(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias, tensor dout,
                            tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a)
{
    if (stopped(x)) {
        return;
    }
    ref_fill(x, dq, 0);
    ref_fill(x, dk, 0);
    ref_fill(x, dv, 0);
    struct attention_call c = {x, &a, dq, dk, dv, dout, out, lse, q, k, v};
    for_each_query(&a, q.dims[1], k.dims[1], attend_backward, &c);
    if (!tensor_is_null(dbias)) {
        int64_t cols = q.dims[1] * q.dims[2], kv_cols = k.dims[1] * k.dims[2];
        sum_heads(dbias, 0, dq);
        sum_heads(dbias, cols, dk);
        sum_heads(dbias, cols + kv_cols, dv);
    }
}

/* A key or value of a token in pages. */
struct cached {
    int64_t page, place;
};

static struct cached cached_at(int64_t slot)
{
    return (struct cached){slot / OPS_CACHE_PAGE, slot % OPS_CACHE_PAGE};
}

void ref_append_rows(struct exec *x, tensor keys, tensor values, tensor k, tensor v, tensor slots)
{
    int64_t n_heads = k.dims[1], d = k.dims[2];
    for (int64_t t = 0; !stopped(x) && t < k.dims[0]; t++) {
        struct cached to = cached_at(index_at(slots, t));
        for (int64_t i = 0; index_at(slots, t) >= 0 && i < n_heads * d; i++) {
            int64_t row = to.page * n_heads + i / d;
            tensor_set(keys, (row * d + i % d) * OPS_CACHE_PAGE + to.place, get_head(k, t, i / d, i % d));
            tensor_set(values, (row * OPS_CACHE_PAGE + to.place) * d + i % d, get_head(v, t, i / d, i % d));
        }
    }
}

/* Copies the keys and values of a sequence out of pages. */
static void take_from_pages(tensor k, tensor v, tensor keys, tensor values, const struct attention *a,
                            int64_t sequence)
{
    int64_t n_heads = k.dims[1], d = k.dims[2], width = tensor_cols(a->block_table);
    int64_t k0 = index_at(a->cu_seqlens_kv, sequence), k1 = index_at(a->cu_seqlens_kv, sequence + 1);
    for (int64_t j = 0; j < k1 - k0; j++) {
        struct cached from = cached_at(j);
        int64_t page = index_at(a->block_table, sequence * width + from.page);
        for (int64_t i = 0; i < n_heads * d; i++) {
            int64_t row = page * n_heads + i / d, to = (k0 + j) * n_heads * d + i;
            tensor_set(k, to, tensor_get(keys, (row * d + i % d) * OPS_CACHE_PAGE + from.place));
            tensor_set(v, to, tensor_get(values, (row * OPS_CACHE_PAGE + from.place) * d + i % d));
        }
    }
}

void ref_attention_cached(struct exec *x, tensor out, tensor q, tensor keys, tensor values,
                          struct attention a)
{
    int64_t n_sequences = tensor_count(a.cu_seqlens_kv) - 1;
    int64_t n = stopped(x) ? 0 : index_at(a.cu_seqlens_kv, n_sequences), bytes = (int64_t)sizeof(double);
    int64_t n_kv_heads = a.n_kv_heads > 0 ? a.n_kv_heads : q.dims[1], row = n_kv_heads * q.dims[2];
    char *memory = malloc((size_t)(2 * n * row + q.dims[0] * q.dims[1] + 1) * (size_t)bytes);
    if (memory == NULL) {
        exec_fail(x, STATUS_MEMORY, "attention_cached", "out of memory for %lld keys", (long long)n);
        return;
    }
    tensor k = tensor_3d(memory, DTYPE_F64, n, n_kv_heads, q.dims[2]), v = k, lse;
    v.data = memory + n * row * bytes;
    lse = tensor_2d(memory + 2 * n * row * bytes, DTYPE_F64, q.dims[0], q.dims[1]);
    for (int64_t b = 0; n > 0 && b < n_sequences; b++) {
        take_from_pages(k, v, keys, values, &a, b);
    }
    ref_attention(x, out, lse, q, k, v, a);
    free(memory);
}
