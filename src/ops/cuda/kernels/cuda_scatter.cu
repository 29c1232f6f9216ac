/* cuda_scatter: adds rows to the rows of a table that an index selects, as in gradients of embeddings.
 *
 * Text repeats a few words often, so neither a block per row of the table nor atomics would be fast: one
 * block sorts the rows by index (radix sort: Knuth, The Art of Computer Programming 3, section 5.2.5); then
 * each block adds 64 rows in that order.  Its sum for an index that began before its 64 rows is set aside,
 * and a later kernel adds these sums in order.  The bits do not depend on scheduling.  Bound by memory: rows
 * are read once; rows of the table that occur are read and written.
 *
 * Where a slice of the table is here, rows for others have the index after its last: they come last in the
 * order, and no block adds them. */
#include "ops/cuda/kernels/device_code.cuh"

static const int SORT_WARPS = 32, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, DEPTH = 4;

/* An index in the upper half, the number of its row in the lower. */
typedef uint64_t pair;

__device__ static inline int64_t index_of(pair p)
{
    return (int64_t)(p >> 32);
}

__device__ static inline int64_t row_of(pair p)
{
    return (int64_t)(p & 0xffffffffU);
}

/* Turns counts[w][d] into the position of warp w's first pair with digit d: smaller digits go first, then
 * earlier warps. */
__device__ static void find_places(int (*counts)[DIGITS], int *starts)
{
    int digit = threadIdx.x, sum = 0;
    if (digit < DIGITS) {
        for (int w = 0; w < SORT_WARPS; w++) {
            int n = counts[w][digit];
            counts[w][digit] = sum;
            sum += n;
        }
        starts[digit] = sum;
    }
    for (int distance = 1; distance < DIGITS; distance *= 2) { /* sums of all digits up to each */
        __syncthreads();
        int before = digit < DIGITS && digit >= distance ? starts[digit - distance] : 0;
        __syncthreads();
        if (digit < DIGITS) {
            starts[digit] += before;
        }
    }
    if (digit < DIGITS) {
        for (int w = 0; w < SORT_WARPS; w++) {
            counts[w][digit] += starts[digit] - sum;
        }
    }
    __syncthreads();
}

/* One pass of the sort: orders pairs by one digit, and equal digits as in `from`.  A warp has a run of the
 * pairs, 32 at a time; the first lane of those with the same digit counts them. */
__device__ static void sort_by_digit(pair *to, const pair *from, int64_t n, int shift, int (*counts)[DIGITS],
                                     int *starts)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t first = n * warp / SORT_WARPS, end = n * (warp + 1) / SORT_WARPS;
    for (int i = threadIdx.x; i < SORT_WARPS * DIGITS; i += blockDim.x) {
        counts[i / DIGITS][i % DIGITS] = 0;
    }
    __syncthreads();
    for (int moves = 0; moves < 2; moves++) { /* counted first, then moved */
        for (int64_t i = first; i < end; i += WARP) {
            bool inside = i + lane < end;
            pair own = inside ? from[i + lane] : 0;
            int digit = inside ? (int)(own >> shift) & (DIGITS - 1) : DIGITS;
            uint32_t peers = __match_any_sync(0xffffffffU, digit), before = peers & ((1U << lane) - 1);
            if (inside && moves) {
                to[counts[warp][digit] + __popc(before)] = own;
            }
            __syncwarp();
            if (inside && before == 0) {
                counts[warp][digit] += __popc(peers);
            }
            __syncwarp();
        }
        __syncthreads();
        if (!moves) {
            find_places(counts, starts);
        }
    }
}

/* The row of the slice that index[i] names, or slice.n if it is not here. */
__device__ static inline int64_t row_here(const int32_t *index, int64_t i, const launch_slice &slice,
                                          int32_t *fault)
{
    int64_t row = checked_index(index, i, slice.n_all, fault) - slice.first;
    return row < 0 || row > slice.n ? slice.n : row;
}

/* Sorts the pairs into `sorted`, in one pass for each digit of an index up to slice.n. */
__global__ static void __launch_bounds__(SORT_WARPS *WARP)
    sort_kernel(pair *sorted, pair *spare, const int32_t *index, int64_t rows, launch_slice slice, int passes,
                int32_t *fault)
{
    __shared__ int counts[SORT_WARPS][DIGITS], starts[DIGITS];
    pair *from = passes % 2 == 0 ? sorted : spare, *to = passes % 2 == 0 ? spare : sorted;
    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
        from[i] = (pair)row_here(index, i, slice, fault) << 32 | (pair)i;
    }
    __syncthreads();
    for (int pass = 0; pass < passes; pass++) {
        sort_by_digit(to, from, rows, 32 + pass * DIGIT_BITS, counts, starts);
        pair *swap = from;
        from = to;
        to = swap;
    }
}

/* Whether block b's run of pairs begins with the index that the previous run ends with. */
__device__ static inline bool is_continued(const pair *sorted, int64_t b)
{
    return b > 0 && index_of(sorted[b * LAUNCH_SORTED_RUN]) == index_of(sorted[b * LAUNCH_SORTED_RUN - 1]);
}

template <typename T>
__device__ static inline void add_to_table(launch_rows table, int64_t row, int64_t column, int64_t cols,
                                           eight sum)
{
    T *target = (T *)table.data + row * table.stride;
    add_eight(&sum, load_eight(target, column, cols));
    store_eight(target, column, cols, sum);
}

/* Adds the run of pairs of block x, in the columns of block y; the sum that continues an earlier run goes to
 * `heads`. */
template <typename T, typename A>
__global__ static void add_run_kernel(launch_rows table, int64_t table_rows, float *heads, launch_rows in,
                                      const pair *sorted, int64_t rows, int64_t cols)
{
    __shared__ pair run[LAUNCH_SORTED_RUN];
    int64_t first = (int64_t)blockIdx.x * LAUNCH_SORTED_RUN;
    int64_t column = ((int64_t)blockIdx.y * BLOCK + threadIdx.x) * EIGHT;
    int n = rows - first < LAUNCH_SORTED_RUN ? (int)(rows - first) : LAUNCH_SORTED_RUN;
    bool continued = is_continued(sorted, blockIdx.x);
    if ((int)threadIdx.x < n) {
        run[threadIdx.x] = sorted[first + threadIdx.x];
    }
    __syncthreads();
    while (n > 0 && index_of(run[n - 1]) == table_rows) { /* rows that are not here come last */
        n--;
    }
    eight sum = {};
    for (int i = 0; i < n; i += DEPTH) {
        packed_eight<A> next[DEPTH];
        UNROLL
        for (int d = 0; d < DEPTH; d++) {
            if (i + d < n) {
                next[d] = load_packed((const A *)in.data + row_of(run[i + d]) * in.stride, column, cols);
            }
        }
        UNROLL
        for (int d = 0; d < DEPTH; d++) {
            int k = i + d;
            if (k < n) {
                add_eight(&sum, unpack(next[d]));
            }
            if (k < n && (k + 1 == n || index_of(run[k + 1]) != index_of(run[k]))) {
                if (continued) {
                    store_eight(heads + blockIdx.x * cols, column, cols, sum);
                } else {
                    add_to_table<T>(table, index_of(run[k]), column, cols, sum);
                }
                continued = false;
                sum = eight{};
            }
        }
    }
}

/* The first block whose run begins with the index that the run before ended with adds all sums set aside for
 * it. */
template <typename T>
__global__ static void add_heads_kernel(launch_rows table, int64_t table_rows, const float *heads,
                                        const pair *sorted, int64_t rows, int64_t cols)
{
    int64_t b = blockIdx.x, low = b, high = gridDim.x;
    int64_t column = ((int64_t)blockIdx.y * BLOCK + threadIdx.x) * EIGHT;
    int64_t index = index_of(sorted[b * LAUNCH_SORTED_RUN]);
    if (index == table_rows || !is_continued(sorted, b) ||
        (is_continued(sorted, b - 1) && index_of(sorted[(b - 1) * LAUNCH_SORTED_RUN]) == index)) {
        return;
    }
    while (high - low > 1) { /* the last block that begins with the index */
        int64_t middle = (low + high) / 2;
        if (index_of(sorted[middle * LAUNCH_SORTED_RUN]) == index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    eight sum = {};
    UNROLL_BY(4)
    for (int64_t k = b; k <= low; k++) {
        add_eight(&sum, load_eight(heads + k * cols, column, cols));
    }
    add_to_table<T>(table, index, column, cols, sum);
}

template <typename T, typename A>
static void add_sorted(const launch *l, launch_rows table, int64_t table_rows, launch_rows in,
                       const pair *sorted, float *heads, int64_t rows, int64_t cols)
{
    dim3 grid(blocks_of(rows, LAUNCH_SORTED_RUN), blocks_of(cols, BLOCK * EIGHT));
    LAUNCH(l, (add_run_kernel<T, A>), grid, BLOCK, 0, table, table_rows, heads, in, sorted, rows, cols);
    LAUNCH(l, add_heads_kernel<T>, grid, BLOCK, 0, table, table_rows, (const float *)heads, sorted, rows,
           cols);
}

void cuda_launch_scatter_add(const launch *l, launch_rows table, launch_type table_type, launch_slice here,
                             launch_rows in, launch_type type, const int32_t *index, int64_t rows,
                             int64_t cols)
{
    bool is_all = here.first == 0 && here.n >= here.n_all;
    int64_t last = is_all ? here.n - 1 : here.n; /* the largest index that is sorted */
    pair *sorted = (pair *)l->scratch, *spare = sorted + rows;
    float *heads = (float *)(spare + rows);
    int passes = 1;
    if (rows == 0) {
        return;
    }
    while (last >> passes * DIGIT_BITS > 0) {
        passes++;
    }
    LAUNCH(l, sort_kernel, 1, SORT_WARPS * WARP, 0, sorted, spare, index, rows, here, passes, l->fault);
    if (table_type == LAUNCH_F32) {
        BY_TYPE(type, add_sorted<float, A>(l, table, here.n, in, sorted, heads, rows, cols));
    } else {
        BY_TYPE(type, add_sorted<A, A>(l, table, here.n, in, sorted, heads, rows, cols));
    }
}
