/* cuda_sums: sums over the rows of a matrix, such as gradients of biases: of a stored matrix, or of GELU's
 * gradient while it is computed.
 *
 * A block owns 256 columns of a run of rows, a lane eight columns, a warp every fourth row.  Bound by memory:
 * matrices are read once, and enough runs are summed in parallel to keep the device busy for any shape. */
#include "ops/cuda/kernels/gelu_code.cuh"
#include "ops/cuda/kernels/maxima_code.cuh"
#include "ops/cuda/kernels/sums_code.cuh"

enum { RUN_WARPS = 16 };

/* A block owns 32 columns, a warp every 16th run. */
__global__ static void add_runs_kernel(run_totals totals, const float *partials, int64_t runs, int64_t n)
{
    __shared__ float sums[RUN_WARPS][WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t column = (int64_t)blockIdx.x * WARP + lane;
    float *total = blockIdx.y == 0   ? totals.vector[0]
                   : blockIdx.y == 1 ? totals.vector[1]
                                     : totals.vector[2],
          sum = 0;
    const float *own = partials + blockIdx.y * runs * n;
    if (total == NULL) {
        return;
    }
    UNROLL_BY(8)
    for (int64_t r = warp; r < runs; r += RUN_WARPS) {
        sum += column < n ? own[r * n + column] : 0.0f;
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < n) {
        for (int w = 1; w < RUN_WARPS; w++) {
            sum += sums[w][lane];
        }
        total[column] += sum;
    }
}

void add_runs(const launch *l, const run_totals &totals, int n_totals, const float *partials, int64_t runs,
              int64_t n)
{
    dim3 grid(blocks_of(n, WARP), (unsigned)n_totals);
    LAUNCH(l, add_runs_kernel, grid, RUN_WARPS * WARP, 0, totals, partials, runs, n);
}

static const int COLUMNS = WARP * EIGHT, WARPS = BLOCK / WARP, DEPTH = 4;

/* Matrices [rows, cols] to sum over rows: `load` reads a part of a row, and `take` gives the numbers to
 * add. */
template <typename A, bool WHOLE> struct plain_rows {
    typedef A element;
    launch_rows in;
    int64_t cols;
    typedef packed_eight<A> loaded;

    __device__ loaded load(int64_t row, int64_t column) const
    {
        return load_group<WHOLE>((const A *)in.data + row * in.stride, column, cols);
    }
    __device__ eight take(const loaded &part, int64_t, int64_t) const
    {
        return unpack(part);
    }
};

/* Computes dpre = dout gelu'(pre) while summing it. */
template <typename A, bool WHOLE> struct gelu_rows {
    typedef A element;
    A *dpre;
    const A *dout, *pre;
    int64_t cols;
    struct loaded {
        packed_eight<A> dout, pre;
    };

    __device__ loaded load(int64_t row, int64_t column) const
    {
        return loaded{load_group<WHOLE>(dout + row * cols, column, cols),
                      load_group<WHOLE>(pre + row * cols, column, cols)};
    }
    __device__ eight take(const loaded &part, int64_t row, int64_t column) const
    {
        eight e = unpack(part.dout), z = unpack(part.pre);
        UNROLL
        for (int k = 0; k < EIGHT; k++) {
            e.v[k] *= gelu_slope<A>(z.v[k]);
        }
        store_group<WHOLE>(dpre + row * cols, column, cols, e);
        return e;
    }
};

/* RAISES: there are more blocks than maxima; these were cleared before. */
template <typename Rows, bool RAISES>
__global__ static void column_partials_kernel(float *partials, uint32_t *maxima, Rows of, int64_t rows)
{
    __shared__ float sums[WARPS][COLUMNS];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t runs = gridDim.y, first = rows * blockIdx.y / runs, end = rows * (blockIdx.y + 1) / runs;
    int64_t left = (int64_t)blockIdx.x * COLUMNS, column = left + lane * EIGHT;
    eight sum = {};
    float largest = 0;
    if (column >= of.cols) {
        first = end; /* nothing of a row is this lane's */
    }
    for (int64_t row = first + warp; row < end; row += DEPTH * WARPS) {
        typename Rows::loaded next[DEPTH];
        UNROLL
        for (int d = 0; d < DEPTH; d++) {
            if (row + d * WARPS < end) {
                next[d] = of.load(row + d * WARPS, column);
            }
        }
        UNROLL
        for (int d = 0; d < DEPTH; d++) {
            if (row + d * WARPS < end) {
                eight e = of.take(next[d], row + d * WARPS, column);
                add_eight(&sum, e);
                take_largest(&largest, e); /* beyond the end all are 0 */
            }
        }
    }
    if (RAISES) {
        raise_maxima<typename Rows::element>(maxima, largest);
    } else {
        assign_maxima<typename Rows::element>(maxima, largest);
    }
    store_eight(sums[warp], lane * EIGHT, COLUMNS, sum);
    __syncthreads();
    for (int c = threadIdx.x; c < COLUMNS && left + c < of.cols; c += BLOCK) {
        float total = sums[0][c];
        for (int w = 1; w < WARPS; w++) {
            total += sums[w][c];
        }
        partials[blockIdx.y * of.cols + left + c] = total;
    }
}

template <typename Rows>
static void sum_columns(const launch *l, float *total, const Rows &of, int64_t rows, int64_t runs,
                        uint32_t *maxima)
{
    dim3 grid(blocks_of(of.cols, COLUMNS), (unsigned)runs);
    if (maxima != NULL && grid.x * grid.y > LAUNCH_MOST_MAXIMA) {
        clear_maxima(l, maxima);
        LAUNCH(l, (column_partials_kernel<Rows, true>), grid, BLOCK, 0, l->scratch, maxima, of, rows);
    } else {
        LAUNCH(l, (column_partials_kernel<Rows, false>), grid, BLOCK, 0, l->scratch, maxima, of, rows);
    }
    add_runs(l, run_totals{{total}}, 1, l->scratch, runs, of.cols);
}

void cuda_launch_column_sum(const launch *l, float *total, launch_rows in, launch_type type, int64_t rows,
                            int64_t cols, int64_t runs, uint32_t *maxima)
{
    const void *addresses[] = {in.data};
    bool whole = rows_are_whole(cols, addresses, 1) && in.stride % EIGHT == 0;
    if (rows == 0) {
        return;
    }
    if (whole) {
        BY_TYPE(type, sum_columns(l, total, (plain_rows<A, true>{in, cols}), rows, runs, maxima));
    } else {
        BY_TYPE(type, sum_columns(l, total, (plain_rows<A, false>{in, cols}), rows, runs, maxima));
    }
}

template <typename A, bool WHOLE>
static void gelu_backward(const launch *l, void *dpre, float *dbias, const void *dout, const void *pre,
                          int64_t rows, int64_t cols, int64_t runs, uint32_t *maxima)
{
    gelu_rows<A, WHOLE> of = {(A *)dpre, (const A *)dout, (const A *)pre, cols};
    sum_columns(l, dbias, of, rows, runs, maxima);
}

void cuda_launch_gelu_backward(const launch *l, void *dpre, float *dbias, const void *dout, const void *pre,
                               launch_type type, int64_t rows, int64_t cols, int64_t runs, uint32_t *maxima)
{
    const void *addresses[] = {dpre, dout, pre};
    if (rows == 0) {
        return;
    }
    if (rows_are_whole(cols, addresses, 3)) {
        BY_TYPE(type, (gelu_backward<A, true>(l, dpre, dbias, dout, pre, rows, cols, runs, maxima)));
    } else {
        BY_TYPE(type, (gelu_backward<A, false>(l, dpre, dbias, dout, pre, rows, cols, runs, maxima)));
    }
}
