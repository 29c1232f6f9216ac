/* cuda_short_product: products of few rows with the matrix instructions of sm_90a, C = A B^T + bias and
 * gelu(C) in one launch, for bf16 and fp16.  The library computes all other matrix products; why this one
 * exists: docs/decisions/0034_own_product_for_few_tokens.md.
 *
 * A block owns a tile of C, a warpgroup 64 rows of it, whose sums it keeps in registers.  Both factors are
 * stored along k and are read 64 columns at a time, through a ring of tiles in shared memory that cp.async
 * fills some steps ahead.  The products of a step are issued before those of the previous step are waited
 * for, so the matrix units have work while copies are started.  A tile is refilled two steps after it was
 * read, so one barrier per step is enough.
 *
 * If there are few tiles and k is long, a cluster of four blocks computes a tile, each block a part of k.
 * They send each other sums through distributed shared memory, and each finishes a quarter of the columns.
 *
 * Deterministic: a sum runs over k in a fixed order, and its parts are added in a fixed order.  C is rounded
 * once, with its bias, and gelu is computed from the rounded number, in the erf form of ops.h. */
#include "ops/cuda/kernels/gelu_code.cuh"
#include "ops/cuda/kernels/warpgroup_code.cuh"

/* A tile of 64 GROUPS rows and 16 N columns, which PARTS blocks share, each with a part of k, and its ring of
 * input tiles. */
template <int GROUPS, int N, int PARTS_> struct product_cut {
    static const int PARTS = PARTS_, SHARE = N / PARTS; /* squares side by side that a block finishes */
    static const int ROWS = GROUPS * GROUP_ROWS, COLUMNS = N * SIDE, WORKERS = GROUPS * WARPGROUP;
    static const int STEP = (ROWS + COLUMNS) * PANEL;            /* elements of both factors */
    static const int PLACES = PARTS > 1 ? ROWS *COLUMNS * 4 : 0; /* bytes for sums of all parts */
    static const int BIAS = COLUMNS * 4;
    static const int MOST_STAGES = ((226 << 10) - PLACES - BIAS) / (STEP * 2);
    static const int STAGES = MOST_STAGES < 8 ? MOST_STAGES : 8;
    static const int BYTES = STAGES * STEP * 2 + PLACES + BIAS;
    static_assert(N % PARTS == 0 && STAGES >= 4, "a tile without a ring");
};

/* The work of a block. */
struct tile_of_product {
    int row, column, part, first_step, end_step;
};

template <typename CUT> __device__ static inline tile_of_product find_tile(const launch_product &p)
{
    int steps = (int)p.k / PANEL, part = (int)blockIdx.x;
    return tile_of_product{(int)blockIdx.y * CUT::ROWS, (int)blockIdx.z * CUT::COLUMNS, part,
                           steps * part / CUT::PARTS, steps * (part + 1) / CUT::PARTS};
}

/* Starts to copy one step of both factors, if there is one. */
template <typename CUT, typename E>
__device__ static inline void start_step(E *tiles, const launch_product &p, const tile_of_product &t,
                                         int step)
{
    if (step < t.end_step) {
        start_copy<CUT::ROWS, PANEL, CUT::WORKERS, panels<CUT::ROWS>>(tiles, p.a, t.row, (int)p.m - t.row,
                                                                      step * PANEL);
        start_copy<CUT::COLUMNS, PANEL, CUT::WORKERS, panels<CUT::COLUMNS>>(
            tiles + CUT::ROWS * PANEL, p.b, t.column, (int)p.n - t.column, step * PANEL);
    }
    cp_async_commit();
}

/* Loads the bias of the tile's columns, while the first steps are being copied. */
template <typename CUT, typename E>
__device__ static inline void load_bias(float *bias, const launch_product &p, int column)
{
    ROLLED
    for (int c = (int)threadIdx.x; c < CUT::COLUMNS; c += CUT::WORKERS) {
        bool there = p.bias != NULL && column + c < (int)p.n;
        bias[c] = !there            ? 0.0f
                  : p.bias_is_float ? ((const float *)p.bias)[column + c]
                                    : to_float(((const E *)p.bias)[column + c]);
    }
}

/* sums = the tile of A B^T, or of this part of k; the bias has been loaded when it returns. */
template <typename CUT, typename E, int N>
__device__ static inline void multiply(square (&sums)[N], E *ring, float *bias, const launch_product &p,
                                       const tile_of_product &t)
{
    const int STAGES = CUT::STAGES, AHEAD = STAGES - 2;
    clear_squares(sums);
    ROLLED
    for (int i = 0; i < AHEAD; i++) {
        start_step<CUT>(ring + i * CUT::STEP, p, t, t.first_step + i);
    }
    load_bias<CUT, E>(bias, p, t.column);
    int read = 0, filled = AHEAD;
    ROLLED
    for (int i = t.first_step; i < t.end_step; i++) {
        E *a = ring + read * CUT::STEP, *b = a + CUT::ROWS * PANEL;
        cp_async_wait<AHEAD - 1>();
        fence_for_products();
        __syncthreads();
        begin_products(sums);
        multiply_over_columns<E, PANEL, CUT::ROWS, CUT::COLUMNS>(
            sums, over_columns(a) + at_row(warpgroup_of_block() * GROUP_ROWS), over_columns(b), true);
        commit_products();
        start_step<CUT>(ring + filled * CUT::STEP, p, t, i + AHEAD);
        wait_for_tiles<1>();
        read = read + 1 < STAGES ? read + 1 : 0;
        filled = filled + 1 < STAGES ? filled + 1 : 0;
    }
    wait_for_products<0>(sums);
    cp_async_wait<0>();
    __syncthreads();
}

/* All blocks of a cluster have sums of the tile over their part of k.  Each block sends every other block the
 * columns which that block finishes, to where the same thread reads them, and adds what it has received in
 * the order of parts.  This thread has already arrived at the barrier that shows that all blocks run. */
template <typename CUT, int N>
__device__ static inline void add_parts(square (&own)[CUT::SHARE], const square (&sums)[N], uint4 *places,
                                        int part)
{
    const int PIECES = 2 * CUT::SHARE; /* pieces of 16 bytes */
    uint4 *mine = places + threadIdx.x;
    cluster_wait();
    UNROLL
    for (int to = 0; to < CUT::PARTS; to++) {
        uint32_t address = address_in_cluster(mine + part * PIECES * CUT::WORKERS, (uint32_t)to);
        UNROLL
        for (int i = 0; i < PIECES; i++) {
            const float *v = &sums[to * CUT::SHARE + i / 2].v[i % 2 * 4];
            put_in_cluster(address + (uint32_t)(i * CUT::WORKERS * (int)sizeof(uint4)),
                           make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                                      __float_as_uint(v[3])));
        }
    }
    cluster_arrive();
    cluster_wait();
    clear_squares(own);
    UNROLL
    for (int i = 0; i < CUT::PARTS * PIECES; i++) {
        uint4 four = mine[i * CUT::WORKERS];
        float *v = &own[i % PIECES / 2].v[i % 2 * 4];
        v[0] += __uint_as_float(four.x), v[1] += __uint_as_float(four.y);
        v[2] += __uint_as_float(four.z), v[3] += __uint_as_float(four.w);
    }
}

/* sums += bias. */
template <int N> __device__ static inline void add_bias(square (&sums)[N], const float *bias)
{
    UNROLL
    for (int i = 0; i < N * 8; i++) {
        sums[i / 8].v[i % 8] += bias[i / 8 * SIDE + square_column(i % 8)];
    }
}

/* sums = gelu of what they are rounded to. */
template <typename E, int N> __device__ static inline void apply_gelu(square (&sums)[N])
{
    UNROLL
    for (int i = 0; i < N * 4; i++) {
        float *pair = &sums[i / 4].v[i % 4 * 2];
        uint32_t word = pack_two(pair[0], pair[1], E());
        pair[0] = gelu<E>(to_float(E{(uint16_t)word}));
        pair[1] = gelu<E>(to_float(E{(uint16_t)(word >> 16)}));
    }
}

/* Writes a warp's rows of sums, one panel at a time, through the memory of the ring. */
template <typename CUT, typename E, int N>
__device__ static inline void store_panels(launch_rows to, const square (&sums)[N], E *ring,
                                           const launch_product &p, int row, int column)
{
    const int SQUARES = N < PANEL / SIDE ? N : PANEL / SIDE;
    int own = (int)(threadIdx.x / WARP) * SIDE;
    UNROLL
    for (int first = 0; first < N; first += SQUARES, column += PANEL) {
        square some[SQUARES];
        UNROLL
        for (int i = 0; i < SQUARES; i++) {
            some[i] = sums[first + i];
        }
        store_rows<panels<CUT::ROWS>>(to, row + own, (int)p.m - row - own, column, some, ring + own * PANEL,
                                      (int)p.n - column);
    }
}

/* Writes columns of C and of gelu(C). */
template <typename CUT, typename E, int N>
__device__ static inline void finish(square (&sums)[N], E *ring, const float *bias, const launch_product &p,
                                     int row, int column)
{
    add_bias(sums, bias);
    if (p.c.data != p.gelu) {
        store_panels<CUT>(p.c, sums, ring, p, row, column);
    }
    if (p.gelu != NULL) {
        apply_gelu<E>(sums);
        store_panels<CUT>(launch_rows{p.gelu, p.n}, sums, ring, p, row, column);
    }
}

template <typename E, int GROUPS, int N, int PARTS>
__global__ __launch_bounds__(GROUPS *WARPGROUP, 1) static void short_product_kernel(early_start start,
                                                                                    launch_product p)
{
    typedef product_cut<GROUPS, N, PARTS> cut;
    SHARED_TILES(memory);
    start.wait();
    E *ring = (E *)memory;
    uint4 *places = (uint4 *)(ring + cut::STAGES * cut::STEP);
    float *bias = (float *)((unsigned char *)places + cut::PLACES);
    tile_of_product t = find_tile<cut>(p);
    square sums[N];
    if constexpr (PARTS > 1) {
        square own[cut::SHARE];
        int column = t.part * cut::SHARE * SIDE;
        cluster_arrive();
        multiply<cut>(sums, ring, bias, p, t);
        add_parts<cut>(own, sums, places, t.part);
        finish<cut>(own, ring, bias + column, p, t.row, t.column + column);
    } else {
        multiply<cut>(sums, ring, bias, p, t);
        finish<cut>(sums, ring, bias, p, t.row, t.column);
    }
}

template <typename E, int GROUPS, int N, int PARTS>
static void launch_tiles(const launch *l, const launch_product *p)
{
    typedef product_cut<GROUPS, N, PARTS> cut;
    auto *kernel = short_product_kernel<E, GROUPS, N, PARTS>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, cut::BYTES);
    dim3 grid(PARTS, blocks_of(p->m, cut::ROWS),
              blocks_of(p->n, cut::COLUMNS)); /* neighbours share weights */
    LAUNCH_EARLY_CLUSTERS(l, (short_product_kernel<E, GROUPS, N, PARTS>), grid, cut::WORKERS, cut::BYTES, *p);
}

template <typename E>
static void launch_product_of(const launch *l, launch_product_tile tile, const launch_product *p)
{
    switch (tile) {
    case LAUNCH_TILE_64_64: launch_tiles<E, 1, 4, 1>(l, p); break;
    case LAUNCH_TILE_64_128: launch_tiles<E, 1, 8, 1>(l, p); break;
    case LAUNCH_TILE_64_192: launch_tiles<E, 1, 12, 1>(l, p); break;
    case LAUNCH_TILE_128_128: launch_tiles<E, 2, 8, 1>(l, p); break;
    case LAUNCH_TILE_64_64_BY_4: launch_tiles<E, 1, 4, 4>(l, p); break;
    default: launch_tiles<E, 2, 8, 4>(l, p);
    }
}

int cuda_short_product_is_possible(void)
{
    static const bool there = warpgroup_is_there();
    return there;
}

void cuda_launch_short_product(const launch *l, launch_product_tile tile, const launch_product *p,
                               launch_type type)
{
    if (type == LAUNCH_BF16) {
        launch_product_of<bf16>(l, tile, p);
    } else {
        launch_product_of<f16>(l, tile, p);
    }
}
