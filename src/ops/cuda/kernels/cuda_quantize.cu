/* cuda_quantize: a tensor rounded to fp8 under one scale, by rows and, transposed through shared memory, by
 * columns.
 *
 * A tensor with a history is rounded with the scale of the step before, while the kernel finds the largest
 * element.  If that does not fit the scale, a second kernel rounds again; else its blocks exit at once.
 * Without a history the scale is that of the largest element.  The kernel that wrote the tensor may have
 * noted it as maxima; else a kernel before this one finds it, and also sums the columns if a bias's gradient
 * is wanted (cuda_sums.cu).  Bound by memory: for [T, I] in bf16 2 TI bytes are read, twice if the largest
 * element must be found first, and TI + TI written as fp8, or 2 TI if fp8 is kept in
 * bf16. */
#include "ops/cuda/kernels/round_code.cuh"

/* Magnitudes compared as bits: these sort like the numbers, with infinity and NaN on top. */
template <typename A>
__global__ static void __launch_bounds__(TILE_THREADS)
    maxima_kernel(uint32_t *maxima, read_source<A, false> in, tiling t)
{
    uint32_t largest = 0;
    for (tile_walk w = walk_begin(t); w.down < t.down; walk_on(&w, t)) {
        patch<read_source<A, false>> p = load_patch(in, t, w);
        UNROLL
        for (int r = 0; r < ROWS_OF_THREAD; r++) {
            eight e = unpack(p.in[r]);
            UNROLL
            for (int i = 0; i < EIGHT; i++) {
                uint32_t bits = __float_as_uint(e.v[i]) & 0x7fffffffU;
                largest = bits > largest ? bits : largest;
            }
        }
    }
    largest = block_max(largest);
    if (threadIdx.x == 0) {
        maxima[blockIdx.x] = largest;
    }
}

/* The scale of the full tensor; block 0 writes it. */
template <typename F>
__device__ static inline float find_scale(const round_to &to, const uint32_t *maxima, int n)
{
    uint32_t largest = 0;
    for (int i = threadIdx.x; i < n; i += TILE_THREADS) {
        largest = maxima[i] > largest ? maxima[i] : largest;
    }
    largest = block_max(largest);
    if (to.now != NULL) { /* the larger of both is the same, whether block 0 has raised it yet or not */
        uint32_t earlier = *(volatile uint32_t *)to.now;
        largest = earlier > largest ? earlier : largest;
    }
    bool fits = to.now != NULL && fp8_fits<F>(*to.before, largest);
    float found = fits ? fp8_scale_before<F>(*to.before) : fp8_scale<F>(largest);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *to.scale = found;
        if (to.now != NULL) {
            atomicMax(to.now, largest);
        }
    }
    return found;
}

/* A number rounded to fp8 with this scale, as an A. */
template <typename A, typename F>
__global__ static void __launch_bounds__(TILE_THREADS)
    hold_kernel(round_to to, const uint32_t *maxima, int n_maxima, read_source<A, false> in, tiling t)
{
    tile_walk w = walk_begin(t);
    patch<read_source<A, false>> p = load_patch(in, t, w); /* under way while the scale is found */
    float s = find_scale<F>(to, maxima, n_maxima), inverse = 1.0f / s; /* exact, of a power of two */
    while (w.down < t.down) {
        UNROLL
        for (int r = 0; r < ROWS_OF_THREAD; r++) {
            eight e = unpack(p.in[r]);
            UNROLL
            for (int i = 0; i < EIGHT; i++) {
                e.v[i] = s * fp8_round<F>(inverse * e.v[i]);
            }
            store_eight((A *)to.rows.data + (p.row + r) * to.rows.stride, p.column,
                        p.row + r < t.rows ? t.cols : 0, e);
        }
        walk_on(&w, t);
        p = load_patch(in, t, w);
    }
}

/* Rounds with the scale of the largest element, which is known. */
template <typename Source, typename F>
__global__ static void __launch_bounds__(TILE_THREADS)
    round_kernel(round_to to, const uint32_t *maxima, int n_maxima, Source in, tiling t)
{
    tile_walk w = walk_begin(t);
    patch<Source> p = load_patch(in, t, w); /* under way while the scale is found */
    float inverse = 1.0f / find_scale<F>(to, maxima, n_maxima);
    round_tiles<Source, F, false>(to, in, t, w, p, inverse);
}

template <typename A, typename F>
static void round_found(const launch *l, const launch_quantize *q, const tiling &t, const uint32_t *maxima,
                        int parts)
{
    const void *addresses[] = {q->in.data};
    unsigned blocks = tile_blocks(t, read_source<A, true>::MOST_BLOCKS);
    if (q->held) {
        LAUNCH(l, (hold_kernel<A, F>), blocks, TILE_THREADS, 0, round_to_of(q->to), maxima, parts,
               (read_source<A, false>{q->in}), t);
    } else if (rows_are_whole(q->n_cols, addresses, 1) && q->in.stride % EIGHT == 0) {
        LAUNCH(l, (round_kernel<read_source<A, true>, F>), blocks, TILE_THREADS, 0, round_to_of(q->to),
               maxima, parts, (read_source<A, true>{q->in}), t);
    } else {
        LAUNCH(l, (round_kernel<read_source<A, false>, F>), blocks, TILE_THREADS, 0, round_to_of(q->to),
               maxima, parts, (read_source<A, false>{q->in}), t);
    }
}

/* Finds the maxima of a tensor that has none, in scratch before the partial sums of columns, if those are
 * summed in the same pass; *n is their number. */
template <typename A>
static const uint32_t *find_maxima(const launch *l, const launch_quantize *q, const tiling &t, int *n)
{
    uint32_t *maxima = (uint32_t *)l->scratch;
    if (q->dbias != NULL && q->n_rows > 0) {
        launch behind = *l;
        behind.scratch += LAUNCH_MOST_MAXIMA;
        cuda_launch_column_sum(&behind, q->dbias, q->in, q->type, q->n_rows, q->n_cols, q->runs, maxima);
        return maxima;
    }
    *n = (int)tile_blocks(t, LAUNCH_MOST_MAXIMA);
    LAUNCH(l, maxima_kernel<A>, *n, TILE_THREADS, 0, maxima, (read_source<A, false>{q->in}), t);
    return maxima;
}

/* Rounds after finding the scale. */
template <typename A, typename F> static void find_and_round(const launch *l, const launch_quantize *q)
{
    tiling t = tiling_of(q->n_rows, q->n_cols);
    int parts = LAUNCH_MOST_MAXIMA;
    const uint32_t *maxima = q->maxima;
    if (maxima == NULL) {
        maxima = find_maxima<A>(l, q, t, &parts);
    } else if (q->dbias != NULL) {
        cuda_launch_column_sum(l, q->dbias, q->in, q->type, q->n_rows, q->n_cols, q->runs, NULL);
    }
    round_found<A, F>(l, q, t, maxima, parts);
}

template <typename A, typename F> static void quantize(const launch *l, const launch_quantize *q)
{
    if (q->to.history == NULL || q->held) {
        find_and_round<A, F>(l, q);
        return;
    }
    if (q->dbias != NULL) {
        cuda_launch_column_sum(l, q->dbias, q->in, q->type, q->n_rows, q->n_cols, q->runs, NULL);
    }
    round_stored<A, F>(l, round_to_of(q->to), q->in, q->n_rows, q->n_cols);
}

void cuda_launch_quantize(const launch *l, const launch_quantize *q)
{
    if (q->to.format == LAUNCH_E4M3) {
        BY_TYPE(q->type, quantize<A, e4m3>(l, q));
    } else {
        BY_TYPE(q->type, quantize<A, e5m2>(l, q));
    }
}

int cuda_launch_fp8_is_possible(void)
{
    cudaFuncAttributes attributes = {};
    bool possible =
        cudaFuncGetAttributes(&attributes, round_kernel<read_source<bf16, true>, e4m3>) == cudaSuccess &&
        attributes.ptxVersion >= 89;
    cudaGetLastError(); /* forgets a failure */
    return possible;
}
