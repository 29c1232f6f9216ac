/* cuda_sums: sums over the rows of a matrix, as gradients of biases are.
 *
 * A block owns 256 columns of a run of rows, a lane eight columns, a warp every fourth row.  Bound by memory: the matrix is
 * read once, and so many runs are summed at once that the device is busy whatever the shape. */
#include "ops/cuda/sums_code.cuh"

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

template <typename A>
__global__ static void column_partials_kernel(float *partials, launch_rows in, int64_t rows, int64_t cols)
{
    __shared__ float sums[WARPS][COLUMNS];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t runs = gridDim.y, first = rows * blockIdx.y / runs, end = rows * (blockIdx.y + 1) / runs;
    int64_t left = (int64_t)blockIdx.x * COLUMNS, column = left + lane * EIGHT;
    eight sum = {};
    for (int64_t row = first + warp; row < end; row += DEPTH * WARPS) {
        packed_eight<A> next[DEPTH];
        UNROLL
        for (int d = 0; d < DEPTH; d++) {
            if (row + d * WARPS < end) {
                next[d] = load_packed((const A *)in.data + (row + d * WARPS) * in.stride, column, cols);
            }
        }
        UNROLL
        for (int d = 0; d < DEPTH; d++) {
            if (row + d * WARPS < end) {
                add_eight(&sum, unpack(next[d]));
            }
        }
    }
    store_eight(sums[warp], lane * EIGHT, COLUMNS, sum);
    __syncthreads();
    for (int c = threadIdx.x; c < COLUMNS && left + c < cols; c += BLOCK) {
        float total = sums[0][c];
        for (int w = 1; w < WARPS; w++) {
            total += sums[w][c];
        }
        partials[blockIdx.y * cols + left + c] = total;
    }
}

void cuda_launch_column_sum(const launch *l, float *total, launch_rows in, launch_type type, int64_t rows,
                            int64_t cols, int64_t runs)
{
    dim3 grid(blocks_of(cols, COLUMNS), (unsigned)runs);
    if (rows == 0) {
        return;
    }
    BY_TYPE(type, LAUNCH(l, column_partials_kernel<A>, grid, BLOCK, 0, l->scratch, in, rows, cols));
    add_runs(l, run_totals{{total}}, 1, l->scratch, runs, cols);
}
