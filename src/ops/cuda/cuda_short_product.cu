/* cuda_short_product: products of few rows with the matrix instructions of sm_90a, C = A B^T + bias and gelu(C) in one
 * launch, for bf16 and fp16.  Matrix products are the library's work; why there is this one:
 * docs/decisions/0034_own_product_for_few_tokens.md.
 *
 * A block owns a tile of C, a warpgroup 64 rows of it, whose sums it keeps in registers.  Both factors lie along k and
 * pass by 64 columns at a time, through a ring of tiles in shared memory that cp.async fills some steps ahead.  Products
 * of a step are given before those of the step before are waited for, so the matrix units have work while copies are
 * started; a tile is filled anew two steps after it was read, so one barrier a step is enough.
 *
 * Deterministic: a sum runs over k in one thread group's order.  C is rounded once, with its bias, and gelu is that of
 * the rounded number, in the erf form of ops.h. */
#include "ops/cuda/gelu_code.cuh"
#include "ops/cuda/warpgroup_code.cuh"

/* A tile of 64 GROUPS rows and 16 N columns, and the ring that feeds it. */
template <int GROUPS, int N> struct product_cut {
    static const int ROWS = GROUPS * GROUP_ROWS, COLUMNS = N * SIDE, WORKERS = GROUPS * WARPGROUP;
    static const int STEP = (ROWS + COLUMNS) * PANEL; /* elements of both factors */
    static const int MOST_STAGES = (192 << 10) / (STEP * 2), STAGES = MOST_STAGES < 8 ? MOST_STAGES : 8;
    static const int BYTES = STAGES * STEP * 2 + COLUMNS * (int)sizeof(float); /* a bias behind the ring */
};

/* Starts to copy a step of both factors, if there is one. */
template <typename CUT, typename E>
__device__ static inline void start_step(E *tiles, const launch_product &p, int row, int column, int step)
{
    if (step * PANEL < (int)p.k) {
        start_copy<CUT::ROWS, PANEL, CUT::WORKERS, panels<CUT::ROWS>>(tiles, p.a, row, (int)p.m - row,
                                                                      step * PANEL);
        start_copy<CUT::COLUMNS, PANEL, CUT::WORKERS, panels<CUT::COLUMNS>>(
            tiles + CUT::ROWS * PANEL, p.b, column, (int)p.n - column, step * PANEL);
    }
    cp_async_commit();
}

/* The bias of the tile's columns, while the first steps are on their way. */
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

/* sums = the tile of A B^T; the bias is there too. */
template <typename CUT, typename E, int N>
__device__ static inline void multiply(square (&sums)[N], E *ring, float *bias, const launch_product &p,
                                       int row, int column)
{
    const int STAGES = CUT::STAGES, AHEAD = STAGES - 2;
    clear_squares(sums);
    ROLLED
    for (int i = 0; i < AHEAD; i++) {
        start_step<CUT>(ring + i * CUT::STEP, p, row, column, i);
    }
    load_bias<CUT, E>(bias, p, column);
    int n_steps = (int)p.k / PANEL, read = 0, filled = AHEAD;
    ROLLED
    for (int i = 0; i < n_steps; i++) {
        E *a = ring + read * CUT::STEP, *b = a + CUT::ROWS * PANEL;
        cp_async_wait<AHEAD - 1>();
        fence_for_products();
        __syncthreads();
        begin_products(sums);
        multiply_over_columns<E, PANEL, CUT::ROWS, CUT::COLUMNS>(
            sums, over_columns(a) + at_row(warpgroup_of_block() * GROUP_ROWS), over_columns(b), true);
        commit_products();
        start_step<CUT>(ring + filled * CUT::STEP, p, row, column, i + AHEAD);
        wait_for_tiles<1>();
        read = read + 1 < STAGES ? read + 1 : 0;
        filled = filled + 1 < STAGES ? filled + 1 : 0;
    }
    wait_for_products<0>(sums);
    cp_async_wait<0>();
    __syncthreads();
}

/* sums += bias, rounded to E. */
template <typename E, int N> __device__ static inline void add_bias(square (&sums)[N], const float *bias)
{
    UNROLL
    for (int i = 0; i < N * 4; i++) {
        float *pair = &sums[i / 4].v[i % 4 * 2];
        const float *b = bias + i / 4 * SIDE + square_column(i % 4 * 2);
        uint32_t word = pack_two(pair[0] + b[0], pair[1] + b[1], E());
        pair[0] = to_float(E{(uint16_t)word});
        pair[1] = to_float(E{(uint16_t)(word >> 16)});
    }
}

template <typename E, int GROUPS, int N>
__global__ __launch_bounds__(GROUPS *WARPGROUP, 1) static void short_product_kernel(early_start start,
                                                                                    launch_product p)
{
    typedef product_cut<GROUPS, N> cut;
    SHARED_TILES(memory);
    start.wait();
    E *ring = (E *)memory;
    float *bias = (float *)(ring + cut::STAGES * cut::STEP);
    int row = (int)blockIdx.x * cut::ROWS, column = (int)blockIdx.y * cut::COLUMNS;
    square sums[N];
    multiply<cut>(sums, ring, bias, p, row, column);
    add_bias<E>(sums, bias);
    int own = (int)(threadIdx.x / WARP) * SIDE, n_rows = (int)p.m - row - own, n_columns = (int)p.n - column;
    E *tile = ring + own * PANEL;
    if (p.c.data != p.gelu) {
        store_rows<panels<cut::ROWS>>(p.c, row + own, n_rows, column, sums, tile, n_columns);
    }
    if (p.gelu != NULL) {
        UNROLL
        for (int i = 0; i < N * 8; i++) {
            sums[i / 8].v[i % 8] = gelu<E>(sums[i / 8].v[i % 8]);
        }
        store_rows<panels<cut::ROWS>>(launch_rows{p.gelu, p.n}, row + own, n_rows, column, sums, tile,
                                      n_columns);
    }
}

template <typename E, int GROUPS, int N> static void launch_tiles(const launch *l, const launch_product *p)
{
    typedef product_cut<GROUPS, N> cut;
    cudaFuncSetAttribute(short_product_kernel<E, GROUPS, N>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         cut::BYTES);
    dim3 grid(blocks_of(p->m, cut::ROWS), blocks_of(p->n, cut::COLUMNS)); /* neighbours share weights */
    LAUNCH_EARLY_SHARED(l, (short_product_kernel<E, GROUPS, N>), grid, cut::WORKERS, cut::BYTES, *p);
}

template <typename E>
static void launch_product_of(const launch *l, launch_product_tile tile, const launch_product *p)
{
    switch (tile) {
    case LAUNCH_TILE_64_64: launch_tiles<E, 1, 4>(l, p); break;
    case LAUNCH_TILE_64_128: launch_tiles<E, 1, 8>(l, p); break;
    case LAUNCH_TILE_64_192: launch_tiles<E, 1, 12>(l, p); break;
    default: launch_tiles<E, 2, 8>(l, p);
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
