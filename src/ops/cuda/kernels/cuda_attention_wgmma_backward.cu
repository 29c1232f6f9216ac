/* cuda_attention_wgmma_backward: the gradient of attention with the matrix instructions of sm_90a (Dao 2023,
 * arXiv:2307.08691, algorithm 2, without its atomic sums), for bf16 and fp16 and heads of 64 or 128 columns.
 *
 * A warpgroup's step is the scores of 64 keys and 64 queries.  If keys are rows, P is the left factor of dv =
 * P^T dout in registers, and dS that of dk = dS^T q; if queries are rows, dS is that of dq = dS k.
 *
 * The kernel of whole sequences: for those of at most 128 queries and 128 keys one block computes a whole
 * head, one head after the other.  Keys are rows; dS goes to shared memory, where it is the left factor of dk
 * as stored and that of dq transposed.  After these products the tiles are free: the next piece's rows are
 * copied while this one's dv, dk and dq are rounded, summed and stored, through the memory of dS.  q, k, v,
 * out and dout are read once, dq, dk, dv written once.
 *
 * The kernels by keys and by queries: for other sequences a block owns 128 keys or 128 queries, and the
 * others are streamed 64 at a time.  Scores are computed twice, and no sum needs several blocks.  If heads
 * share keys and values, a block that owns keys walks over the queries of one head after the other, in order,
 * and these kernels have whole sequences too: the kernel of those has no registers left in which dk and dv
 * could wait for the next head.
 *
 * Deterministic: no atomic, and a fixed order of sums.  P and dS are rounded to the element type before
 * products; scores, differences and sums are fp32. */
#include "ops/cuda/kernels/attention_pieces_code.cuh"
#include "ops/cuda/kernels/warpgroup_gradient_code.cuh"

/* Whether heads share keys and values. */
__device__ static inline bool has_groups(const launch_attention &a)
{
    return a.n_kv_heads != a.n_heads;
}

/* Whether the kernel of whole sequences computes this one. */
__device__ static inline bool is_whole(const launch_attention &a, const place &p)
{
    return !has_groups(a) && p.n_q <= OWN && p.n_k <= OWN;
}

/* sums += left right over the first n rows of `right`, 64 at a time; `left` advances by `panel` for 64 of
 * them and by `step` for 16. */
template <int LEFT_OVER_ROWS, typename E, int N>
__device__ static inline void multiply_first(int n, square (&sums)[N], uint64_t left, uint64_t step,
                                             uint64_t panel, uint64_t right)
{
    ROLLED
    for (int first = 0; first < n; first += STREAM) {
        begin_products(sums);
        UNROLL
        for (int i = 0; i < STREAM; i += SIDE) {
            wgmma_shared<LEFT_OVER_ROWS, 1>(sums, left + i / SIDE * step, right + at_row(i), true, E());
        }
        commit_products();
        wait_for_products<0>(sums);
        left += panel;
        right += at_row(STREAM);
    }
}

/* Elements of the kernel of whole sequences in shared memory, before its statistics and sums of columns. */
template <int D> struct whole {
    static const int GRADIENTS = 4 * OWN * D, ELEMENTS = GRADIENTS + OWN * OWN;
};

struct whole_statistics : statistics<OWN> {
    uint64_t dropout_key;
};

/* A block's memory: tiles; dS^T, a row for each key, whose memory gradients use later on their way out; then
 * statistics. */
template <typename E, int D> struct whole_memory {
    E *queries;
    __device__ E *douts() const
    {
        return queries + OWN * D;
    }
    __device__ E *keys() const
    {
        return queries + 2 * OWN * D;
    }
    __device__ E *values() const
    {
        return queries + 3 * OWN * D;
    }
    __device__ E *gradients() const
    {
        return queries + whole<D>::GRADIENTS;
    }
    __device__ whole_statistics *known() const
    {
        return (whole_statistics *)(queries + whole<D>::ELEMENTS);
    }
    __device__ column_sums<D> sums() const
    {
        return column_sums<D>{(float *)(known() + 1)};
    }
    static const int BYTES =
        whole<D>::ELEMENTS * (int)sizeof(E) + (int)sizeof(whole_statistics) + column_sums<D>::BYTES;
};

/* The place of a piece; longer sequences have no rows here. */
__device__ static inline place place_of_whole(const launch_attention &a, piece i)
{
    place p = place_of(a, i);
    if (!is_whole(a, p)) {
        p.n_q = p.n_k = 0;
    }
    return p;
}

/* Starts to copy a piece's tiles. */
template <typename E, int D>
__device__ static inline void copy_whole(const whole_memory<E, D> &m, const attention_rows &r, const place &p)
{
    copy_pair<OWN, D>(m.queries, r.q, r.dout, p.q0, p.n_q, p.head);
    copy_pair<OWN, D>(m.keys(), r.k, r.v, p.k0, p.n_k, p.kv_head);
}

/* And the inputs of the statistics of a quad's two queries. */
template <typename E, int D, bool HAS_BITS>
__device__ static inline void load_queries(query_part<D> (&part)[2], const launch_attention &a,
                                           const attention_rows &r, const place &p)
{
    dropout_rule drop = dropout_rule_of(a, p, NULL, 0, 0);
    drop.has_bits = HAS_BITS;
    UNROLL
    for (int half = 0; half < 2; half++) {
        part[half] = load_query<E, D>(a, r, p, drop, (int)(threadIdx.x / QUAD) + half * STREAM);
    }
}

/* A warp's dropout bits, of 64 queries each, while they are loaded. */
struct bits_of_halves {
    uint32_t read[2];
};

template <bool HAS_BITS>
__device__ static inline bits_of_halves read_bits(const launch_attention &a, const place &p,
                                                  rows_of_warp rows)
{
    bits_of_halves bits = {};
    dropout_rule drop = dropout_rule_of(a, p, NULL, 0, rows.own);
    UNROLL
    for (int half = 0; half < 2; half++) {
        if (HAS_BITS && rows.group < p.n_k && half * STREAM < p.n_q) {
            bits.read[half] = read_by_key<STEPS>(drop, half * STREAM);
        }
    }
    return bits;
}

/* dv = P^T dout, without its scale, of a piece whose statistics are known; stores dS^T in shared memory. */
template <typename E, int D, bool HAS_BITS>
__device__ static inline void find_scores(square (&dv)[D / SIDE], const whole_memory<E, D> &m,
                                          const launch_attention &a, const place &p, rows_of_warp rows,
                                          const bits_of_halves &bits)
{
    const whole_statistics *known = m.known();
    clear_squares(dv);
    ROLLED
    for (int i = 0; i < p.n_q && rows.group < p.n_k; i += STREAM) {
        auto row_key_of = [&](int query) { return known->keys[i + query]; };
        dropout_rule drop = dropout_rule_of(a, p, &known->dropout_key, 0, 0);
        drop.has_bits = HAS_BITS;
        uint32_t kept = kept_by_key<STEPS>(drop, row_key_of, i == 0 ? bits.read[0] : bits.read[1], rows.own);
        factor ds[STEPS];
        key_step t = {over_columns(m.keys()) + at_row(rows.group),
                      over_columns(m.values()) + at_row(rows.group), over_columns(m.queries) + at_row(i),
                      over_columns(m.douts()) + at_row(i), over_rows<OWN>(m.douts()) + at_row(i)};
        pass_queries<E, D, OWN>(dv, ds, t, known->lse + i, known->delta + i, score_rule_of(a, p), kept, i,
                                rows.own, a.dropout.scale);
        UNROLL
        for (int n = 0; n < STEPS; n++) {
            store_left<panels<OWN>>(m.gradients(), rows.own, i + n * SIDE, ds[n]);
        }
        wait_for_products<0>(dv);
    }
}

/* Rounds and stores one gradient of a piece, given without its scale, and sums its columns. */
template <typename E, int D>
__device__ static inline void store_gradient(square (&sums)[D / SIDE], float scale, launch_rows to, int row,
                                             int n, int column, E *own, const column_sums<D> &columns,
                                             int tensor, bool summed)
{
    scale_squares(sums, scale);
    store_rows<panels<OWN>>(to, row, n, column, sums, own);
    if (summed) {
        columns.put(tensor, own);
    }
}

/* HAS_BITS: dropout's bits are read; else they are drawn.  Long because scores, dS and the three gradients of
 * a head share registers, tiles and barriers. */
template <typename E, int D, bool HAS_BITS>
__global__ __launch_bounds__(THREADS, room<D>::BLOCKS) static void attention_wgmma_whole_kernel(
    launch_attention a, attention_rows r, pieces all, const uint64_t *dropout_key)
{
    SHARED_TILES(memory);
    const whole_memory<E, D> m = {(E *)memory};
    const rows_of_warp of_warp = find_rows();
    const bool summed = r.partial_sums != NULL;
    clear_outside_queries<E>(a, r.dq, all.heads);
    clear_outside_keys<E>(a, r.dk, r.dv, all.heads);
    piece now = first_piece(all);
    place next = place_of_whole(a, now);
    copy_whole(m, r, next);
    cp_async_commit();
    query_part<D> part[2];
    load_queries<E, D, HAS_BITS>(part, a, r, next);
    if (threadIdx.x == 0) {
        m.known()->dropout_key = dropout_key_of(dropout_key, a.dropout);
    }
    ROLLED
    for (unsigned number = blockIdx.x; number < all.n; number += gridDim.x) {
        rows_of_warp rows = anew(of_warp);
        place p = place_of_whole(a, now);
        bits_of_halves bits = read_bits<HAS_BITS>(a, p, rows);
        cp_async_wait<0>();
        fence_for_products();
        __syncthreads();
        UNROLL
        for (int half = 0; half < 2; half++) {
            put_statistics(m.known(), part[half], m.douts(), (int)(threadIdx.x / QUAD) + half * STREAM);
        }
        __syncthreads();
        square dv[D / SIDE], dk[D / SIDE], dq[D / SIDE];
        find_scores<E, D, HAS_BITS>(dv, m, a, p, rows, bits);
        fence_for_products();
        __syncthreads();
        E *own = m.values() + rows.own * PANEL; /* no product reads it any more */
        int column = p.head * D;
        store_gradient<E, D>(dv, a.dropout.scale, r.dv, p.k0 + rows.own, p.n_k - rows.own, column, own,
                             m.sums(), 2, summed);
        clear_squares(dk);
        multiply_first<0, E>(rows.group < p.n_k ? p.n_q : 0, dk,
                             over_columns(m.gradients()) + at_row(rows.group), at_column<OWN>(SIDE),
                             at_column<OWN>(STREAM), over_rows<OWN>(m.queries));
        clear_squares(dq);
        multiply_first<1, E>(rows.group < p.n_q ? p.n_k : 0, dq,
                             over_rows<OWN>(m.gradients()) + at_column<OWN>(rows.group), at_row(SIDE),
                             at_row(STREAM), over_rows<OWN>(m.keys()));
        now = next_piece(now, all);
        __syncthreads(); /* no product reads a tile any more, and dv is stored */
        next = number + gridDim.x < all.n ? place_of_whole(a, now) : place{};
        copy_whole(m, r, next);
        cp_async_commit();
        own = m.gradients() + rows.own * PANEL;
        store_gradient<E, D>(dk, a.scale, r.dk, p.k0 + rows.own, p.n_k - rows.own, column, own, m.sums(), 1,
                             summed);
        load_queries<E, D, HAS_BITS>(part, a, r, next);
        store_gradient<E, D>(dq, a.scale, r.dq, p.q0 + rows.own, p.n_q - rows.own, column, own, m.sums(), 0,
                             summed);
        if (summed) { /* other kernels write those of longer sequences later */
            finish_sums(r, a, p, m.sums(), 0, 3);
        }
    }
    cp_async_wait<0>();
}

/* Bytes of shared memory of the kernels by keys and by queries. */
template <int D> static int streaming_bytes(void)
{
    return (2 * OWN + 4 * STREAM) * D * 2 + (int)sizeof(statistics<STREAM>);
}

/* Long because copies, products and the arithmetic between them overlap in one loop. */
template <typename E, int D>
__global__ __launch_bounds__(THREADS, room<D>::BLOCKS) static void attention_wgmma_keys_kernel(
    launch_attention a, attention_rows r, const uint64_t *dropout_key)
{
    SHARED_TILES(memory);
    E *keys = (E *)memory, *values = keys + OWN * D, *buffers = values + OWN * D;
    statistics<STREAM> *tile = (statistics<STREAM> *)(buffers + 4 * STREAM * D);
    rows_of_warp rows = find_rows();
    place p;
    if (has_groups(a)) {
        clear_outside_keys<E>(a, r.dk, r.dv);
    }
    if (!find_place(&p, a, false, OWN) || is_whole(a, p)) {
        if (!is_whole(a, p) || p.first > 0) { /* the kernel of whole sequences has a tile of each */
            clear_sums<D>(r, a, p, 1, 2);
        }
        return;
    }
    int blind = a.causal ? p.first + p.n_q - p.n_k : 0; /* queries that see none of these keys */
    int first = blind < 0 ? 0 : blind / STREAM * STREAM, own_key = p.first + rows.own;
    square dk[D / SIDE], dv[D / SIDE];
    clear_squares(dk);
    clear_squares(dv);
    copy_pair<OWN, D>(keys, r.k, r.v, p.k0 + p.first, p.n_k - p.first, p.kv_head);
    copy_pair<STREAM, D>(buffers, r.q, r.dout, p.q0 + first, p.n_q - first, p.head);
    cp_async_commit();
    ROLLED
    for (int turn = 0, end = p.head + heads_of_group(a); p.head < end; p.head++) {
        dropout_rule drop = dropout_rule_of(a, p, dropout_key, 0, own_key);
        for (int i = first; i < p.n_q; i += STREAM, turn ^= 1) {
            E *queries = buffers + turn * 2 * STREAM * D, *douts = queries + STREAM * D;
            bool is_last = i + STREAM >= p.n_q;
            int later = is_last ? first : i + STREAM, head = p.head + is_last;
            int reader = (int)(threadIdx.x / QUAD); /* a quad computes the statistics of a query */
            if (head < end) {
                copy_pair<STREAM, D>(buffers + (turn ^ 1) * 2 * STREAM * D, r.q, r.dout, p.q0 + later,
                                     p.n_q - later, head);
            }
            cp_async_commit();
            query_part<D> part = load_query<E, D>(a, r, p, drop, i + reader);
            bool active = p.first + rows.group < p.n_k;
            uint32_t read = active ? read_by_key<STEPS>(drop, i) : 0;
            cp_async_wait<1>();
            fence_for_products();
            __syncthreads();
            put_statistics(tile, part, douts, reader);
            __syncthreads();
            if (active) {
                auto keep = [](int, const factor *) {};
                pass_tile<E, D>(dk, dv, query_tile<E>{queries, douts, tile},
                                over_columns(keys) + at_row(rows.group),
                                over_columns(values) + at_row(rows.group), score_rule_of(a, p), drop, read, i,
                                own_key, a.dropout.scale, keep);
            }
            __syncthreads();
        }
    }
    cp_async_wait<0>();
    __syncthreads();
    scale_squares(dk, a.scale);
    scale_squares(dv, a.dropout.scale);
    store_rows<panels<OWN>>(r.dk, p.k0 + own_key, p.n_k - own_key, p.kv_head * D, dk,
                            keys + rows.own * PANEL);
    store_rows<panels<OWN>>(r.dv, p.k0 + own_key, p.n_k - own_key, p.kv_head * D, dv,
                            values + rows.own * PANEL);
    if (r.partial_sums != NULL) {
        column_sums<D> columns = {(float *)buffers};
        columns.put(0, keys + rows.own * PANEL);
        columns.put(1, values + rows.own * PANEL);
        finish_sums(r, a, p, columns, 1, 2);
    }
}

/* dq += dS k, without its scale, for 64 queries and 64 keys; lse and delta are those of this lane's two
 * rows. */
template <typename E, int D>
__device__ static inline void pass_keys(square (&dq)[D / SIDE], uint64_t queries, uint64_t douts,
                                        const E *keys, const float *lse, const float *delta,
                                        const score_rule &rule, const dropout_rule &drop, int query, int key,
                                        float keep_scale)
{
    square scores[STEPS], dp[STEPS];
    factor ds[STEPS];
    uint32_t kept = kept_by_query<STEPS>(drop, query, key);
    start_scores<E, D, OWN, STREAM>(scores, dp, queries, over_columns(keys), douts,
                                    over_columns(keys + STREAM * D));
    wait_for_products<1>(scores);
    float unit = score_squares<false, STEPS>(scores, rule, query, key);
    UNROLL
    for (int i = 0; i < STEPS * 8; i++) {
        float *score = &scores[i / 8].v[i % 8];
        *score = probability_of(*score, unit, lse[i / 2 % 2]);
    }
    wait_for_products<0>(dp);
    UNROLL
    for (int n = 0; n < STEPS; n++) {
        UNROLL
        for (int i = 0; i < 8; i++) {
            dp[n].v[i] = score_gradient(scores[n].v[i], dp[n].v[i], delta[i / 2 % 2],
                                        is_kept<false>(kept, 8 * n + i), keep_scale);
        }
        ds[n] = left_factor<E>(dp[n]);
    }
    begin_products(dq, ds);
    multiply_factors<E>(dq, ds, over_rows<STREAM>(keys), true);
    commit_products();
    wait_for_products<0>(dq);
}

template <typename E, int D>
__global__ __launch_bounds__(THREADS, room<D>::BLOCKS) static void attention_wgmma_queries_kernel(
    launch_attention a, attention_rows r, const uint64_t *dropout_key)
{
    SHARED_TILES(memory);
    E *queries = (E *)memory, *douts = queries + OWN * D, *buffers = douts + OWN * D;
    rows_of_warp rows = find_rows();
    place p;
    if (has_groups(a)) {
        clear_outside_queries<E>(a, r.dq);
    }
    if (!find_place(&p, a, true, OWN) || is_whole(a, p)) {
        if (!is_whole(a, p) || p.first > 0) {
            clear_sums<D>(r, a, p, 0, 1);
        }
        return;
    }
    int query = p.first + rows.own;
    int n_keys = (int)visible_keys(a, p, (p.first + OWN < p.n_q ? p.first + OWN : p.n_q) - 1);
    score_rule rule = score_rule_of(a, p);
    dropout_rule drop = dropout_rule_of(a, p, dropout_key, query, 0);
    square dq[D / SIDE];
    clear_squares(dq);
    copy_pair<OWN, D>(queries, r.q, r.dout, p.q0 + p.first, p.n_q - p.first, p.head);
    copy_pair<STREAM, D>(buffers, r.k, r.v, p.k0, p.n_k, p.kv_head);
    cp_async_commit();
    float lse[2], delta[2];
    row_part<D> part[2];
    UNROLL
    for (int half = 0; half < 2; half++) {
        lse[half] = load_lse(a, r, p, query + square_row(2 * half));
        part[half] = load_part<E, D>(r.out, p, query + square_row(2 * half));
    }
    cp_async_wait<0>();
    fence_for_products();
    __syncthreads();
    UNROLL
    for (int half = 0; half < 2; half++) {
        delta[half] = dot_row<panels<OWN>>(part[half], douts, rows.own + square_row(2 * half));
    }
    for (int j = 0, turn = 0; j < n_keys; j += STREAM, turn ^= 1) {
        E *keys = buffers + turn * 2 * STREAM * D;
        int later = j + STREAM;
        if (later < n_keys) {
            copy_pair<STREAM, D>(buffers + (turn ^ 1) * 2 * STREAM * D, r.k, r.v, p.k0 + later, p.n_k - later,
                                 p.kv_head);
        }
        cp_async_commit();
        if (p.first + rows.group < p.n_q) {
            pass_keys<E, D>(dq, over_columns(queries) + at_row(rows.group),
                            over_columns(douts) + at_row(rows.group), keys, lse, delta, rule, drop, query, j,
                            a.dropout.scale);
        }
        cp_async_wait<0>();
        fence_for_products();
        __syncthreads();
    }
    scale_squares(dq, a.scale);
    store_rows<panels<OWN>>(r.dq, p.q0 + query, p.n_q - query, p.head * D, dq, queries + rows.own * PANEL);
    if (r.partial_sums != NULL) {
        column_sums<D> columns = {(float *)buffers};
        columns.put(0, queries + rows.own * PANEL);
        finish_sums(r, a, p, columns, 0, 1);
    }
}

template <typename E, int D>
static void launch_backward(const launch *l, const launch_attention *a, const attention_rows *r)
{
    const int of_whole = whole_memory<E, D>::BYTES;
    const int of_streams = streaming_bytes<D>();
    auto *whole = a->bits != NULL ? attention_wgmma_whole_kernel<E, D, true>
                                  : attention_wgmma_whole_kernel<E, D, false>;
    auto *by_key = attention_wgmma_keys_kernel<E, D>, *by_query = attention_wgmma_queries_kernel<E, D>;
    bool groups = a->n_kv_heads != a->n_heads;
    if (!groups) {
        unsigned blocks;
        pieces all = cut_into_pieces(a, room<D>::BLOCKS, &blocks);
        cudaFuncSetAttribute(whole, cudaFuncAttributeMaxDynamicSharedMemorySize, of_whole);
        LAUNCH(l, whole, blocks, THREADS, of_whole, *a, *r, all, l->dropout_key);
    }
    if (!groups && a->max_seqlen_q <= OWN && a->max_seqlen_kv <= OWN) {
        return;
    }
    cudaFuncSetAttribute(by_key, cudaFuncAttributeMaxDynamicSharedMemorySize, of_streams);
    cudaFuncSetAttribute(by_query, cudaFuncAttributeMaxDynamicSharedMemorySize, of_streams);
    int64_t longest = r->tiles * OWN; /* one tile for each place of sums */
    LAUNCH(l, by_key, attention_key_grid(a, longest, OWN), THREADS, of_streams, *a, *r, l->dropout_key);
    LAUNCH(l, by_query, attention_grid(a, longest, OWN), THREADS, of_streams, *a, *r, l->dropout_key);
}

void attention_wgmma_backward(const launch *l, const launch_attention *a, const attention_rows *r,
                              launch_type type)
{
    if (type == LAUNCH_BF16) {
        BY_PANELS(launch_backward, bf16, a->head_size, l, a, r);
    } else {
        BY_PANELS(launch_backward, f16, a->head_size, l, a, r);
    }
}
