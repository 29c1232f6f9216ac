/* warpgroup_gradient_code: what the kernels of attention's gradient with the matrix instructions of sm_90a
 * share (cuda_attention_wgmma_backward.cu, cuda_attention_wgmma_cluster.cu): the statistics of queries in
 * shared memory, the gradients of 64 queries for 64 keys a warpgroup, and sums of columns. */
#ifndef KILN_OPS_CUDA_KERNELS_WARPGROUP_GRADIENT_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_WARPGROUP_GRADIENT_CODE_CUH

#include "ops/cuda/kernels/attention_gradient_code.cuh"
#include "ops/cuda/kernels/warpgroup_code.cuh"

enum { STREAM = GROUP_ROWS, STEPS = STREAM / SIDE };
static_assert((int)OWN == (int)LAUNCH_ATTENTION_TILE, "a place for each tile's sums");

/* Numbers of a step's queries, N of them, in shared memory: if the step read them from global memory, it
 * would wait for each. */
template <int N> struct statistics {
    float lse[N], delta[N];
    row_key keys[N];
};

/* The part of a quad's lane in those of a query, while it is under way. */
template <int D> struct query_part {
    row_part<D> out;
    float lse;
    row_key key;
};

template <typename E, int D>
__device__ static inline query_part<D> load_query(const launch_attention &a, const attention_rows &r,
                                                  const place &p, const dropout_rule &drop, int query)
{
    query_part<D> part = {load_part<E, D>(r.out, p, query), load_lse(a, r, p, query), {0, 0}};
    if (drop.threshold != 0 && !drop.has_bits) {
        part.key = load_row_key(drop, query);
    }
    return part;
}

/* A quad: those of query `row`, whose row of dout is in a tile. */
template <typename E, int D, int N>
__device__ static inline void put_statistics(statistics<N> *s, const query_part<D> &part, const E *douts,
                                             int row)
{
    float delta = dot_row<panels<N>>(part.out, douts, row);
    if (lane_of_warp() % QUAD == 0) {
        s->lse[row] = part.lse;
        s->delta[row] = delta;
        s->keys[row] = part.key;
    }
}

/* Starts scores = own x^T and dp = other y^T, 64 x 64. */
template <typename E, int D, int OWN_ROWS, int ROWS, int N>
__device__ static inline void start_scores(square (&scores)[N], square (&dp)[N], uint64_t own, uint64_t x,
                                           uint64_t other, uint64_t y)
{
    begin_products(scores);
    begin_products(dp);
    multiply_over_columns<E, D, OWN_ROWS, ROWS>(scores, own, x);
    commit_products();
    multiply_over_columns<E, D, OWN_ROWS, ROWS>(dp, other, y);
    commit_products();
}

/* Rows of keys and of values, and the tiles of 64 queries, for matrix instructions. */
struct key_step {
    uint64_t keys, values, queries, douts; /* over columns */
    uint64_t douts_over_rows;
};

/* Starts dv += P^T dout, less its scale, for 64 keys and 64 queries; what is returned in `ds` is dS^T, less
 * its scale.  `query` is the first one, which lse and delta begin with. */
template <typename E, int D, int ROWS, int N>
__device__ static inline void pass_queries(square (&dv)[D / SIDE], factor (&ds)[N], const key_step &t,
                                           const float *lse, const float *delta, const score_rule &rule,
                                           uint32_t kept, int query, int key, float keep_scale)
{
    square scores[N], dp[N];
    factor probabilities[N];
    start_scores<E, D, OWN, ROWS>(scores, dp, t.keys, t.queries, t.values, t.douts);
    wait_for_products<1>(scores);
    float unit = score_squares<true, N>(scores, rule, query, key);
    UNROLL
    for (int i = 0; i < N * 8; i++) {
        float *score = &scores[i / 8].v[i % 8];
        *score = probability_of(*score, unit, lse[i / 8 * SIDE + square_column(i % 8)]);
    }
    wait_for_products<0>(dp);
    UNROLL
    for (int n = 0; n < N; n++) {
        UNROLL
        for (int i = 0; i < 8; i++) {
            dp[n].v[i] = score_gradient(scores[n].v[i], dp[n].v[i], delta[n * SIDE + square_column(i)],
                                        is_kept<true>(kept, 8 * n + i), keep_scale);
        }
        probabilities[n] = kept_factor<E, true>(scores[n], kept >> (8 * n));
        ds[n] = left_factor<E>(dp[n]);
    }
    begin_products(dv, probabilities);
    multiply_factors<E>(dv, probabilities, t.douts_over_rows, true);
    commit_products();
}

/* A tile of queries in shared memory, with what a step has to know of them. */
template <typename E> struct query_tile {
    const E *queries, *douts;
    const statistics<STREAM> *known;
};

/* dk += dS^T q and dv += P^T dout, less their scales, for 64 keys a warpgroup and a tile of queries, the
 * first of which is number `query`; `read` is what read_by_key found of them; spread(n, ds) is given dS^T of
 * the queries from n on. */
template <typename E, int D, typename SPREAD>
__device__ static inline void pass_tile(square (&dk)[D / SIDE], square (&dv)[D / SIDE],
                                        const query_tile<E> &tile, uint64_t keys, uint64_t values,
                                        const score_rule &rule, const dropout_rule &drop, uint32_t read,
                                        int query, int own_key, float keep_scale, const SPREAD &spread)
{
    const int N = D <= PANEL ? STEPS / 2 : STEPS;
    auto row_key_of = [&](int i) { return tile.known->keys[i]; };
    uint32_t kept = kept_by_key<STEPS>(drop, row_key_of, read, own_key);
    UNROLL
    for (int n = 0; n < STREAM; n += N * SIDE) {
        factor ds[N];
        key_step t = {keys, values, over_columns(tile.queries) + at_row(n),
                      over_columns(tile.douts) + at_row(n), over_rows<STREAM>(tile.douts) + at_row(n)};
        pass_queries<E, D, STREAM>(dv, ds, t, tile.known->lse + n, tile.known->delta + n, rule,
                                   kept >> (n / SIDE * 8), query + n, own_key, keep_scale);
        spread(n, ds);
        begin_products(dk, ds);
        multiply_factors<E>(dk, ds, over_rows<STREAM>(tile.queries) + at_row(n), true);
        commit_products();
        wait_for_products<0>(dv);
        wait_for_products<0>(dk);
    }
}

/* Sums of columns of a block's gradients, as they are rounded.  Each warp puts those of its 16 rows, zeros
 * after the last one, where no product reads any more; when all have, one thread a column adds them in
 * order. */
template <int D> struct column_sums {
    float *of_warps; /* [tensors, warps, D] of shared memory */
    static const int BYTES = 3 * (THREADS / WARP) * D * (int)sizeof(float);

    /* Puts the sums of the rows that store_rows left in a tile. */
    template <typename E> __device__ void put(int tensor, const E *tile) const
    {
        float *own = of_warps + (tensor * (THREADS / WARP) + (int)(threadIdx.x / WARP)) * D;
        UNROLL
        for (int c = 0; c < D; c += SIDE) {
            square sums = sum_over_rows<panels<OWN>>(tile, c);
            if (lane_of_warp() < QUAD) {
                UNROLL
                for (int i = 0; i < 4; i++) {
                    own[c + square_column(i / 2 * 4 + i % 2)] = sums.v[i / 2 * 4 + i % 2];
                }
            }
        }
    }
};

/* The place of a tile's sum of column i of tensor 0 (dq), 1 (dk) or 2 (dv). */
template <int D>
__device__ static inline float *sum_of_tile(const attention_rows &r, const launch_attention &a,
                                            const place &p, int tensor, int i)
{
    int64_t runs = a.n_sequences * r.tiles, run = p.sequence * r.tiles + (unsigned)p.first / OWN;
    int64_t at = tensor == 0 ? run * a.n_heads + p.head
                             : runs * a.n_heads + ((tensor - 1) * runs + run) * a.n_kv_heads + p.kv_head;
    return r.partial_sums + at * D + i;
}

/* All threads: adds the sums that the warps put of `n` tensors from number `first` on. */
template <int D>
__device__ static inline void finish_sums(const attention_rows &r, const launch_attention &a, const place &p,
                                          const column_sums<D> &c, int first, int n)
{
    __syncthreads();
    ROLLED
    for (unsigned i = threadIdx.x; i < (unsigned)(n * D); i += THREADS) {
        const float *of_warp = c.of_warps + i / D * (THREADS / WARP) * D + i % D;
        float sum = 0;
        UNROLL
        for (int w = 0; w < THREADS / WARP; w++) {
            sum += of_warp[w * D];
        }
        *sum_of_tile<D>(r, a, p, first + (int)(i / D), (int)(i % D)) = sum;
    }
}

/* All threads: stores zero sums of `n` tensors from number `first` on, for a tile without rows. */
template <int D>
__device__ static inline void clear_sums(const attention_rows &r, const launch_attention &a, const place &p,
                                         int first, int n)
{
    ROLLED
    for (unsigned i = threadIdx.x; r.partial_sums != NULL && i < (unsigned)(n * D); i += THREADS) {
        *sum_of_tile<D>(r, a, p, first + (int)(i / D), (int)(i % D)) = 0.0f;
    }
}

#endif
