/* attention_code: shared by the kernels of attention: where a block works and which keys a query sees; for
 * kernels with matrix instructions also how work is split, scores, and dropout by bits. */
#ifndef KILN_OPS_CUDA_KERNELS_ATTENTION_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_ATTENTION_CODE_CUH

#include "ops/cuda/kernels/matrix_code.cuh"

typedef launch_attention_rows attention_rows;

/* Whether there is a kernel with matrix instructions for this element type and head size; its rows must
 * start and be apart by multiples of 16 bytes. */
bool attention_mma_has(launch_type type, int64_t head_size);

/* Rows after the last sequence become zero.  Sums of columns of gradients: kernels that say so leave those of
 * each tile in partial_sums. */
void attention_mma_forward(const launch *l, const launch_attention *a, const attention_rows *r,
                           launch_type type);
void attention_mma_backward(const launch *l, const launch_attention *a, const attention_rows *r,
                            launch_type type);

/* The kernels that need the matrix instructions of sm_90a, as above; `has` is false on other devices. */
bool attention_wgmma_has(launch_type type, int64_t head_size);
void attention_wgmma_forward(const launch *l, const launch_attention *a, const attention_rows *r,
                             launch_type type);
void attention_wgmma_backward(const launch *l, const launch_attention *a, const attention_rows *r,
                              launch_type type);

/* The gradient in one pass, by clusters of blocks, for up to LAUNCH_ATTENTION_CLUSTER_ROWS keys: on the same
 * devices as the other kernels of sm_90a. */
void attention_wgmma_cluster_backward(const launch *l, const launch_attention *a, const attention_rows *r,
                                      launch_type type);

/* Calls function<E, size>(...) for this head size, one of those that have kernels. */
#define BY_HEAD_SIZE(function, E, size, ...)                                                                 \
    switch (size) {                                                                                          \
    case 32: function<E, 32>(__VA_ARGS__); break;                                                            \
    case 64: function<E, 64>(__VA_ARGS__); break;                                                            \
    case 96: function<E, 96>(__VA_ARGS__); break;                                                            \
    case 128: function<E, 128>(__VA_ARGS__); break;                                                          \
    case 160: function<E, 160>(__VA_ARGS__); break;                                                          \
    }

/* The number of heads that share keys and values. */
__device__ static inline int heads_of_group(const launch_attention &a)
{
    return (int)((unsigned)a.n_heads / (unsigned)a.n_kv_heads);
}

/* The head of keys and values that a head reads: head / (N / G).  Models without shared ones divide
 * nothing. */
__device__ static inline int kv_head_of(const launch_attention &a, int head)
{
    unsigned n = (unsigned)a.n_heads, n_kv = (unsigned)a.n_kv_heads;
    return n == n_kv ? head : (int)((unsigned)head * n_kv / n);
}

/* The place of this block's work. */
struct place {
    int sequence, head, kv_head, q0, n_q, k0, n_k; /* rows of the stream; lengths of the sequence */
    int first;                                     /* first row of its tile, in the sequence */
};

/* The place of a tile, a head and a sequence. */
__device__ static inline place place_at(const launch_attention &a, int sequence, int head, int first)
{
    place p;
    p.sequence = sequence;
    p.head = head;
    p.kv_head = kv_head_of(a, head);
    p.q0 = a.cu_q[sequence];
    p.n_q = a.cu_q[sequence + 1] - p.q0;
    p.k0 = a.cu_kv[sequence];
    p.n_k = a.cu_kv[sequence + 1] - p.k0;
    p.first = first;
    return p;
}

/* False for a block without rows: sequences are shorter than the longest.  A block of attention_grid has a
 * head's queries; one of attention_key_grid has keys, and begins with the first head that reads them. */
__device__ static inline bool find_place(place *p, const launch_attention &a, bool by_queries, int tile)
{
    int heads = by_queries ? 1 : heads_of_group(a);
    *p = place_at(a, (int)blockIdx.z, (int)blockIdx.y * heads, (int)blockIdx.x * tile);
    return p->first < (by_queries ? p->n_q : p->n_k);
}

/* Zeroes the few rows after the last sequence in N tensors: each block clears some of them, in a number of
 * columns: its head's, or all.  `end` is the end of the last sequence. */
template <typename E, int N>
__device__ static inline void clear_outside(const launch_attention &a, const launch_rows (&tensors)[N],
                                            const int32_t *end, int64_t n, int d)
{
    int first = *end + (int)(blockIdx.z * gridDim.x + blockIdx.x);
    ROLLED
    for (int row = first; row < (int)n; row += (int)(gridDim.z * gridDim.x)) {
        ROLLED
        for (int c = (int)threadIdx.x; c < d; c += (int)blockDim.x) {
            UNROLL
            for (int i = 0; i < N; i++) {
                from_float((E *)tensors[i].data + row * tensors[i].stride + (int)blockIdx.y * d + c, 0.0f);
            }
        }
    }
}

template <typename E>
__device__ static inline void clear_outside_queries(const launch_attention &a, launch_rows rows,
                                                    int heads = 1)
{
    const launch_rows tensors[] = {rows};
    clear_outside<E>(a, tensors, a.cu_q + a.n_sequences, a.n_rows_q, heads * (int)a.head_size);
}

template <typename E>
__device__ static inline void clear_outside_keys(const launch_attention &a, launch_rows k, launch_rows v,
                                                 int heads = 1)
{
    const launch_rows tensors[] = {k, v};
    clear_outside<E>(a, tensors, a.cu_kv + a.n_sequences, a.n_rows_kv, heads * (int)a.head_size);
}

/* The end of the keys that a query of the sequence sees: the number of them where there is no window. */
__device__ static inline int64_t visible_keys(const launch_attention &a, const place &p, int64_t query)
{
    int64_t at = query + p.n_k - p.n_q, n = a.causal ? at + 1 : p.n_k;
    n = a.window > 0 && at + a.window + 1 < n ? at + a.window + 1 : n;
    return n < 0 ? 0 : n;
}

/* The first key that a query of the sequence sees. */
__device__ static inline int64_t first_key(const launch_attention &a, const place &p, int64_t query)
{
    int64_t n = query + p.n_k - p.n_q - a.window;
    return a.window > 0 && n > 0 ? n : 0;
}

/* The queries [first, end) that see some of the keys [key, key + n). */
struct query_span {
    int first, end;
};

__device__ static inline query_span seeing_queries(const launch_attention &a, const place &p, int key, int n)
{
    int at = key + p.n_q - p.n_k, first = a.causal ? at : a.window > 0 ? at - a.window : 0;
    int end = a.window > 0 && at + n + a.window < p.n_q ? at + n + a.window : p.n_q;
    return query_span{first < 0 ? 0 : first, end < 0 ? 0 : end};
}

static inline dim3 attention_grid(const launch_attention *a, int64_t longest, int tile)
{
    return dim3(blocks_of(longest, tile), (unsigned)a->n_heads, (unsigned)a->n_sequences);
}

static inline dim3 attention_key_grid(const launch_attention *a, int64_t longest, int tile)
{
    return dim3(blocks_of(longest, tile), (unsigned)a->n_kv_heads, (unsigned)a->n_sequences);
}

/* How heads of D columns are split: a block owns OWN rows (queries, or keys), 16 a warp; rows of the other
 * kind are streamed, STREAM at a time.  Shared memory stays below 99 KiB, the limit of sm_86 and sm_89; a
 * multiprocessor with more holds BLOCKS. */
template <int D> struct cut {
    static const int OWN = D <= 64 ? 128 : 64, STREAM = OWN / 2, THREADS = OWN / SIDE * WARP, BLOCKS = 2;
    static const int STRIDE = D + TILE_GAP, SQUARES = D / SIDE, STEPS = STREAM / SIDE;
};

/* Starts to copy STREAM rows of two tensors, one tile after the other. */
template <typename E, int D>
__device__ static inline void copy_two(E *tiles, launch_rows one, launch_rows other, int row, int n, int head)
{
    const int STREAM = cut<D>::STREAM, THREADS = cut<D>::THREADS;
    start_copy<STREAM, D, THREADS>(tiles, one, row, n, head * D);
    start_copy<STREAM, D, THREADS>(tiles + STREAM * cut<D>::STRIDE, other, row, n, head * D);
}

static const int MOST_SHARED_BYTES = 99 << 10;

static const float LOG2_E = 1.44269504088896340736f, LN_2 = 0.69314718055994530942f;

/* Scores in units of log 2, so that exponentials are powers of two; `query` and `key` count within the
 * sequence. */
struct score_rule {
    float scale, slope;
    int n_k, reach; /* query i sees keys below min(n_k, i + reach) */
    int back;       /* and from i - back on */
};

static const int NO_BOUND = 1 << 30;

__device__ static inline score_rule score_rule_of(const launch_attention &a, const place &p)
{
    score_rule s;
    s.scale = a.scale * LOG2_E;
    s.slope = a.slopes == NULL ? 0.0f : a.slopes[p.head] * LOG2_E;
    s.n_k = p.n_k;
    s.reach = a.causal ? p.n_k - p.n_q + 1 : a.window > 0 ? p.n_k - p.n_q + a.window + 1 : p.n_k;
    s.back = a.window > 0 ? a.window - (p.n_k - p.n_q) : NO_BOUND;
    return s;
}

__device__ static inline float score_of(const score_rule &s, int query, int key, float product)
{
    return key < s.n_k && key < query + s.reach && key >= query - s.back
               ? s.scale * product + s.slope * (float)key
               : -INFINITY;
}

/* Turns N adjacent squares of products into scores; rows are queries and columns keys, or the other way
 * round; `query` and `key` are the first ones.  Returns the factor that the scores still need: where no key
 * is hidden and nothing is added, which is most of a long sequence, the factor is all there is to do. */
template <bool KEYS_ARE_ROWS, int N>
__device__ static inline float score_squares(square *squares, const score_rule &rule, int query, int key)
{
    int end = key + (KEYS_ARE_ROWS ? SIDE : N * SIDE), last = query + (KEYS_ARE_ROWS ? N * SIDE : SIDE) - 1;
    if (rule.slope == 0.0f && rule.scale > 0.0f && end <= rule.n_k && end <= query + rule.reach &&
        key >= last - rule.back) {
        return rule.scale;
    }
    UNROLL
    for (int i = 0; i < N * 8; i++) {
        int row = square_row(i % 8), column = i / 8 * SIDE + square_column(i % 8);
        float *cell = &squares[i / 8].v[i % 8];
        *cell = score_of(rule, query + (KEYS_ARE_ROWS ? column : row), key + (KEYS_ARE_ROWS ? row : column),
                         *cell);
    }
    return 1.0f;
}

/* The elements that dropout keeps, as bits (docs/math/dropout.md).  A gradient reads them if the forward
 * stored them (ops/attention_bits.h), else it draws them.  Eight neighbouring keys of a query share
 * one block of random numbers, but no lane holds eight neighbours: four lanes do if rows of a square are
 * queries, eight if they are keys.  So each lane draws other blocks than its neighbours, makes a byte of
 * each, and lanes exchange words of up to four bytes by shuffles: no block is drawn twice, and a
 * shuffle brings the bits of many elements.
 *
 * The result is a word of up to four squares, square n in byte n: is_kept says where. */
struct dropout_rule {
    uint64_t key;
    uint32_t threshold, site, first_block; /* the block of the head's first keys */
    const int32_t *row_keys;
    int q0, n_q;
    bool has_bits;
    uint8_t *bits; /* bits of this lane: of the warp's own queries or keys, and of the first of the others */
    uint32_t chunk_bytes;
};

/* Element i of squares that begin with byte 0 of a word, eight a square: if rows are keys, the bits for eight
 * rows down and for eight columns across change places. */
template <bool KEYS_ARE_ROWS> __device__ static inline bool is_kept(uint32_t kept, int i)
{
    int bit = KEYS_ARE_ROWS ? i % 2 + i / 4 % 2 * 2 + i / 2 % 2 * 4 : i % 8;
    return (kept >> (i / 8 * 8 + bit) & 1) != 0;
}

/* The words of 16 queries and 64 keys of this block's sequence and head. */
__device__ static inline uint32_t *bits_of(const launch_attention &a, const place &p, int query, int key)
{
    int64_t chunks = (a.max_seqlen_kv + LAUNCH_BITS_CHUNK - 1) / LAUNCH_BITS_CHUNK;
    int64_t tile = (unsigned)p.q0 / SIDE + (unsigned)p.sequence + (unsigned)query / SIDE;
    return a.bits + (p.head * chunks + (unsigned)key / LAUNCH_BITS_CHUNK) * a.bit_cols +
           tile * LAUNCH_BITS_WORDS;
}

/* For a warp whose own rows are the queries from `query` on, or the keys from `key` on; the other number is
 * 0. */
__device__ static inline dropout_rule dropout_rule_of(const launch_attention &a, const place &p,
                                                      const uint64_t *dropout_key, int query, int key)
{
    return dropout_rule{dropout_key_of(dropout_key, a.dropout),
                        a.dropout.threshold,
                        a.dropout.site,
                        (uint32_t)(a.first_head + p.head) * (65536 / EIGHT),
                        a.dropout.row_keys,
                        p.q0,
                        p.n_q,
                        a.bits != NULL,
                        (uint8_t *)(bits_of(a, p, query, key) + lane_of_warp()) + (unsigned)key / SIDE % 4,
                        (uint32_t)a.bit_cols * (uint32_t)sizeof(uint32_t)};
}

/* The place of a query in the global batch; that of the first one if there is no such query. */
struct row_key {
    uint32_t sequence, position;
};

__device__ static inline row_key load_row_key(const dropout_rule &d, int query)
{
    const int32_t *words = d.row_keys + 2 * (int64_t)(d.q0 + (query < d.n_q ? query : 0));
    return row_key{(uint32_t)words[0], (uint32_t)words[1]};
}

/* Bit i: key 8 block + i of the query is kept. */
__device__ static inline uint32_t kept_byte(const dropout_rule &d, row_key query, int block)
{
    dropout_eight numbers =
        dropout_numbers(d.key, d.first_block + (uint32_t)block, query.position, query.sequence, d.site);
    uint32_t bits = 0;
    UNROLL
    for (int i = 0; i < EIGHT; i++) {
        bits |= (uint32_t)(dropout_number(numbers, i) >= d.threshold) << i;
    }
    return bits;
}

/* For N squares side by side whose rows are the queries from `query` on and whose columns the keys from
 * `key` on: lane t of a quad draws the blocks [t N / 2, (t + 1) N / 2) of its two rows, a byte each, rows
 * fastest.  For each half of a square a lane then gets the word of the lane that drew for it, and takes the
 * bits of its columns. */
template <int N> __device__ static inline uint32_t draw_by_query(const dropout_rule &d, int query, int key)
{
    uint32_t word = 0, kept = 0;
    if (d.threshold == 0) {
        return 0xffffffffU;
    }
    UNROLL
    for (int i = 0; i < N; i++) {
        int block = key / EIGHT + lane_of_warp() % QUAD * (N / 2) + i / 2;
        word |= kept_byte(d, load_row_key(d, query + square_row(2 * (i % 2))), block) << (8 * i);
    }
    UNROLL
    for (int n = 0; n < N;
         n++) { /* two bits of each byte become adjacent: no sum of the product has a carry */
        int owner = lane_of_warp() / QUAD * QUAD + n * (4 / N);
        uint32_t rows = __shfl_sync(0xffffffffU, word, owner);
        rows |= N == 4 ? 0 : __shfl_sync(0xffffffffU, word, owner + 1) << 16;
        kept |= ((rows >> (lane_of_warp() % QUAD * 2) & 0x03030303U) * 0x01041040U >> 24) << (8 * n);
    }
    return kept;
}

/* Stores the drawn bits of N squares, 2 or 4, for the gradient. */
template <int N> __device__ static inline void write_bits(const dropout_rule &d, int key, uint32_t kept)
{
    if (d.has_bits) {
        uint8_t *at = d.bits + (uint64_t)((unsigned)key / LAUNCH_BITS_CHUNK) * d.chunk_bytes;
        if (N == 4) {
            *(uint32_t *)at = kept;
        } else {
            ((uint16_t *)at)[(unsigned)key / (2 * SIDE) % 2] = (uint16_t)kept;
        }
    }
}

/* The kept elements of the same N squares, from the stored bits, or drawn. */
template <int N> __device__ static inline uint32_t kept_by_query(const dropout_rule &d, int query, int key)
{
    if (!d.has_bits) {
        return draw_by_query<N>(d, query, key);
    }
    const uint8_t *at = d.bits + (uint64_t)((unsigned)key / LAUNCH_BITS_CHUNK) * d.chunk_bytes;
    return N == 4 ? *(const uint32_t *)at : ((const uint16_t *)at)[(unsigned)key / (2 * SIDE) % 2];
}

/* Exchanges even bits of the upper half with odd bits of the lower one: of two neighbouring columns, each
 * half then has one. */
__device__ static inline uint32_t part_columns(uint32_t word)
{
    return (word & 0xaaaa5555U) | (word >> 15 & 0xaaaa) | (word << 15 & 0x55550000U);
}

/* For N squares whose rows are a warp's 16 keys and whose columns the queries from `query` on, 16 each, reads
 * the stored bits as one byte of each of four squares whose rows are those queries; 0 if bits are drawn. */
template <int N> __device__ static inline uint32_t read_by_key(const dropout_rule &d, int query)
{
    const int TILE_BYTES = LAUNCH_BITS_WORDS * (int)sizeof(uint32_t);
    const uint8_t *at = d.bits + (unsigned)query / SIDE * TILE_BYTES;
    uint32_t word = 0;
    UNROLL
    for (int n = 0; n < N && d.has_bits; n++) {
        word |= (uint32_t)at[n * TILE_BYTES] << (8 * n);
    }
    return word;
}

/* The kept elements of those squares, from the bits read, or drawn.  Read: all their 8 x 8 bits are
 * transposed at once, a lane's 16 of each column as one element.  Drawn, with row_key_of(i) the row_key of
 * query i of them: lane l draws the block of query 16 n + l % 16 and key half l / 16, byte n of its word; for
 * element i a lane then gets the word of the lane that drew for its query, and takes the bit of its key from
 * each byte. */
template <int N, typename ROW_KEYS>
__device__ static inline uint32_t kept_by_key(const dropout_rule &d, const ROW_KEYS &row_key_of,
                                              uint32_t read, int key)
{
    uint32_t word = 0, kept = 0;
    if (d.threshold == 0) {
        return 0xffffffffU;
    }
    if (d.has_bits) {
        return part_columns(movmatrix_trans(part_columns(read)));
    }
    UNROLL
    for (int n = 0; n < N; n++) {
        word |=
            kept_byte(d, row_key_of(SIDE * n + lane_of_warp() % SIDE), key / EIGHT + lane_of_warp() / SIDE)
            << (8 * n);
    }
    UNROLL
    for (int i = 0; i < 8; i++) {
        uint32_t drawn = __shfl_sync(0xffffffffU, word, i / 2 % 2 * SIDE + square_column(i));
        kept |= (drawn >> (lane_of_warp() / QUAD) & 0x01010101U) << (i % 2 + i / 4 * 2 + i / 2 % 2 * 4);
    }
    return kept;
}

/* The left factor of dropout(P) v, or of its transpose, without its scale. */
template <typename E, bool KEYS_ARE_ROWS> __device__ static inline factor kept_factor(square s, uint32_t kept)
{
    UNROLL
    for (int i = 0; i < 8; i++) {
        s.v[i] = is_kept<KEYS_ARE_ROWS>(kept, i) ? s.v[i] : 0.0f;
    }
    return left_factor<E>(s);
}

/* The softmax of this lane's two rows so far; totals are over this lane's columns only. */
struct softmax {
    float largest[2], total[2];
};

/* Products of keys from `key` on become exponentials of scores, relative to the largest so far; shrink(half,
 * by) gets the factor by which the sums of each half's rows must be multiplied. */
template <int N, typename SHRINK>
__device__ static inline void soften_by(square (&scores)[N], softmax *s, const score_rule &rule, int query,
                                        int key, const SHRINK &shrink)
{
    float unit = score_squares<false, N>(scores, rule, query, key);
    UNROLL
    for (int half = 0; half < 2; half++) {
        float largest = -INFINITY;
        UNROLL
        for (int i = 0; i < N * 4; i++) {
            largest = fmaxf(largest, scores[i / 4].v[i % 4 / 2 * 4 + half * 2 + i % 2]);
        }
        largest = fmaxf(s->largest[half], unit * quad_max(largest));
        float base = largest == -INFINITY ? 0.0f : largest, by = exp2_approx(s->largest[half] - base),
              total = 0;
        UNROLL
        for (int i = 0; i < N * 4; i++) {
            float *cell = &scores[i / 4].v[i % 4 / 2 * 4 + half * 2 + i % 2];
            *cell = exp2_approx(fmaf(unit, *cell, -base));
            total += *cell;
        }
        shrink(half, by);
        s->largest[half] = largest;
        s->total[half] = s->total[half] * by + total;
    }
}

/* Products become exponentials as in soften_by; the sums are rescaled, too. */
template <int N, int M>
__device__ static inline void soften(square (&scores)[N], square (&sums)[M], softmax *s,
                                     const score_rule &rule, int query, int key)
{
    soften_by(scores, s, rule, query, key, [&](int half, float by) {
        UNROLL
        for (int i = 0; i < M * 4; i++) {
            sums[i / 4].v[i % 4 / 2 * 4 + half * 2 + i % 2] *= by;
        }
    });
}

/* a / total, correctly rounded, for totals of 1 and more (Markstein 1990, "Computation of elementary
 * functions on the IBM RISC System/6000 processor", theorem 8.3), without a call for the ends of the
 * range. */
__device__ static inline float divide_by_total(float a, float total)
{
    float reciprocal = reciprocal_approx(total);
    reciprocal = fmaf(fmaf(-total, reciprocal, 1.0f), reciprocal, reciprocal);
    float quotient = a * reciprocal;
    return fmaf(fmaf(-total, quotient, a), reciprocal, quotient);
}

/* Sums become rows of out, sums scale / total; The quad's first two lanes write lse, a row each, unless
 * another warp does. */
template <int M>
__device__ static inline void settle(square (&sums)[M], const softmax &s, const launch_attention &a,
                                     const place &p, const attention_rows &r, int query,
                                     bool writes_lse = true)
{
    float totals[2];
    UNROLL
    for (int half = 0; half < 2; half++) {
        float total = quad_sum(s.total[half]),
              factor = total > 0 ? divide_by_total(a.dropout.scale, total) : total; /* a NaN stays one */
        totals[half] = total;
        UNROLL
        for (int c = 0; c < M * 4; c++) {
            sums[c / 4].v[c % 4 / 2 * 4 + half * 2 + c % 2] *= factor;
        }
    }
    int lane = lane_of_warp() % QUAD, i = query + square_row(2 * lane);
    if (writes_lse && lane < 2 && i < p.n_q) {
        float total = lane == 0 ? totals[0] : totals[1], largest = lane == 0 ? s.largest[0] : s.largest[1];
        r.lse[(int64_t)(p.q0 + i) * a.n_heads + p.head] = LN_2 * (largest + log2f(total));
    }
}

#endif
