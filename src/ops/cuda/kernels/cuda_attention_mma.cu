/* cuda_attention_mma: attention over ragged sequences with matrix instructions, for bf16 and fp16 and the
 * head sizes that models have (Dao 2023, arXiv:2307.08691, algorithm 1); its gradient is in
 * cuda_attention_mma_backward.cu.
 *
 * A block owns up to 128 queries of one head of one sequence, a warp 16 of them, and walks over the keys,
 * 64 at a time (half of both for heads above 64 columns), while the next ones are copied into the other half
 * of a double buffer.  A warp keeps scores, statistics of the softmax and sums in registers: rounded
 * probabilities become the left factor of P v in place.
 *
 * Bytes: q, k, v are read once and out and lse written once if a sequence has at most 128 tokens, and memory
 * bounds that case; longer ones read k and v once per 128 queries, from the second-level cache.  Why
 * mma.sync and not the instructions of one generation of chips: docs/decisions/0021_attention.md.
 *
 * Deterministic: no atomic, and a fixed order of sums.  Probabilities are rounded to the element type
 * before P v, 2^-9 of each for bf16; scores, statistics and sums are fp32. */
#include "ops/cuda/kernels/attention_code.cuh"

/* sums += dropout(P) v over one tile of keys.  Dropout's bits are drawn and written before scores fill the
 * registers. */
template <typename E, int D>
__device__ static inline void attend(square (&sums)[cut<D>::SQUARES], softmax *s, const E *queries,
                                     const E *keys, const E *values, const score_rule &rule,
                                     const dropout_rule &drop, int query, int key)
{
    const int STEPS = cut<D>::STEPS, STRIDE = cut<D>::STRIDE;
    uint32_t kept = draw_by_query<STEPS>(drop, query, key);
    write_bits<STEPS>(drop, key, kept);
    square scores[STEPS];
    clear_squares(scores);
    UNROLL
    for (int c = 0; c < D; c += SIDE) {
        factor q = load_left<STRIDE>(queries + c);
        UNROLL
        for (int n = 0; n < STEPS; n++) {
            add_product<E>(&scores[n], q, load_right_transposed<STRIDE>(keys + n * SIDE * STRIDE + c));
        }
    }
    soften(scores, sums, s, rule, query, key);
    UNROLL
    for (int n = 0; n < STEPS; n++) {
        factor p = kept_factor<E, false>(scores[n], kept >> (8 * n));
        UNROLL
        for (int c = 0; c < cut<D>::SQUARES; c++) {
            add_product<E>(&sums[c], p, load_right<STRIDE>(values + n * SIDE * STRIDE + c * SIDE));
        }
    }
}

template <typename E, int D>
__global__ __launch_bounds__(cut<D>::THREADS,
                             cut<D>::BLOCKS) static void attention_mma_kernel(launch_attention a,
                                                                              attention_rows r,
                                                                              const uint64_t *dropout_key)
{
    const int OWN = cut<D>::OWN, STREAM = cut<D>::STREAM, STRIDE = cut<D>::STRIDE, THREADS = cut<D>::THREADS;
    SHARED_MEMORY(memory);
    E *queries = (E *)memory, *own = queries + (int)(threadIdx.x / WARP) * SIDE * STRIDE;
    E *buffers = queries + OWN * STRIDE; /* each of keys, then values */
    place p;
    clear_outside_queries<E>(a, r.out);
    if (!find_place(&p, a, true, OWN)) {
        return;
    }
    int query = p.first + (int)(threadIdx.x / WARP) * SIDE;
    int n_keys = (int)visible_keys(a, p, (p.first + OWN < p.n_q ? p.first + OWN : p.n_q) - 1);
    int first = (int)first_key(a, p, p.first) / STREAM * STREAM;
    score_rule rule = score_rule_of(a, p);
    dropout_rule drop = dropout_rule_of(a, p, dropout_key, query, 0);
    drop.has_bits = drop.has_bits && query < p.n_q;
    softmax s = {{-INFINITY, -INFINITY}, {0, 0}};
    square sums[cut<D>::SQUARES];
    clear_squares(sums);
    start_copy<OWN, D, THREADS>(queries, r.q, p.q0 + p.first, p.n_q - p.first, p.head * D);
    copy_two<E, D>(buffers, r.k, r.v, p.k0 + first, p.n_k - first, p.kv_head);
    cp_async_commit();
    for (int j = first, turn = 0; j < n_keys; j += STREAM, turn ^= 1) {
        E *keys = buffers + turn * 2 * STREAM * STRIDE;
        int later = j + STREAM;
        if (later < n_keys) {
            copy_two<E, D>(buffers + (turn ^ 1) * 2 * STREAM * STRIDE, r.k, r.v, p.k0 + later, p.n_k - later,
                           p.kv_head);
        }
        cp_async_commit();
        cp_async_wait<1>();
        __syncthreads();
        if (query < p.n_q) {
            attend<E, D>(sums, &s, own, keys, keys + STREAM * STRIDE, rule, drop, query, j);
        }
        __syncthreads();
    }
    cp_async_wait<0>();
    __syncthreads();
    if (query < p.n_q) {
        settle(sums, s, a, p, r, query);
        store_rows<plain_rows<STRIDE>>(r.out, p.q0 + query, p.n_q - query, p.head * D, sums, own);
    }
}

template <typename E, int D>
static void launch_forward(const launch *l, const launch_attention *a, const attention_rows *r)
{
    const int OWN = cut<D>::OWN, STREAM = cut<D>::STREAM;
    const int bytes = (OWN + 4 * STREAM) * cut<D>::STRIDE * (int)sizeof(E);
    static_assert(bytes <= MOST_SHARED_BYTES, "tiles do not fit");
    auto *kernel = attention_mma_kernel<E, D>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    LAUNCH(l, kernel, attention_grid(a, a->max_seqlen_q, OWN), cut<D>::THREADS, bytes, *a, *r,
           l->dropout_key);
}

bool attention_mma_has(launch_type type, int64_t head_size)
{
    return (type == LAUNCH_BF16 || type == LAUNCH_F16) &&
           (head_size == 32 || head_size == 64 || head_size == 96 || head_size == 128 || head_size == 160);
}

void attention_mma_forward(const launch *l, const launch_attention *a, const attention_rows *r,
                           launch_type type)
{
    if (type == LAUNCH_BF16) {
        BY_HEAD_SIZE(launch_forward, bf16, a->head_size, l, a, r);
    } else {
        BY_HEAD_SIZE(launch_forward, f16, a->head_size, l, a, r);
    }
}
