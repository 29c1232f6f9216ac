/* cuda_attention_wgmma_cluster: the gradient of attention in one pass with the matrix instructions of sm_90a,
 * for bf16 and fp16, heads of 64 or 128 columns and up to 512 keys: scores, P and dS are computed once, five
 * products in all, where the kernels by keys and by queries (cuda_attention_wgmma_backward.cu) need seven.
 *
 * A cluster of blocks computes one head of one sequence, a block 128 of its keys: K and V are in its shared
 * memory, dk and dv in its registers.  Queries are streamed 64 at a time.  Only dq is a sum over all keys: it
 * goes from block to block through distributed shared memory, in fp32, and each adds its part.  Of n blocks
 * with keys, block b has tile b - j (modulo n) of a round of n tiles at its j-th step, so all blocks work at
 * all times and a tile is with one block after the other; the last one rounds and writes it.  The order of
 * the sum is fixed: there is no atomic.
 *
 * A thread finds its part of a sum where the same thread of the previous block put it, since all blocks have
 * the same layout of sums: no tile is needed for it.  Two buffers alternate.  A block puts its part in step
 * s, and the next block takes it in step s + 1; the block arrives at the cluster's barrier after the put, and
 * waits one step later, before it takes and puts again.  So the products of a complete step hide the barrier,
 * and a buffer is read before it is written again.
 *
 * If heads share keys and values, a cluster has those of all of them: it computes one head after the other,
 * in order, and dk and dv stay in registers until the last.
 *
 * All blocks need delta = rowsum(dout out) of a query.  Each computes some and stores them in the rows of dq,
 * where no block writes before all have read them.
 *
 * dq^T = K^T dS^T^T has the head's columns as rows: a warpgroup then has 32 queries, summed over all 128 keys
 * of the block; both warpgroups have put their dS into shared memory, with queries as rows. */
#include "ops/cuda/kernels/warpgroup_gradient_code.cuh"

enum { QUERIES = STREAM / 2, QUERY_SQUARES = QUERIES / SIDE, MOST_BLOCKS = 4 };

/* dq^T of a warpgroup's 32 queries, without its scale: 64 columns of the head are an instruction's rows. */
template <int D> struct query_sums {
    square of[D / PANEL][QUERY_SQUARES];
};

/* A block's shared memory. */
template <typename E, int D> struct block_memory {
    static const int SUM_BYTES = STREAM * D * 4;
    static const int BYTES =
        ((2 * OWN + 4 * STREAM) * D + STREAM * OWN) * 2 + 2 * SUM_BYTES + (int)sizeof(statistics<STREAM>);
    E *keys, *values, *buffers; /* buffers of two tiles of queries and of dout */
    E *gradients;               /* dS: a row for each query */
    unsigned char *sums;        /* two buffers for the sums of the previous block */
    statistics<STREAM> *known;

    __device__ block_memory(unsigned char *memory)
        : keys((E *)memory), values(keys + OWN * D), buffers(values + OWN * D),
          gradients(buffers + 4 * STREAM * D), sums((unsigned char *)(gradients + STREAM * OWN)),
          known((statistics<STREAM> *)(sums + 2 * SUM_BYTES))
    {
    }
    __device__ E *queries(int step) const
    {
        return buffers + step % 2 * 2 * STREAM * D;
    }
    __device__ uint4 *sum(int step) const
    {
        return (uint4 *)(sums + step % 2 * SUM_BYTES) + threadIdx.x;
    }
};

/* The n blocks of a sequence, and the tile of queries that block `own` has. */
struct ring {
    int n, own, round, turn;
    __device__ int query(void) const
    {
        int tile = own - turn;
        return (round + (tile < 0 ? tile + n : tile)) * STREAM;
    }
    __device__ void advance(void)
    {
        turn = turn + 1 < n ? turn + 1 : 0;
        round += turn == 0 ? n : 0;
    }
};

/* The place of a warp's rows of dq^T, which are its columns of dq. */
__device__ static inline int column_of_warp(void)
{
    return (int)(threadIdx.x % WARPGROUP / WARP) * SIDE;
}

/* Starts dq^T = K^T dS^T^T. */
template <typename E, int D>
__device__ static inline void start_queries(query_sums<D> &dq, const block_memory<E, D> &m, int group)
{
    uint64_t keys = over_rows<OWN>(m.keys), gradients = over_columns(m.gradients) + at_row(group / 2);
    UNROLL
    for (int c = 0; c < D / PANEL; c++) {
        begin_products(dq.of[c]);
        UNROLL
        for (int k = 0; k < OWN; k += SIDE) {
            wgmma_shared<1, 0>(dq.of[c], keys + at_column<OWN>(c * PANEL) + at_row(k),
                               gradients + at_column<STREAM>(k), k != 0, E());
        }
    }
    commit_products();
}

/* Adds the sums that the previous block has put here. */
template <int D> __device__ static inline void add_sums(query_sums<D> &dq, const uint4 *from)
{
    UNROLL
    for (int i = 0; i < D / PANEL * QUERY_SQUARES * 2; i++) {
        uint4 part = from[i * THREADS];
        float *four = dq.of[i / 2 / QUERY_SQUARES][i / 2 % QUERY_SQUARES].v + i % 2 * 4;
        four[0] += __uint_as_float(part.x);
        four[1] += __uint_as_float(part.y);
        four[2] += __uint_as_float(part.z);
        four[3] += __uint_as_float(part.w);
    }
}

/* Puts the sums into another block's shared memory. */
template <int D>
__device__ static inline void pass_sums_on(const query_sums<D> &dq, const uint4 *to, int block)
{
    uint32_t address = address_in_cluster(to, (uint32_t)block);
    UNROLL
    for (int i = 0; i < D / PANEL * QUERY_SQUARES * 2; i++) {
        const float *four = dq.of[i / 2 / QUERY_SQUARES][i / 2 % QUERY_SQUARES].v + i % 2 * 4;
        put_in_cluster(address + (uint32_t)(i * THREADS * sizeof(uint4)),
                       make_uint4(__float_as_uint(four[0]), __float_as_uint(four[1]),
                                  __float_as_uint(four[2]), __float_as_uint(four[3])));
    }
}

/* Writes the warp's columns of its 32 queries, through a tile that no product reads any more, and adds the
 * sum of column square_column(0, 1, 4 or 5) to that of this lane. */
template <typename E, int D>
__device__ static inline void store_queries(query_sums<D> &dq, float (&column_sums)[D / PANEL], E *tile,
                                            const launch_rows &to, const place &p, int first, int own,
                                            float scale)
{
    UNROLL
    for (int c = 0; c < D / PANEL; c++) {
        int column = c * PANEL + column_of_warp();
        factor rounded[QUERY_SQUARES];
        scale_squares(dq.of[c], scale);
        UNROLL
        for (int n = 0; n < QUERY_SQUARES; n++) {
            rounded[n] = left_factor<E>(dq.of[c][n]);
        }
        store_transposed<panels<STREAM>>(tile + own * PANEL, column, rounded);
        __syncwarp();
        UNROLL
        for (int n = 0; n < QUERY_SQUARES; n++) {
            int row = own + n * SIDE + lane_of_warp() / 2, piece = column + lane_of_warp() % 2 * EIGHT;
            if (first + row < p.n_q) {
                *(uint4 *)((E *)to.data + (int64_t)(p.q0 + first + row) * to.stride + p.head * D + piece) =
                    *(const uint4 *)(tile + panels<STREAM>::at(row, piece));
            }
            square sums = sum_over_rows<panels<STREAM>>(tile + (own + n * SIDE) * PANEL, column);
            int i = lane_of_warp() / QUAD % 4;
            column_sums[c] += i == 0 ? sums.v[0] : i == 1 ? sums.v[1] : i == 2 ? sums.v[4] : sums.v[5];
        }
    }
}

/* A block's work. */
template <typename E, int D> struct task {
    const launch_attention &a;
    const attention_rows &r;
    const place &p;
    block_memory<E, D> m;
    rows_of_warp rows;
    dropout_rule drop;

    __device__ void copy_queries(int step, int query) const
    {
        copy_pair<STREAM, D>(m.queries(step), r.q, r.dout, p.q0 + query, p.n_q - query, p.head);
    }
};

/* The place of a query's delta: the first columns of its row of dq. */
template <typename E, int D> __device__ static inline float *delta_of(const task<E, D> &t, int query)
{
    return (float *)((E *)t.r.dq.data + (int64_t)(t.p.q0 + query) * t.r.dq.stride + t.p.head * D);
}

/* The block computes those of every n-th tile of queries. */
template <typename E, int D> __device__ static inline void make_deltas(const task<E, D> &t, int n)
{
    ROLLED
    for (int first = (int)blockIdx.x * STREAM; first < t.p.n_q; first += n * STREAM) {
        int query = first + (int)(threadIdx.x / QUAD);
        float delta =
            dot_parts<E>(load_part<E, D>(t.r.out, t.p, query), load_part<E, D>(t.r.dout, t.p, query));
        if (lane_of_warp() % QUAD == 0 && query < t.p.n_q) {
            *delta_of(t, query) = delta;
        }
    }
}

/* A query's numbers while they are loaded: one query a thread, in the first threads of a block. */
struct query_numbers {
    float lse, delta;
    row_key key;

    template <typename E, int D> __device__ void load(const task<E, D> &t, int first)
    {
        int query = first + (int)threadIdx.x;
        if (threadIdx.x < STREAM) {
            lse = load_lse(t.a, t.r, t.p, query);
            delta = query < t.p.n_q ? *delta_of(t, query) : 0;
            key = t.drop.threshold != 0 && !t.drop.has_bits ? load_row_key(t.drop, query) : row_key{0, 0};
        }
    }
    __device__ void put(statistics<STREAM> *s) const
    {
        if (threadIdx.x < STREAM) {
            s->lse[threadIdx.x] = lse;
            s->delta[threadIdx.x] = delta;
            s->keys[threadIdx.x] = key;
        }
    }
};

/* The first tile of queries, keys and values; dS of keys that a warpgroup does not have is zero.  Afterwards
 * all blocks have begun, and may write into each other's memory. */
template <typename E, int D> __device__ static inline void begin(const task<E, D> &t, const ring &at)
{
    const factor none[STEPS] = {};
    query_numbers numbers;
    t.copy_queries(0, at.query());
    cp_async_commit();
    make_deltas(t, at.n);
    cluster_arrive();
    store_transposed<panels<STREAM>>(t.m.gradients, t.rows.own, none);
    cluster_wait();
    numbers.load(t, at.query());
    numbers.put(t.m.known);
    cp_async_wait<0>();
    fence_for_products();
    __syncthreads();
}

/* The stored dropout bits of the warp's keys and a tile of queries. */
template <typename E, int D> __device__ static inline uint32_t read_bits(const task<E, D> &t, int query)
{
    return t.p.first + t.rows.group < t.p.n_k && query < t.p.n_q ? read_by_key<STEPS>(t.drop, query) : 0;
}

/* Adds a tile of queries to dk and dv, and stores its dS in shared memory. */
template <typename E, int D>
__device__ static inline void pass_queries_by(square (&dk)[D / SIDE], square (&dv)[D / SIDE],
                                              const task<E, D> &t, int step, int query, uint32_t read)
{
    const E *queries = t.m.queries(step);
    E *to = t.m.gradients;
    int row = t.rows.own;
    auto spread = [&](int n, const auto &ds) { store_transposed<panels<STREAM>>(to + n * PANEL, row, ds); };
    pass_tile<E, D>(dk, dv, query_tile<E>{queries, queries + STREAM * D, t.m.known},
                    over_columns(t.m.keys) + at_row(t.rows.group),
                    over_columns(t.m.values) + at_row(t.rows.group), score_rule_of(t.a, t.p), t.drop, read,
                    query, t.p.first + row, t.a.dropout.scale, spread);
}

/* Adds the block's part to the sums of a tile of queries, which come from the previous block and go to the
 * next one, or to memory: the cluster's barrier does not wait for the latter. */
template <typename E, int D>
__device__ static inline void hand_on(query_sums<D> &dq, float (&sums)[D / PANEL], const task<E, D> &t,
                                      const ring &at, int step, int steps)
{
    int query = at.query();
    bool is_last = at.turn + 1 == at.n;
    if (at.turn > 0) {
        add_sums(dq, t.m.sum(step + 1));
    }
    if (!is_last) {
        pass_sums_on(dq, t.m.sum(step), at.own + 1 < at.n ? at.own + 1 : 0);
    }
    if (step + 1 < steps) {
        cluster_arrive();
    }
    if (is_last && query < t.p.n_q) {
        store_queries<E, D>(dq, sums, t.m.queries(step), t.r.dq, t.p, query, t.rows.group / 2, t.a.scale);
    }
}

/* All tiles of queries: dk and dv, without their scales, and the sums of the columns of dq that this block
 * has written. */
template <typename E, int D>
__device__ static inline void walk(square (&dk)[D / SIDE], square (&dv)[D / SIDE], float (&sums)[D / PANEL],
                                   task<E, D> t, ring at, int steps)
{
    bool has_keys = t.p.first + t.rows.group < t.p.n_k;
    uint32_t read = read_bits(t, at.query());
    begin(t, at);
    ROLLED
    for (int step = 0; step < steps; step++) {
        ring next = at;
        next.advance();
        t.rows = anew(t.rows);
        if (step + 1 < steps) {
            t.copy_queries(step + 1, next.query());
        }
        cp_async_commit();
        if (has_keys && at.query() < t.p.n_q) {
            pass_queries_by(dk, dv, t, step, at.query(), read);
        }
        query_numbers numbers;
        numbers.load(t, next.query());
        read = read_bits(t, next.query());
        cp_async_wait<0>();
        fence_for_products();
        __syncthreads();
        query_sums<D> dq;
        start_queries(dq, t.m, t.rows.group);
        numbers.put(t.m.known);
        UNROLL
        for (int c = 0; c < D / PANEL; c++) {
            wait_for_products<0>(dq.of[c]);
        }
        if (step > 0) {
            cluster_wait();
        }
        hand_on(dq, sums, t, at, step, steps);
        __syncthreads();
        at = next;
    }
}

/* Sums of the columns of dq: a warp has those of 16 columns of a panel. */
template <int D>
__device__ static inline void put_query_sums(const column_sums<D> &columns, const float (&sums)[D / PANEL])
{
    float *own = columns.of_warps + threadIdx.x / WARP * D;
    int i = lane_of_warp() / QUAD;
    UNROLL
    for (int c = 0; c < D; c += WARP) {
        own[c + lane_of_warp()] = 0;
    }
    __syncwarp();
    UNROLL
    for (int c = 0; c < D / PANEL && i < 4; c++) {
        own[c * PANEL + column_of_warp() + square_column(i / 2 * 4 + i % 2)] = sums[c];
    }
}

/* Stores the zero sums of a tile of the cluster that has no keys, of all its heads. */
template <int D>
__device__ static inline void clear_all_sums(const attention_rows &r, const launch_attention &a, place p)
{
    clear_sums<D>(r, a, p, 1, 2);
    for (int end = p.head + heads_of_group(a); p.head < end; p.head++) {
        clear_sums<D>(r, a, p, 0, 1);
    }
}

/* HAS_BITS: dropout's bits are read; else the code that draws them is compiled in. */
template <typename E, int D, bool HAS_BITS>
__global__ __launch_bounds__(THREADS, room<D>::BLOCKS) static void attention_wgmma_cluster_kernel(
    launch_attention a, attention_rows r, const uint64_t *dropout_key)
{
    SHARED_TILES(memory);
    place p;
    clear_outside_queries<E>(a, r.dq, heads_of_group(a));
    clear_outside_keys<E>(a, r.dk, r.dv);
    find_place(&p, a, false, OWN);
    int n = p.n_k > OWN ? (p.n_k + OWN - 1) / OWN : 1, rounds = (p.n_q + n * STREAM - 1) / (n * STREAM);
    if ((int)blockIdx.x >= n) {
        if ((int)blockIdx.x < r.tiles) {
            clear_all_sums<D>(r, a, p);
        }
        return;
    }
    const block_memory<E, D> m(memory);
    const rows_of_warp rows = find_rows();
    const column_sums<D> columns = {(float *)m.buffers};
    square dk[D / SIDE], dv[D / SIDE];
    int own = rows.own * PANEL, key = p.first + rows.own;
    clear_squares(dk);
    clear_squares(dv);
    copy_pair<OWN, D>(m.keys, r.k, r.v, p.k0 + p.first, p.n_k - p.first, p.kv_head);
    cp_async_commit();
    ROLLED
    for (int end = p.head + heads_of_group(a); p.head < end; p.head++) {
        task<E, D> t = {a, r, p, m, rows, dropout_rule_of(a, p, dropout_key, 0, key)};
        t.drop.has_bits = HAS_BITS;
        float sums[D / PANEL] = {};
        if (rounds > 0) {
            walk(dk, dv, sums, t, ring{n, (int)blockIdx.x, 0, 0}, rounds * n);
        }
        if (r.partial_sums != NULL) {
            put_query_sums(columns, sums);
            finish_sums(r, a, p, columns, 0, 1);
            __syncthreads(); /* the next head's queries are copied there */
        }
    }
    cp_async_wait<0>();
    __syncthreads();
    scale_squares(dk, a.scale);
    scale_squares(dv, a.dropout.scale);
    store_rows<panels<OWN>>(r.dk, p.k0 + key, p.n_k - key, p.kv_head * D, dk, m.keys + own);
    store_rows<panels<OWN>>(r.dv, p.k0 + key, p.n_k - key, p.kv_head * D, dv, m.values + own);
    if (r.partial_sums != NULL) {
        columns.put(0, m.keys + own);
        columns.put(1, m.values + own);
        finish_sums(r, a, p, columns, 1, 2);
    }
}

template <typename E, int D>
static void launch_backward(const launch *l, const launch_attention *a, const attention_rows *r)
{
    const int bytes = block_memory<E, D>::BYTES;
    auto *cluster = a->bits != NULL ? attention_wgmma_cluster_kernel<E, D, true>
                                    : attention_wgmma_cluster_kernel<E, D, false>;
    dim3 grid = attention_key_grid(a, a->max_seqlen_kv, OWN);
    grid.x = grid.x > 2 ? MOST_BLOCKS : grid.x; /* a size that all chips with clusters have */
    cudaFuncSetAttribute(cluster, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    LAUNCH_CLUSTERS(l, cluster, grid, THREADS, bytes, *a, *r, l->dropout_key);
}

void attention_wgmma_cluster_backward(const launch *l, const launch_attention *a, const attention_rows *r,
                                      launch_type type)
{
    if (type == LAUNCH_BF16) {
        BY_PANELS(launch_backward, bf16, a->head_size, l, a, r);
    } else {
        BY_PANELS(launch_backward, f16, a->head_size, l, a, r);
    }
}
