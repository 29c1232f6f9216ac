/* cuda_attention_wgmma: attention over ragged sequences with the matrix instructions of sm_90a (Dao 2023,
 * arXiv:2307.08691, algorithm 1), for bf16 and fp16 and heads of 64 or 128 columns; its gradient is in
 * cuda_attention_wgmma_backward.cu.
 *
 * A block owns 128 queries of one head of one sequence, a warpgroup 64 of them, and walks over the keys 128
 * at a time, while the next ones are copied into the other half of a double buffer.  Scores and sums are in
 * registers, where the softmax reads them and rounded probabilities become the left factor of P v; the
 * instructions read q, k and v from shared memory.  The last keys of a sequence, if 64 or fewer, need half
 * the work.
 *
 * For sequences that one block holds, blocks compute one head after the other, and copy the rows of the next
 * meanwhile (attention_wgmma_short_kernel).
 *
 * A single question has too few such blocks for a chip.  Then, without dropout, a block owns 64 queries, and
 * each of four warpgroups walks over its own keys; at the end their sums are rescaled and added in order
 * (attention_split_kernel).
 *
 * The rules of cuda_attention_mma.cu for scores, dropout and bytes hold here too; unlike there, no
 * instruction moves tiles into registers.  Only timing on a chip can show where each of the two is faster:
 * docs/decisions/0028_wgmma.md.
 *
 * Deterministic: no atomic, and a fixed order of sums. */
#include "ops/cuda/kernels/attention_pieces_code.cuh"

enum { STREAM = 128, DRAWN = 4 };

/* sums += dropout(P) v over 16 N keys, or, if these are ALL keys, sums = dropout(P) v.  Dropout's bits are
 * drawn and written before scores fill the registers: warps that draw have work while others multiply. */
template <typename E, int D, int N, bool ALL = false>
__device__ static inline void attend(square (&sums)[D / SIDE], softmax *s, uint64_t queries, uint64_t keys,
                                     uint64_t values, const score_rule &rule, const dropout_rule &drop,
                                     int query, int key)
{
    square scores[N];
    uint32_t kept[N / DRAWN];
    UNROLL
    for (int i = 0; i < N / DRAWN; i++) {
        kept[i] = draw_by_query<DRAWN>(drop, query, key + i * DRAWN * SIDE);
    }
    UNROLL
    for (int i = 0; i < N / DRAWN; i++) {
        write_bits<DRAWN>(drop, key + i * DRAWN * SIDE, kept[i]);
    }
    begin_products(scores);
    multiply_over_columns<E, D, OWN, STREAM>(scores, queries, keys);
    commit_products();
    wait_for_products<0>(scores);
    if (ALL) {
        soften_by(scores, s, rule, query, key, [](int, float) {});
    } else {
        soften(scores, sums, s, rule, query, key);
    }
    factor probabilities[N];
    UNROLL
    for (int n = 0; n < N; n++) {
        probabilities[n] = kept_factor<E, false>(scores[n], kept[n / DRAWN] >> (n % DRAWN * 8));
    }
    begin_products(sums, probabilities);
    multiply_factors<E>(sums, probabilities, values, !ALL);
    commit_products();
    wait_for_products<0>(sums);
}

template <typename E, int D>
__global__ __launch_bounds__(THREADS,
                             room<D>::BLOCKS) static void attention_wgmma_kernel(launch_attention a,
                                                                                 attention_rows r,
                                                                                 const uint64_t *dropout_key)
{
    SHARED_TILES(memory);
    E *queries = (E *)memory, *buffers = queries + OWN * D; /* each of keys, then values */
    rows_of_warp rows = find_rows();
    place p;
    clear_outside_queries<E>(a, r.out);
    if (!find_place(&p, a, true, OWN)) {
        return;
    }
    int query = p.first + rows.own;
    int n_keys = (int)visible_keys(a, p, (p.first + OWN < p.n_q ? p.first + OWN : p.n_q) - 1);
    score_rule rule = score_rule_of(a, p);
    dropout_rule drop = dropout_rule_of(a, p, dropout_key, query, 0);
    drop.has_bits = drop.has_bits && query < p.n_q;
    softmax s = {{-INFINITY, -INFINITY}, {0, 0}};
    square sums[D / SIDE];
    clear_squares(sums);
    start_copy<OWN, D, THREADS, panels<OWN>>(queries, r.q, p.q0 + p.first, p.n_q - p.first, p.head * D);
    copy_pair<STREAM, D>(buffers, r.k, r.v, p.k0, p.n_k, p.kv_head);
    cp_async_commit();
    for (int j = 0, turn = 0; j < n_keys; j += STREAM, turn ^= 1) {
        E *keys = buffers + turn * 2 * STREAM * D;
        int later = j + STREAM;
        if (later < n_keys) {
            copy_pair<STREAM, D>(buffers + (turn ^ 1) * 2 * STREAM * D, r.k, r.v, p.k0 + later, p.n_k - later,
                                 p.kv_head);
        }
        cp_async_commit();
        cp_async_wait<1>();
        fence_for_products();
        __syncthreads();
        uint64_t own = over_columns(queries) + at_row(rows.group), k = over_columns(keys),
                 v = over_rows<STREAM>(keys + STREAM * D);
        if (p.first + rows.group < p.n_q && n_keys - j > STREAM / 2) {
            attend<E, D, STREAM / SIDE>(sums, &s, own, k, v, rule, drop, query, j);
        } else if (p.first + rows.group < p.n_q) {
            attend<E, D, STREAM / SIDE / 2>(sums, &s, own, k, v, rule, drop, query, j);
        }
        __syncthreads();
    }
    cp_async_wait<0>();
    __syncthreads();
    if (query < p.n_q) {
        settle(sums, s, a, p, r, query);
        store_rows<panels<OWN>>(r.out, p.q0 + query, p.n_q - query, p.head * D, sums,
                                queries + rows.own * PANEL);
    }
}

/* Elements of the tiles of a piece: queries, keys, values. */
template <int D> struct short_tiles {
    static const int ELEMENTS = 3 * OWN * D;
};

template <typename E, int D>
__device__ static inline void copy_piece(E *tiles, const attention_rows &r, const place &p)
{
    start_copy<OWN, D, THREADS, panels<OWN>>(tiles, r.q, p.q0, p.n_q, p.head * D);
    copy_pair<STREAM, D>(tiles + OWN * D, r.k, r.v, p.k0, p.n_k, p.kv_head);
}

/* Sequences of at most 128 queries and 128 keys, one head after the other: there is one barrier per piece,
 * after which the rows of the next piece are copied, and rows of out pass through memory that nothing else
 * uses. */
template <typename E, int D>
__global__ __launch_bounds__(THREADS, room<D>::BLOCKS) static void attention_wgmma_short_kernel(
    launch_attention a, attention_rows r, pieces all, const uint64_t *dropout_key)
{
    SHARED_TILES(memory);
    const int TILES = short_tiles<D>::ELEMENTS;
    E *tiles = (E *)memory;
    const rows_of_warp of_warp = find_rows();
    clear_outside_queries<E>(a, r.out, all.heads);
    piece now = first_piece(all);
    copy_piece<E, D>(tiles, r, place_of(a, now));
    cp_async_commit();
    unsigned turn = 0;
    ROLLED
    for (unsigned number = blockIdx.x; number < all.n; number += gridDim.x) {
        E *queries =
            tiles + __shfl_sync(0xffffffffU, turn, 0) * TILES; /* known to be the same in all lanes */
        E *staged = tiles + 2 * TILES;
        rows_of_warp rows = anew(of_warp);
        int key = 0;
        renew(key);
        place p = place_of(a, now);
        now = next_piece(now, all);
        cp_async_wait<0>();
        fence_for_products();
        __syncthreads();
        turn ^= 1;
        if (number + gridDim.x < all.n) {
            copy_piece<E, D>(tiles + turn * TILES, r, place_of(a, now));
        }
        cp_async_commit();
        score_rule rule = score_rule_of(a, p);
        dropout_rule drop = dropout_rule_of(a, p, dropout_key, rows.own, 0);
        drop.has_bits = drop.has_bits && rows.own < p.n_q;
        softmax s = {{-INFINITY, -INFINITY}, {0, 0}};
        square sums[D / SIDE];
        clear_squares(sums);
        uint64_t own = over_columns(queries) + at_row(rows.group), k = over_columns(queries + OWN * D),
                 v = over_rows<STREAM>(queries + (OWN + STREAM) * D);
        if (rows.group < p.n_q && p.n_k > STREAM / 2) {
            attend<E, D, STREAM / SIDE, true>(sums, &s, own, k, v, rule, drop, rows.own, key);
        } else if (rows.group < p.n_q && p.n_k > 0) {
            attend<E, D, STREAM / SIDE / 2, true>(sums, &s, own, k, v, rule, drop, rows.own, key);
        }
        settle(sums, s, a, p, r, rows.own);
        store_rows<panels<OWN>>(r.out, p.q0 + rows.own, p.n_q - rows.own, p.head * D, sums,
                                staged + rows.own * PANEL);
    }
    cp_async_wait<0>();
}

/* Sizes for heads of 64 columns.  A step copies 128 keys for each warpgroup: those of a full question at
 * once. */
enum { SPLIT_D = 64, SPLITS = 4, SPLIT_THREADS = SPLITS * WARPGROUP, SPLIT_SQUARES = SPLIT_D / SIDE };
enum { SPLIT_STREAM = SPLITS * STREAM };
enum {
    SPLIT_VALUES = SPLIT_SQUARES * 8 + 4
}; /* values of a thread: sums, and a maximum and a total of each of two rows */

static_assert(SPLITS == SPLIT_SQUARES, "each warpgroup finishes one square of columns");

/* Combines the sums and statistics of all warpgroups, stored thread by thread, into those of this warpgroup's
 * square of columns.  Each adds in the same order. */
__device__ static inline void merge_splits(square *merged, softmax *all, const square (&sums)[SPLIT_SQUARES],
                                           const softmax &s, float *values)
{
    int group = warpgroup_of_block(), thread = (int)threadIdx.x % WARPGROUP;
    float *own = values + group * SPLIT_VALUES * WARPGROUP + thread;
    UNROLL
    for (int i = 0; i < SPLIT_SQUARES * 8; i++) {
        own[i * WARPGROUP] = sums[i / 8].v[i % 8];
    }
    UNROLL
    for (int half = 0; half < 2; half++) {
        own[(SPLIT_SQUARES * 8 + half) * WARPGROUP] = s.largest[half];
        own[(SPLIT_SQUARES * 8 + 2 + half) * WARPGROUP] = s.total[half];
    }
    __syncthreads();
    *merged = square{};
    UNROLL
    for (int half = 0; half < 2; half++) {
        const float *largest = values + (SPLIT_SQUARES * 8 + half) * WARPGROUP + thread;
        all->largest[half] = -INFINITY;
        all->total[half] = 0;
        UNROLL
        for (int g = 0; g < SPLITS; g++) {
            all->largest[half] = fmaxf(all->largest[half], largest[g * SPLIT_VALUES * WARPGROUP]);
        }
        float base = all->largest[half] == -INFINITY ? 0.0f : all->largest[half];
        UNROLL
        for (int g = 0; g < SPLITS; g++) {
            const float *other = values + g * SPLIT_VALUES * WARPGROUP + thread;
            float weight = exp2_approx(largest[g * SPLIT_VALUES * WARPGROUP] - base);
            all->total[half] += weight * other[(SPLIT_SQUARES * 8 + 2 + half) * WARPGROUP];
            UNROLL
            for (int i = 0; i < 4; i++) {
                int at = i / 2 * 4 + half * 2 + i % 2;
                merged->v[at] += weight * other[(group * 8 + at) * WARPGROUP];
            }
        }
    }
}

template <typename E>
__global__ __launch_bounds__(SPLIT_THREADS, 1) static void attention_split_kernel(early_start start,
                                                                                  launch_attention a,
                                                                                  attention_rows r)
{
    SHARED_TILES(memory);
    start.wait();
    E *queries = (E *)memory, *keys = queries + GROUP_ROWS * SPLIT_D, *values = keys + SPLIT_STREAM * SPLIT_D;
    int group = warpgroup_of_block();
    place p;
    clear_outside_queries<E>(a, r.out);
    if (!find_place(&p, a, true, GROUP_ROWS)) {
        return;
    }
    int query = p.first + (int)(threadIdx.x % WARPGROUP / WARP) * SIDE;
    int last = (p.first + GROUP_ROWS < p.n_q ? p.first + GROUP_ROWS : p.n_q) - 1;
    int n_keys = (int)visible_keys(a, p, last);
    score_rule rule = score_rule_of(a, p);
    softmax s = {{-INFINITY, -INFINITY}, {0, 0}}, all;
    square sums[SPLIT_SQUARES], merged[1];
    clear_squares(sums);
    start_copy<GROUP_ROWS, SPLIT_D, SPLIT_THREADS, panels<GROUP_ROWS>>(queries, r.q, p.q0 + p.first,
                                                                       p.n_q - p.first, p.head * SPLIT_D);
    cp_async_commit();
    uint64_t q = over_columns(queries), k = over_columns(keys) + at_row(group * STREAM),
             v = over_rows<STREAM>(values) + at_row(group * STREAM);
    for (int first = 0; first < n_keys; first += SPLIT_STREAM) {
        start_copy<SPLIT_STREAM, SPLIT_D, SPLIT_THREADS, panels<SPLIT_STREAM>>(
            keys, r.k, p.k0 + first, p.n_k - first, p.kv_head * SPLIT_D);
        start_copy<SPLIT_STREAM, SPLIT_D, SPLIT_THREADS, panels<SPLIT_STREAM>>(
            values, r.v, p.k0 + first, p.n_k - first, p.kv_head * SPLIT_D);
        cp_async_commit();
        cp_async_wait<0>();
        fence_for_products();
        __syncthreads();
        int key = first + group * STREAM;
        if (n_keys - key > STREAM / 2) {
            attend<E, SPLIT_D, STREAM / SIDE>(sums, &s, q, k, v, rule, dropout_rule{}, query, key);
        } else if (n_keys > key) {
            attend<E, SPLIT_D, STREAM / SIDE / 2>(sums, &s, q, k, v, rule, dropout_rule{}, query, key);
        }
        __syncthreads();
    }
    cp_async_wait<0>();
    merge_splits(merged, &all, sums, s, (float *)keys);
    if (query < p.n_q) {
        settle(merged, all, a, p, r, query, group == 0);
        store_rows<plain_rows<SIDE>>(r.out, p.q0 + query, p.n_q - query, p.head * SPLIT_D + group * SIDE,
                                     merged, queries + threadIdx.x / WARP * SIDE * SIDE);
    }
}

template <typename E>
static void launch_split(const launch *l, const launch_attention *a, const attention_rows *r)
{
    const int bytes = (GROUP_ROWS + 2 * SPLIT_STREAM) * SPLIT_D * (int)sizeof(E);
    cudaFuncSetAttribute(attention_split_kernel<E>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    LAUNCH_EARLY_SHARED(l, (attention_split_kernel<E>), attention_grid(a, a->max_seqlen_q, GROUP_ROWS),
                        SPLIT_THREADS, bytes, *a, *r);
}

template <typename E, int D>
static void launch_short(const launch *l, const launch_attention *a, const attention_rows *r)
{
    const int bytes = (2 * short_tiles<D>::ELEMENTS + OWN * D) * (int)sizeof(E);
    auto *brief = attention_wgmma_short_kernel<E, D>;
    unsigned blocks;
    pieces all = cut_into_pieces(a, room<D>::BLOCKS, &blocks);
    cudaFuncSetAttribute(brief, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    LAUNCH(l, brief, blocks, THREADS, bytes, *a, *r, all, l->dropout_key);
}

template <typename E, int D>
static void launch_forward(const launch *l, const launch_attention *a, const attention_rows *r)
{
    if (a->max_seqlen_q <= OWN && a->max_seqlen_kv <= STREAM) {
        launch_short<E, D>(l, a, r);
        return;
    }
    const int bytes = (OWN + 4 * STREAM) * D * (int)sizeof(E);
    auto *kernel = attention_wgmma_kernel<E, D>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    LAUNCH(l, kernel, attention_grid(a, a->max_seqlen_q, OWN), THREADS, bytes, *a, *r, l->dropout_key);
}

bool attention_wgmma_has(launch_type type, int64_t head_size)
{
    static const bool there = warpgroup_is_there();
    return there && (type == LAUNCH_BF16 || type == LAUNCH_F16) && (head_size == 64 || head_size == 128);
}

void attention_wgmma_forward(const launch *l, const launch_attention *a, const attention_rows *r,
                             launch_type type)
{
    bool split = cuda_attention_splits_keys(a);
    if (split && type == LAUNCH_BF16) {
        launch_split<bf16>(l, a, r);
    } else if (split) {
        launch_split<f16>(l, a, r);
    } else if (type == LAUNCH_BF16) {
        BY_PANELS(launch_forward, bf16, a->head_size, l, a, r);
    } else {
        BY_PANELS(launch_forward, f16, a->head_size, l, a, r);
    }
}
