/* cuda_attention: scaled dot-product attention over ragged sequences, forward (Dao 2023, arXiv:2307.08691,
 * algorithm 1) and backward (algorithm 2), with addressed dropout.
 *
 * A block owns 32 queries of one head of one sequence (backward: also 32 keys, in its own kernel), and walks
 * over the keys (queries of all heads that read its keys) 32 at a time.  It keeps everything in shared memory
 * as fp32; nothing of size T x T reaches memory.  Products are plain multiply-adds, so arithmetic bounds it;
 * it runs for every head size and type that no other kernel fits.  All kernels are listed at the end.
 * Deterministic: no atomic, and a fixed order of sums. */
#include "ops/cuda/kernels/attention_code.cuh"
#include "ops/cuda/kernels/sums_code.cuh"

enum { TILE = 32, PAD = 1 };

/* Tiles of a block in shared memory: rows of head_size + PAD, scores of TILE + PAD. */
struct tile {
    float *at;
    int stride;
};

__device__ static inline tile take_tile(float **shared, int columns)
{
    tile t = {*shared, columns + PAD};
    *shared += TILE * t.stride;
    return t;
}

/* Rows [row, row + TILE) of one head, zero from row n on. */
template <typename A>
__device__ static void load_tile(tile t, launch_rows rows, int64_t head, int64_t head_size, int64_t start,
                                 int64_t row, int64_t n)
{
    for (int64_t i = threadIdx.x; i < TILE * head_size; i += blockDim.x) {
        int64_t r = i / head_size, c = i % head_size;
        const A *p = (const A *)rows.data + (start + row + r) * rows.stride + head * head_size + c;
        t.at[r * t.stride + c] = row + r < n ? to_float(*p) : 0.0f;
    }
}

template <typename A>
__device__ static void store_tile(launch_rows rows, tile t, int64_t head, int64_t head_size, int64_t start,
                                  int64_t row, int64_t n)
{
    for (int64_t i = threadIdx.x; i < TILE * head_size; i += blockDim.x) {
        int64_t r = i / head_size, c = i % head_size;
        if (row + r < n) {
            from_float((A *)rows.data + (start + row + r) * rows.stride + head * head_size + c,
                       t.at[r * t.stride + c]);
        }
    }
}

/* Keys [first, end) of the tiles that some query of a tile sees, the first one in full tiles. */
struct key_span {
    int64_t first, end;
};

__device__ static inline key_span seen_keys(const launch_attention &a, const place &p)
{
    int64_t last = (p.first + TILE < p.n_q ? p.first + TILE : p.n_q) - 1;
    return key_span{first_key(a, p, p.first) / TILE * TILE, visible_keys(a, p, last)};
}

__device__ static void clear_tile(tile t, int64_t columns)
{
    for (int64_t i = threadIdx.x; i < TILE * columns; i += blockDim.x) {
        t.at[i / columns * t.stride + i % columns] = 0.0f;
    }
}

/* out[r][c] = sum_i a[r][i] b[c][i]. */
__device__ static void product_transposed(tile out, tile a, tile b, int64_t inner)
{
    for (int i = threadIdx.x; i < TILE * TILE; i += blockDim.x) {
        const float *x = a.at + i / TILE * a.stride, *y = b.at + i % TILE * b.stride;
        float sum = 0;
        for (int64_t k = 0; k < inner; k++) {
            sum += x[k] * y[k];
        }
        out.at[i / TILE * out.stride + i % TILE] = sum;
    }
}

/* out[r][c] = factor[r] out[r][c] + sum_k a[r][k] b[k][c], or with a transposed; factor NULL: 1. */
__device__ static void product_add(tile out, const float *factor, tile a, bool a_transposed, tile b,
                                   int64_t columns)
{
    for (int64_t i = threadIdx.x; i < TILE * columns; i += blockDim.x) {
        int64_t r = i / columns, c = i % columns;
        float sum = 0;
        for (int k = 0; k < TILE; k++) {
            sum += (a_transposed ? a.at[k * a.stride + r] : a.at[r * a.stride + k]) * b.at[k * b.stride + c];
        }
        float *o = &out.at[r * out.stride + c];
        *o = (factor == NULL ? *o : *o * factor[r]) + sum;
    }
}

/* The scale of a kept probability, or 0 for a dropped one, of a query and key j of the sequence. */
__device__ static inline float draw_factor(const launch_attention &a, const place &p, uint64_t key,
                                           int64_t query, int64_t j)
{
    if (a.dropout.threshold == 0) {
        return 1.0f;
    }
    int64_t row = p.q0 + query, column = (a.first_head + p.head) * 65536 + j;
    dropout_eight numbers =
        dropout_numbers(key, (uint32_t)(column / EIGHT), (uint32_t)a.dropout.row_keys[2 * row + 1],
                        (uint32_t)a.dropout.row_keys[2 * row], a.dropout.site);
    return dropout_number(numbers, (int)(column % EIGHT)) < a.dropout.threshold ? 0.0f : a.dropout.scale;
}

/* The word of a tile of 16 queries and 64 keys that holds the bit of a query and key, and the bit's number
 * (ops/attention_bits.h). */
__device__ static inline uint32_t *find_bit(const launch_attention &a, const place &p, int query, int key,
                                            int *bit)
{
    int c = key % LAUNCH_BITS_CHUNK, lane = query % 8 * 4 + c % 8 / 2;
    *bit = c / SIDE * 8 + c % SIDE / 8 * 4 + query % SIDE / 8 * 2 + c % 2;
    return bits_of(a, p, query, key) + lane;
}

/* The factor that draw_factor returns, from the stored bits, or drawn. */
__device__ static inline float keep_factor(const launch_attention &a, const place &p, uint64_t key,
                                           int64_t query, int64_t j)
{
    int bit;
    if (a.bits == NULL || a.dropout.threshold == 0) {
        return draw_factor(a, p, key, query, j);
    }
    return (*find_bit(a, p, (int)query, (int)j, &bit) >> bit & 1) != 0 ? a.dropout.scale : 0.0f;
}

/* A thread makes a word of the bits of this block's queries: two columns of a square are adjacent in it. */
__device__ static void write_all_bits(const launch_attention &a, const place &p, uint64_t key)
{
    if (a.bits == NULL || a.dropout.threshold == 0) {
        return;
    }
    int words = TILE / SIDE * LAUNCH_BITS_WORDS, keys = (p.n_k + LAUNCH_BITS_CHUNK - 1) / LAUNCH_BITS_CHUNK;
    for (int i = (int)threadIdx.x; i < words * keys; i += (int)blockDim.x) {
        int lane = i % LAUNCH_BITS_WORDS, chunk = i / words, bit;
        int first = p.first + i % words / LAUNCH_BITS_WORDS * SIDE + lane / QUAD;
        uint32_t word = 0;
        for (int e = 0; e < 32; e++) {
            int query = first + e / 2 % 2 * 8;
            int j = chunk * LAUNCH_BITS_CHUNK + e / 8 * SIDE + e / 4 % 2 * 8 + lane % QUAD * 2 + e % 2;
            if (query < p.n_q && j < p.n_k) {
                word |= (uint32_t)(draw_factor(a, p, key, query, j) != 0.0f) << e;
            }
        }
        if (first - lane / QUAD < p.n_q) {
            *find_bit(a, p, first, chunk * LAUNCH_BITS_CHUNK + lane % QUAD * 2, &bit) = word;
        }
    }
}

/* The score of a query and key j, from their product; minus infinity if it is hidden. */
__device__ static inline float score(const launch_attention &a, const place &p, int64_t query, int64_t j,
                                     float product)
{
    float slope = a.slopes == NULL ? 0.0f : a.slopes[p.head];
    bool seen = j < visible_keys(a, p, query) && j >= first_key(a, p, query);
    return seen ? a.scale * product + slope * (float)j : -INFINITY;
}

template <typename A>
__global__ static void attention_kernel(launch_attention a, launch_rows out, float *lse, launch_rows q,
                                        launch_rows k, launch_rows v, const uint64_t *dropout_key)
{
    SHARED_MEMORY(memory);
    clear_outside_queries<A>(a, out);
    uint64_t key = dropout_key_of(dropout_key, a.dropout);
    __shared__ float largest[TILE], total[TILE], factor[TILE];
    place p;
    if (!find_place(&p, a, true, TILE)) {
        return;
    }
    int64_t d = a.head_size;
    float *shared = memory;
    tile queries = take_tile(&shared, (int)d), keys = take_tile(&shared, (int)d),
         values = take_tile(&shared, (int)d);
    tile sums = take_tile(&shared, (int)d), scores = take_tile(&shared, TILE);
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, n_warps = blockDim.x / WARP;
    load_tile<A>(queries, q, p.head, d, p.q0, p.first, p.n_q);
    clear_tile(sums, d);
    write_all_bits(a, p, key);
    if (threadIdx.x < TILE) {
        largest[threadIdx.x] = -INFINITY;
        total[threadIdx.x] = 0;
    }
    const key_span seen = seen_keys(a, p);
    for (int64_t j0 = seen.first; j0 < seen.end; j0 += TILE) {
        __syncthreads();
        load_tile<A>(keys, k, p.kv_head, d, p.k0, j0, p.n_k);
        load_tile<A>(values, v, p.kv_head, d, p.k0, j0, p.n_k);
        __syncthreads();
        product_transposed(scores, queries, keys, d);
        __syncthreads();
        for (int r = warp; r < TILE; r += n_warps) { /* a warp has a row of scores, a lane a key */
            float *cell = &scores.at[r * scores.stride + lane];
            float s = p.first + r < p.n_q ? score(a, p, p.first + r, j0 + lane, *cell) : -INFINITY;
            float before = largest[r], now = fmaxf(before, warp_max(s));
            float e = now == -INFINITY ? 0.0f : expf(s - now);
            float sum = warp_sum(e);
            if (e != 0.0f) {
                e *= draw_factor(a, p, key, p.first + r, j0 + lane);
            }
            *cell = e;
            if (lane == 0) {
                factor[r] = now == -INFINITY ? 1.0f : expf(before - now);
                total[r] = total[r] * factor[r] + sum;
                largest[r] = now;
            }
        }
        __syncthreads();
        product_add(sums, factor, scores, false, values, d);
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < TILE * d; i += blockDim.x) {
        int64_t r = i / d;
        sums.at[r * sums.stride + i % d] *= total[r] > 0 ? 1.0f / total[r] : 0.0f;
    }
    if (threadIdx.x < TILE && p.first + threadIdx.x < p.n_q) {
        int64_t row = p.q0 + p.first + threadIdx.x;
        lse[row * a.n_heads + p.head] = largest[threadIdx.x] + logf(total[threadIdx.x]);
    }
    __syncthreads();
    store_tile<A>(out, sums, p.head, d, p.q0, p.first, p.n_q);
}

/* P, and dS = scale P (keep dP - delta), of a tile of queries and one of keys, from their products. */
__device__ static void differentiate(const launch_attention &a, const place &p, uint64_t key, tile scores,
                                     tile dp, const float *lse, const float *delta, int64_t i0, int64_t j0)
{
    for (int i = threadIdx.x; i < TILE * TILE; i += blockDim.x) {
        int r = i / TILE, c = i % TILE;
        float *s = &scores.at[r * scores.stride + c], *ds = &dp.at[r * dp.stride + c];
        bool seen =
            i0 + r < p.n_q && j0 + c < visible_keys(a, p, i0 + r) && j0 + c >= first_key(a, p, i0 + r);
        float e = seen ? expf(score(a, p, i0 + r, j0 + c, *s) - lse[r]) : 0.0f;
        float keep = e != 0.0f ? keep_factor(a, p, key, i0 + r, j0 + c) : 0.0f;
        *ds = a.scale * e * (keep * *ds - delta[r]);
        *s = e * keep;
    }
}

/* lse and delta = rowsum(dout out) of a tile of queries. */
template <typename A>
__device__ static void load_statistics(const launch_attention &a, const place &p, float *lse, float *delta,
                                       const float *all_lse, tile douts, launch_rows out, int64_t i0)
{
    int r = threadIdx.x;
    if (r < TILE) {
        int64_t row = p.q0 + i0 + r;
        bool inside = i0 + r < p.n_q;
        float sum = 0;
        for (int64_t c = 0; inside && c < a.head_size; c++) {
            sum += douts.at[r * douts.stride + c] *
                   to_float(((const A *)out.data)[row * out.stride + p.head * a.head_size + c]);
        }
        delta[r] = sum;
        lse[r] = inside ? all_lse[row * a.n_heads + p.head] : 0.0f;
    }
}

template <typename A>
__global__ static void query_gradient_kernel(launch_attention a, launch_rows dq, launch_rows dout,
                                             launch_rows out, const float *all_lse, launch_rows q,
                                             launch_rows k, launch_rows v, const uint64_t *dropout_key)
{
    SHARED_MEMORY(memory);
    clear_outside_queries<A>(a, dq);
    uint64_t key = dropout_key_of(dropout_key, a.dropout);
    __shared__ float lse[TILE], delta[TILE];
    place p;
    if (!find_place(&p, a, true, TILE)) {
        return;
    }
    int64_t d = a.head_size;
    float *shared = memory;
    tile queries = take_tile(&shared, (int)d), douts = take_tile(&shared, (int)d),
         keys = take_tile(&shared, (int)d);
    tile values = take_tile(&shared, (int)d), gradient = take_tile(&shared, (int)d);
    tile scores = take_tile(&shared, TILE), dp = take_tile(&shared, TILE);
    load_tile<A>(queries, q, p.head, d, p.q0, p.first, p.n_q);
    load_tile<A>(douts, dout, p.head, d, p.q0, p.first, p.n_q);
    clear_tile(gradient, d);
    __syncthreads();
    load_statistics<A>(a, p, lse, delta, all_lse, douts, out, p.first);
    const key_span seen = seen_keys(a, p);
    for (int64_t j0 = seen.first; j0 < seen.end; j0 += TILE) {
        __syncthreads();
        load_tile<A>(keys, k, p.kv_head, d, p.k0, j0, p.n_k);
        load_tile<A>(values, v, p.kv_head, d, p.k0, j0, p.n_k);
        __syncthreads();
        product_transposed(scores, queries, keys, d);
        product_transposed(dp, douts, values, d);
        __syncthreads();
        differentiate(a, p, key, scores, dp, lse, delta, p.first, j0);
        __syncthreads();
        product_add(gradient, NULL, dp, false, keys, d);
    }
    __syncthreads();
    store_tile<A>(dq, gradient, p.head, d, p.q0, p.first, p.n_q);
}

template <typename A>
__global__ static void key_gradient_kernel(launch_attention a, launch_rows dk, launch_rows dv,
                                           launch_rows dout, launch_rows out, const float *all_lse,
                                           launch_rows q, launch_rows k, launch_rows v,
                                           const uint64_t *dropout_key)
{
    SHARED_MEMORY(memory);
    clear_outside_keys<A>(a, dk, dv);
    uint64_t key = dropout_key_of(dropout_key, a.dropout);
    __shared__ float lse[TILE], delta[TILE];
    place p;
    if (!find_place(&p, a, false, TILE)) {
        return;
    }
    int64_t d = a.head_size;
    float *shared = memory;
    tile queries = take_tile(&shared, (int)d), douts = take_tile(&shared, (int)d),
         keys = take_tile(&shared, (int)d);
    tile values = take_tile(&shared, (int)d), dkeys = take_tile(&shared, (int)d),
         dvalues = take_tile(&shared, (int)d);
    tile scores = take_tile(&shared, TILE), dp = take_tile(&shared, TILE);
    load_tile<A>(keys, k, p.kv_head, d, p.k0, p.first, p.n_k);
    load_tile<A>(values, v, p.kv_head, d, p.k0, p.first, p.n_k);
    clear_tile(dkeys, d);
    clear_tile(dvalues, d);
    const query_span seen = seeing_queries(a, p, p.first, TILE);
    for (int end = p.head + heads_of_group(a); p.head < end; p.head++) {
        for (int64_t i0 = seen.first / TILE * TILE; i0 < seen.end; i0 += TILE) {
            __syncthreads();
            load_tile<A>(queries, q, p.head, d, p.q0, i0, p.n_q);
            load_tile<A>(douts, dout, p.head, d, p.q0, i0, p.n_q);
            __syncthreads();
            load_statistics<A>(a, p, lse, delta, all_lse, douts, out, i0);
            product_transposed(scores, queries, keys, d);
            product_transposed(dp, douts, values, d);
            __syncthreads();
            differentiate(a, p, key, scores, dp, lse, delta, i0, p.first);
            __syncthreads();
            product_add(dvalues, NULL, scores, true, douts, d);
            product_add(dkeys, NULL, dp, true, queries, d);
        }
    }
    __syncthreads();
    store_tile<A>(dk, dkeys, p.kv_head, d, p.k0, p.first, p.n_k);
    store_tile<A>(dv, dvalues, p.kv_head, d, p.k0, p.first, p.n_k);
}

static int shared_bytes(const launch_attention *a, int wide, int narrow)
{
    return (int)sizeof(float) * TILE * (int)(wide * (a->head_size + PAD) + narrow * (TILE + PAD));
}

template <typename A> static void forward(const launch *l, const launch_attention *a, const attention_rows *r)
{
    int bytes = shared_bytes(a, 4, 1);
    cudaFuncSetAttribute(attention_kernel<A>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    LAUNCH(l, attention_kernel<A>, attention_grid(a, a->max_seqlen_q, TILE), BLOCK, bytes, *a, r->out, r->lse,
           r->q, r->k, r->v, l->dropout_key);
}

template <typename A>
static void backward(const launch *l, const launch_attention *a, const attention_rows *r)
{
    int of_queries = shared_bytes(a, 5, 2), of_keys = shared_bytes(a, 6, 2);
    cudaFuncSetAttribute(query_gradient_kernel<A>, cudaFuncAttributeMaxDynamicSharedMemorySize, of_queries);
    LAUNCH(l, query_gradient_kernel<A>, attention_grid(a, a->max_seqlen_q, TILE), BLOCK, of_queries, *a,
           r->dq, r->dout, r->out, r->lse, r->q, r->k, r->v, l->dropout_key);
    cudaFuncSetAttribute(key_gradient_kernel<A>, cudaFuncAttributeMaxDynamicSharedMemorySize, of_keys);
    LAUNCH(l, key_gradient_kernel<A>, attention_key_grid(a, a->max_seqlen_kv, TILE), BLOCK, of_keys, *a,
           r->dk, r->dv, r->dout, r->out, r->lse, r->q, r->k, r->v, l->dropout_key);
}

static bool plain_has(launch_type, int64_t)
{
    return true;
}

static void plain_forward(const launch *l, const launch_attention *a, const attention_rows *r,
                          launch_type type)
{
    BY_TYPE(type, forward<A>(l, a, r));
}

static void plain_backward(const launch *l, const launch_attention *a, const attention_rows *r,
                           launch_type type)
{
    BY_TYPE(type, backward<A>(l, a, r));
}

/* Conditions of a kernel, and its launches; a kernel only for gradients does not set `has_forward`. */
struct attention_kernel_row {
    bool wants_aligned; /* rows at multiples of 16 bytes */
    bool sums_columns;  /* sums columns of gradients, in partial_sums */
    bool takes_windows;
    int64_t least, most; /* rows of the longest sequence */
    bool (*has_forward)(launch_type type, int64_t head_size);
    bool (*has_backward)(launch_type type, int64_t head_size);
    void (*forward)(const launch *l, const launch_attention *a, const attention_rows *r, launch_type type);
    void (*backward)(const launch *l, const launch_attention *a, const attention_rows *r, launch_type type);
};

/* In the order of enum launch_attention_kernel. */
static const attention_kernel_row KERNELS[] = {
    {false, false, true, 0, INT64_MAX, plain_has, plain_has, plain_forward, plain_backward},
    {true, false, true, 0, INT64_MAX, attention_mma_has, attention_mma_has, attention_mma_forward,
     attention_mma_backward},
    {true, true, false, 0, INT64_MAX, attention_wgmma_has, attention_wgmma_has, attention_wgmma_forward,
     attention_wgmma_backward},
    {true, true, false, LAUNCH_ATTENTION_TILE + 1, LAUNCH_ATTENTION_CLUSTER_ROWS, NULL, attention_wgmma_has,
     NULL, attention_wgmma_cluster_backward},
};
static_assert(sizeof KERNELS / sizeof KERNELS[0] == LAUNCH_ATTENTION_KERNELS, "a row for each kernel");

int cuda_attention_fits(launch_attention_kernel kernel, const launch_attention_form *f)
{
    const attention_kernel_row *row = &KERNELS[kernel];
    auto *has = f->backward ? row->has_backward : row->has_forward;
    return (f->aligned || !row->wants_aligned) && (!f->windowed || row->takes_windows) &&
           f->longest >= row->least && f->longest <= row->most && has != NULL && has(f->type, f->head_size);
}

/* Without a sequence all rows are after the last one. */
static void clear_rows(const launch *l, launch_rows rows, int64_t n, int64_t cols, launch_type type)
{
    cuda_launch_fill(l, rows, type, n, cols, 0);
}

void cuda_launch_attention(const launch *l, launch_attention_kernel kernel, const launch_attention *a,
                           const launch_attention_rows *r, launch_type type)
{
    if (a->n_sequences > 0) {
        KERNELS[kernel].forward(l, a, r, type);
    } else {
        clear_rows(l, r->out, a->n_rows_q, a->n_heads * a->head_size, type);
    }
}

/* totals += sums of columns of dq, dk and dv by tile, at once if all have as many columns. */
static void add_tiles(const launch *l, const run_totals &totals, const launch_attention *a,
                      const launch_attention_rows *r)
{
    int64_t cols = a->n_heads * a->head_size, kv_cols = a->n_kv_heads * a->head_size;
    int64_t tiles = a->n_sequences * r->tiles;
    int at_once = cols == kv_cols ? 3 : 1;
    add_runs(l, totals, at_once, r->partial_sums, tiles, cols);
    if (at_once == 1) {
        add_runs(l, run_totals{{totals.vector[1], totals.vector[2]}}, 2, r->partial_sums + tiles * cols,
                 tiles, kv_cols);
    }
}

/* dbias += sums over rows of dq, dk and dv. */
static void sum_gradients(const launch *l, bool in_tiles, const launch_attention *a,
                          const launch_attention_rows *r, launch_type type)
{
    int64_t cols = a->n_heads * a->head_size, kv_cols = a->n_kv_heads * a->head_size;
    const run_totals totals = {{r->dbias, r->dbias + cols, r->dbias + cols + kv_cols}};
    if (in_tiles) {
        add_tiles(l, totals, a, r);
        return;
    }
    launch of_runs = *l;
    of_runs.scratch = r->partial_sums;
    const launch_rows gradients[] = {r->dq, r->dk, r->dv};
    for (int i = 0; i < 3; i++) {
        int64_t rows = i == 0 ? a->n_rows_q : a->n_rows_kv;
        cuda_launch_column_sum(&of_runs, totals.vector[i], gradients[i], type, rows, i == 0 ? cols : kv_cols,
                               i == 0 ? r->runs_q : r->runs_kv, NULL);
    }
}

void cuda_launch_attention_backward(const launch *l, launch_attention_kernel kernel,
                                    const launch_attention *a, const launch_attention_rows *r,
                                    launch_type type)
{
    if (a->n_sequences == 0) {
        clear_rows(l, r->dq, a->n_rows_q, a->n_heads * a->head_size, type);
        clear_rows(l, r->dk, a->n_rows_kv, a->n_kv_heads * a->head_size, type);
        clear_rows(l, r->dv, a->n_rows_kv, a->n_kv_heads * a->head_size, type);
        return;
    }
    KERNELS[kernel].backward(l, a, r, type);
    if (r->dbias != NULL) {
        sum_gradients(l, KERNELS[kernel].sums_columns, a, r, type);
    }
}
