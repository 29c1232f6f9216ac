/* cuda_attention_mma_backward: the gradient of attention with matrix instructions (Dao 2023,
 * arXiv:2307.08691, algorithm 2, without its atomic sums), for bf16 and fp16.
 *
 * The kernel by keys: a block owns up to 128 keys of a head, a warp 16 of them, and walks over the queries,
 * 64 at a time; if heads share the keys, over those of one head after the other, in order.  Scores have keys
 * as rows, so that P and dS are left factors of dv = P^T dout and dk = dS^T q in place.  If these are all
 * keys of the sequence, the block has everything that dq = dS k needs: warps store dS in shared memory and
 * then compute 16 queries and half of the columns each.  q, k, v, out, dout are read once, dq, dk, dv written
 * once: memory bounds this case, that of BERT's phase 1.
 *
 * The kernel by queries: dq of the sequences that have more keys, with the roles exchanged; scores are
 * computed again, and no sum needs several blocks.
 *
 * delta = rowsum(dout out) is computed where it is needed, four lanes a row.  P = exp(score - lse).
 *
 * Deterministic: no atomic, and a fixed order of sums.  P and dS are rounded to the element type before
 * products, 2^-9 of each for bf16; scores, differences and sums are fp32. */
#include "ops/cuda/kernels/attention_gradient_code.cuh"

/* scores = own x^T and dp = other y^T, 16 x 16, where all are rows of D columns. */
template <typename E, int D>
__device__ static inline void multiply_rows(square *scores, square *dp, const E *own, const E *x,
                                            const E *other, const E *y)
{
    const int STRIDE = cut<D>::STRIDE;
    *scores = square{}, *dp = square{};
    UNROLL
    for (int c = 0; c < D; c += SIDE) {
        add_product<E>(scores, load_left<STRIDE>(own + c), load_right_transposed<STRIDE>(x + c));
        add_product<E>(dp, load_left<STRIDE>(other + c), load_right_transposed<STRIDE>(y + c));
    }
}

/* A tile of queries in shared memory. */
template <typename E> struct query_tile {
    E *queries, *douts;
    float *lse, *delta;
    int first;
};

/* dv += P^T dout and dk += dS^T q for 16 queries, numbers [16 n, 16 n + 16) of their tile; dS goes to
 * `gradients` too. */
template <typename E, int D>
__device__ static inline void pass_queries(square (&dk)[cut<D>::SQUARES], square (&dv)[cut<D>::SQUARES],
                                           E *gradients, const E *keys, const E *values,
                                           const query_tile<E> &t, int n, const score_rule &rule,
                                           uint32_t kept, int key, float keep_scale)
{
    const int STRIDE = cut<D>::STRIDE;
    const E *queries = t.queries + n * SIDE * STRIDE, *douts = t.douts + n * SIDE * STRIDE;
    square scores, dp;
    multiply_rows<E, D>(&scores, &dp, keys, queries, values, douts);
    float unit = score_squares<true, 1>(&scores, rule, t.first + n * SIDE, key);
    UNROLL
    for (int i = 0; i < 8; i++) {
        int column = n * SIDE + square_column(i);
        scores.v[i] = probability_of(scores.v[i], unit, t.lse[column]);
        dp.v[i] = score_gradient(scores.v[i], dp.v[i], t.delta[column], is_kept<true>(kept, i), keep_scale);
    }
    factor probabilities = kept_factor<E, true>(scores, kept), ds = left_factor<E>(dp);
    UNROLL
    for (int c = 0; c < cut<D>::SQUARES; c++) {
        add_product<E>(&dv[c], probabilities, load_right<STRIDE>(douts + c * SIDE));
    }
    UNROLL
    for (int c = 0; c < cut<D>::SQUARES; c++) {
        add_product<E>(&dk[c], ds, load_right<STRIDE>(queries + c * SIDE));
    }
    store_left<plain_rows<cut<D>::STREAM + TILE_GAP>>(gradients, 0, n * SIDE, ds);
}

/* dq = scale dS k of the tile's queries, whose dS of all keys of the sequence are in `gradients` [OWN,
 * STREAM]: a warp computes 16 queries and half of the columns. */
template <typename E, int D>
__device__ static inline void finish_queries(const launch_attention &a, const attention_rows &r,
                                             const place &p, const query_tile<E> &t, const E *keys,
                                             const E *gradients)
{
    const int STEPS = cut<D>::STEPS, STRIDE = cut<D>::STRIDE, ACROSS = cut<D>::STREAM + TILE_GAP;
    int warp = (int)(threadIdx.x / WARP), row = warp % STEPS * SIDE, column = warp / STEPS * (D / 2);
    square dq[D / 32];
    clear_squares(dq);
    ROLLED
    for (int k = 0; k < p.n_k; k += SIDE) {
        factor ds = load_left_transposed<ACROSS>(gradients + k * ACROSS + row);
        UNROLL
        for (int c = 0; c < D / 32; c++) {
            add_product<E>(&dq[c], ds, load_right<STRIDE>(keys + k * STRIDE + column + c * SIDE));
        }
    }
    scale_squares(dq, a.scale);
    store_rows<plain_rows<STRIDE>>(r.dq, p.q0 + t.first + row, p.n_q - t.first - row, p.head * D + column, dq,
                                   t.queries + row * STRIDE + column);
}

/* Elements of the kernel by keys in shared memory, before its statistics. */
template <int D> struct by_keys {
    static const int GRADIENTS = 2 * cut<D>::OWN * cut<D>::STRIDE + 4 * cut<D>::STREAM * cut<D>::STRIDE;
    static const int ELEMENTS = GRADIENTS + cut<D>::OWN * (cut<D>::STREAM + TILE_GAP);
};

/* Long because one loop over queries computes dk and dv and, if the block has all keys, dq too. */
template <typename E, int D>
__global__ __launch_bounds__(cut<D>::THREADS, cut<D>::BLOCKS) static void attention_mma_keys_kernel(
    launch_attention a, attention_rows r, const uint64_t *dropout_key)
{
    const int OWN = cut<D>::OWN, STREAM = cut<D>::STREAM, STRIDE = cut<D>::STRIDE, THREADS = cut<D>::THREADS;
    SHARED_MEMORY(memory);
    int row = (int)(threadIdx.x / WARP) * SIDE; /* first row of this warp */
    E *keys = (E *)memory, *values = keys + OWN * STRIDE, *buffers = values + OWN * STRIDE;
    E *gradients = keys + by_keys<D>::GRADIENTS;
    float *lse = (float *)(keys + by_keys<D>::ELEMENTS);
    place p;
    clear_outside_queries<E>(a, r.dq, heads_of_group(a));
    clear_outside_keys<E>(a, r.dk, r.dv);
    if (!find_place(&p, a, false, OWN) && p.first != 0) { /* without keys there are still queries */
        return;
    }
    bool whole = p.n_k <= OWN;
    const query_span seen = whole ? query_span{0, p.n_q} : seeing_queries(a, p, p.first, OWN);
    int first = seen.first / STREAM * STREAM, own_key = p.first + row;
    square dk[cut<D>::SQUARES], dv[cut<D>::SQUARES];
    clear_squares(dk);
    clear_squares(dv);
    start_copy<OWN, D, THREADS>(keys, r.k, p.k0 + p.first, p.n_k - p.first, p.kv_head * D);
    start_copy<OWN, D, THREADS>(values, r.v, p.k0 + p.first, p.n_k - p.first, p.kv_head * D);
    copy_two<E, D>(buffers, r.q, r.dout, p.q0 + first, p.n_q - first, p.head);
    cp_async_commit();
    ROLLED
    for (int turn = 0, end = p.head + heads_of_group(a); p.head < end; p.head++) {
        score_rule rule = score_rule_of(a, p);
        dropout_rule drop = dropout_rule_of(a, p, dropout_key, 0, own_key);
        for (int i = first; i < seen.end; i += STREAM, turn ^= 1) {
            E *queries = buffers + turn * 2 * STREAM * STRIDE;
            query_tile<E> t = {queries, queries + STREAM * STRIDE, lse, lse + STREAM, i};
            bool is_last = i + STREAM >= seen.end;
            int later = is_last ? first : i + STREAM, head = p.head + is_last;
            if (head < end) {
                copy_two<E, D>(buffers + (turn ^ 1) * 2 * STREAM * STRIDE, r.q, r.dout, p.q0 + later,
                               p.n_q - later, head);
            }
            cp_async_commit();
            int reader = (int)(threadIdx.x / QUAD); /* a quad computes the statistics of a query */
            row_part<D> part = load_part<E, D>(r.out, p, t.first + reader);
            float own_lse = load_lse(a, r, p, t.first + reader);
            auto row_key_of = [&](int query) { return load_row_key(drop, t.first + query); };
            uint32_t kept = own_key < p.n_k
                                ? kept_by_key<cut<D>::STEPS>(
                                      drop, row_key_of, read_by_key<cut<D>::STEPS>(drop, t.first), own_key)
                                : 0;
            cp_async_wait<1>();
            __syncthreads();
            float own_delta = dot_row<plain_rows<STRIDE>>(part, t.douts, reader);
            if (lane_of_warp() % QUAD == 0) {
                t.lse[reader] = own_lse;
                t.delta[reader] = own_delta;
            }
            __syncthreads();
            ROLLED
            for (int n = 0; n < cut<D>::STEPS && i + n * SIDE < p.n_q && own_key < p.n_k; n++) {
                pass_queries<E, D>(dk, dv, gradients + row * (STREAM + TILE_GAP), keys + row * STRIDE,
                                   values + row * STRIDE, t, n, rule, kept >> (8 * n), own_key,
                                   a.dropout.scale);
            }
            __syncthreads();
            if (whole) {
                finish_queries<E, D>(a, r, p, t, keys, gradients);
                __syncthreads();
            }
        }
    }
    cp_async_wait<0>();
    __syncthreads();
    scale_squares(dk, a.scale);
    scale_squares(dv, a.dropout.scale);
    store_rows<plain_rows<STRIDE>>(r.dk, p.k0 + own_key, p.n_k - own_key, p.kv_head * D, dk,
                                   keys + row * STRIDE);
    store_rows<plain_rows<STRIDE>>(r.dv, p.k0 + own_key, p.n_k - own_key, p.kv_head * D, dv,
                                   values + row * STRIDE);
}

/* dq += dS k over one tile of keys; lse and delta are those of this lane's two rows. */
template <typename E, int D>
__device__ static inline void pass_keys(square (&dq)[cut<D>::SQUARES], const E *queries, const E *douts,
                                        const E *keys, const E *values, const float *lse, const float *delta,
                                        const score_rule &rule, const dropout_rule &drop, int query, int key,
                                        float keep_scale)
{
    const int STEPS = cut<D>::STEPS, STRIDE = cut<D>::STRIDE;
    uint32_t kept = kept_by_query<STEPS>(drop, query, key);
    ROLLED
    for (int n = 0; n < STEPS && key + n * SIDE < rule.n_k; n++) {
        square scores, dp;
        multiply_rows<E, D>(&scores, &dp, queries, keys + n * SIDE * STRIDE, douts,
                            values + n * SIDE * STRIDE);
        float unit = score_squares<false, 1>(&scores, rule, query, key + n * SIDE);
        UNROLL
        for (int i = 0; i < 8; i++) {
            dp.v[i] = score_gradient(probability_of(scores.v[i], unit, lse[i / 2 % 2]), dp.v[i],
                                     delta[i / 2 % 2], is_kept<false>(kept >> (8 * n), i), keep_scale);
        }
        factor ds = left_factor<E>(dp);
        UNROLL
        for (int c = 0; c < cut<D>::SQUARES; c++) {
            add_product<E>(&dq[c], ds, load_right<STRIDE>(keys + n * SIDE * STRIDE + c * SIDE));
        }
    }
}

template <typename E, int D>
__global__ __launch_bounds__(cut<D>::THREADS, cut<D>::BLOCKS) static void attention_mma_queries_kernel(
    launch_attention a, attention_rows r, const uint64_t *dropout_key)
{
    const int OWN = cut<D>::OWN, STREAM = cut<D>::STREAM, STRIDE = cut<D>::STRIDE, THREADS = cut<D>::THREADS;
    SHARED_MEMORY(memory);
    int row = (int)(threadIdx.x / WARP) * SIDE; /* first row of this warp */
    E *queries = (E *)memory, *douts = queries + OWN * STRIDE, *buffers = douts + OWN * STRIDE;
    place p;
    if (!find_place(&p, a, true, OWN) || p.n_k <= OWN) {
        return;
    }
    int query = p.first + row;
    int n_keys = (int)visible_keys(a, p, (p.first + OWN < p.n_q ? p.first + OWN : p.n_q) - 1);
    int first = (int)first_key(a, p, p.first) / STREAM * STREAM;
    score_rule rule = score_rule_of(a, p);
    dropout_rule drop = dropout_rule_of(a, p, dropout_key, query, 0);
    square dq[cut<D>::SQUARES];
    clear_squares(dq);
    start_copy<OWN, D, THREADS>(queries, r.q, p.q0 + p.first, p.n_q - p.first, p.head * D);
    start_copy<OWN, D, THREADS>(douts, r.dout, p.q0 + p.first, p.n_q - p.first, p.head * D);
    copy_two<E, D>(buffers, r.k, r.v, p.k0 + first, p.n_k - first, p.kv_head);
    cp_async_commit();
    float lse[2], delta[2];
    row_part<D> part[2];
    UNROLL
    for (int half = 0; half < 2; half++) {
        lse[half] = load_lse(a, r, p, query + square_row(2 * half));
        part[half] = load_part<E, D>(r.out, p, query + square_row(2 * half));
    }
    cp_async_wait<0>();
    __syncthreads();
    UNROLL
    for (int half = 0; half < 2; half++) {
        delta[half] = dot_row<plain_rows<STRIDE>>(part[half], douts, row + square_row(2 * half));
    }
    for (int j = first, turn = 0; j < n_keys; j += STREAM, turn ^= 1) {
        E *keys = buffers + turn * 2 * STREAM * STRIDE;
        int later = j + STREAM;
        if (later < n_keys) {
            copy_two<E, D>(buffers + (turn ^ 1) * 2 * STREAM * STRIDE, r.k, r.v, p.k0 + later, p.n_k - later,
                           p.kv_head);
        }
        cp_async_commit();
        if (query < p.n_q) {
            pass_keys<E, D>(dq, queries + row * STRIDE, douts + row * STRIDE, keys, keys + STREAM * STRIDE,
                            lse, delta, rule, drop, query, j, a.dropout.scale);
        }
        cp_async_wait<0>();
        __syncthreads();
    }
    scale_squares(dq, a.scale);
    store_rows<plain_rows<STRIDE>>(r.dq, p.q0 + query, p.n_q - query, p.head * D, dq, queries + row * STRIDE);
}

template <typename E, int D>
static void launch_backward(const launch *l, const launch_attention *a, const attention_rows *r)
{
    const int OWN = cut<D>::OWN, STREAM = cut<D>::STREAM;
    const int of_keys = by_keys<D>::ELEMENTS * (int)sizeof(E) + 2 * STREAM * (int)sizeof(float);
    const int of_queries = (2 * OWN + 4 * STREAM) * cut<D>::STRIDE * (int)sizeof(E);
    static_assert(of_keys <= MOST_SHARED_BYTES && of_queries <= MOST_SHARED_BYTES, "tiles do not fit");
    auto *by_key = attention_mma_keys_kernel<E, D>, *by_query = attention_mma_queries_kernel<E, D>;
    cudaFuncSetAttribute(by_key, cudaFuncAttributeMaxDynamicSharedMemorySize, of_keys);
    LAUNCH(l, by_key, attention_key_grid(a, a->max_seqlen_kv, OWN), cut<D>::THREADS, of_keys, *a, *r,
           l->dropout_key);
    if (a->max_seqlen_kv > OWN && a->max_seqlen_q > 0) {
        cudaFuncSetAttribute(by_query, cudaFuncAttributeMaxDynamicSharedMemorySize, of_queries);
        LAUNCH(l, by_query, attention_grid(a, a->max_seqlen_q, OWN), cut<D>::THREADS, of_queries, *a, *r,
               l->dropout_key);
    }
}

void attention_mma_backward(const launch *l, const launch_attention *a, const attention_rows *r,
                            launch_type type)
{
    if (type == LAUNCH_BF16) {
        BY_HEAD_SIZE(launch_backward, bf16, a->head_size, l, a, r);
    } else {
        BY_HEAD_SIZE(launch_backward, f16, a->head_size, l, a, r);
    }
}
