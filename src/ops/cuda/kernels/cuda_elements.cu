/* cuda_elements: elementwise kernels: fill, cast, biases, activations, gathers, and checks of every element.
 *
 * A thread owns eight columns of a row, twice eight elements, or one element; all are bound by memory: each
 * element is read and written once. */
#include "ops/cuda/kernels/gelu_code.cuh"
#include "ops/cuda/kernels/maxima_code.cuh"

const char *cuda_launch_error(void)
{
    cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? NULL : cudaGetErrorString(e);
}

__device__ static inline double load_any(const void *p, int64_t i, launch_type type)
{
    switch (type) {
    case LAUNCH_F32: return ((const float *)p)[i];
    case LAUNCH_BF16: return to_float(((const bf16 *)p)[i]);
    case LAUNCH_F16: return to_float(((const f16 *)p)[i]);
    case LAUNCH_F64: return ((const double *)p)[i];
    default: return ((const int32_t *)p)[i];
    }
}

__device__ static inline void store_any(void *p, int64_t i, launch_type type, double value)
{
    switch (type) {
    case LAUNCH_F32: ((float *)p)[i] = (float)value; break;
    case LAUNCH_BF16: from_float((bf16 *)p + i, (float)value); break;
    case LAUNCH_F16: from_float((f16 *)p + i, (float)value); break;
    case LAUNCH_F64: ((double *)p)[i] = value; break;
    default: ((int32_t *)p)[i] = (int32_t)value;
    }
}

__global__ static void fill_kernel(launch_rows out, launch_type type, int64_t rows, int64_t cols,
                                   double value)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) {
        store_any(out.data, i / cols * out.stride + i % cols, type, value);
    }
}

int cuda_launch_is_possible(void)
{
    cudaFuncAttributes attributes;
    bool possible = cudaFuncGetAttributes(&attributes, fill_kernel) == cudaSuccess;
    cudaGetLastError(); /* forgets a failure */
    return possible;
}

static size_t bytes_of(launch_type type)
{
    return type == LAUNCH_F64 ? 8 : type == LAUNCH_BF16 || type == LAUNCH_F16 ? 2 : 4;
}

void cuda_launch_fill(const launch *l, launch_rows out, launch_type type, int64_t rows, int64_t cols,
                      double value)
{
    if (value == 0 && (rows == 1 || out.stride == cols)) { /* clears gradients at the rate of memory */
        cudaMemsetAsync(out.data, 0, (size_t)(rows * cols) * bytes_of(type), (cudaStream_t)l->stream);
    } else if (rows * cols > 0) {
        LAUNCH(l, fill_kernel, blocks_of(rows * cols, BLOCK), BLOCK, 0, out, type, rows, cols, value);
    }
}

__global__ static void cast_kernel(launch_rows out, launch_type out_type, launch_rows in, launch_type in_type,
                                   int64_t rows, int64_t cols)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) {
        int64_t row = i / cols, col = i % cols;
        store_any(out.data, row * out.stride + col, out_type,
                  load_any(in.data, row * in.stride + col, in_type));
    }
}

void cuda_launch_cast(const launch *l, launch_rows out, launch_type out_type, launch_rows in,
                      launch_type in_type, int64_t rows, int64_t cols)
{
    if (rows * cols > 0) {
        LAUNCH(l, cast_kernel, blocks_of(rows * cols, BLOCK), BLOCK, 0, out, out_type, in, in_type, rows,
               cols);
    }
}

/* One block: the vectors that are summed are losses of a micro-batch. */
__global__ static void sum_kernel(double *total, const void *in, launch_type type, int64_t n)
{
    __shared__ double partial[WARP];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        sum += load_any(in, i, type);
    }
    sum = block_sum(sum, partial);
    if (threadIdx.x == 0) {
        *total += sum;
    }
}

void cuda_launch_sum(const launch *l, double *total, const void *in, launch_type type, int64_t n)
{
    LAUNCH(l, sum_kernel, 1, 8 * BLOCK, 0, total, in, type, n);
}

__global__ static void clear_index_kernel(int64_t *index)
{
    *index = INT64_MAX;
}

__global__ static void find_nonfinite_kernel(int64_t *index, launch_rows in, launch_type type, int64_t rows,
                                             int64_t cols)
{
    int64_t n = rows * cols, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        if (!isfinite(load_any(in.data, i / cols * in.stride + i % cols, type))) {
            atomicMin((unsigned long long *)index, (unsigned long long)i);
            return;
        }
    }
}

__global__ static void finish_index_kernel(int64_t *index)
{
    *index = *index == INT64_MAX ? -1 : *index;
}

void cuda_launch_find_nonfinite(const launch *l, int64_t *index, launch_rows in, launch_type type,
                                int64_t rows, int64_t cols)
{
    enum { MOST_BLOCKS = 1024 };
    unsigned blocks = blocks_of(rows * cols, BLOCK);
    LAUNCH(l, clear_index_kernel, 1, 1, 0, index);
    LAUNCH(l, find_nonfinite_kernel, blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, BLOCK, 0, index, in, type,
           rows, cols);
    LAUNCH(l, finish_index_kernel, 1, 1, 0, index);
}

template <typename A, typename B>
__global__ static void broadcast_kernel(launch_rows out, const B *row, int64_t rows, int64_t cols)
{
    int64_t groups = (cols + EIGHT - 1) / EIGHT, i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * groups) {
        int64_t column = i % groups * EIGHT;
        store_eight((A *)out.data + i / groups * out.stride, column, cols, load_eight(row, column, cols));
    }
}

void cuda_launch_broadcast(const launch *l, launch_rows out, launch_type type, const void *row,
                           launch_type row_type, int64_t rows, int64_t cols)
{
    unsigned blocks = blocks_of(rows * ((cols + EIGHT - 1) / EIGHT), BLOCK);
    if (row_type == type) {
        BY_TYPE(type, LAUNCH(l, (broadcast_kernel<A, A>), blocks, BLOCK, 0, out, (const A *)row, rows, cols));
    } else {
        BY_TYPE(type, LAUNCH(l, (broadcast_kernel<A, float>), blocks, BLOCK, 0, out, (const float *)row, rows,
                             cols));
    }
}

/* Activations, as functions of the values of one tensor or of two. */
struct gelu_of {
    static const bool TWO = false, HAS_MAXIMA = false;
    template <typename A> __device__ static float apply(float a, float)
    {
        return gelu<A>(a);
    }
};

struct gelu_noting_of : gelu_of {
    static const bool HAS_MAXIMA = true;
};

struct tanh_of {
    static const bool TWO = false, HAS_MAXIMA = false;
    template <typename A> __device__ static float apply(float a, float)
    {
        return tanhf(a);
    }
};

struct tanh_backward_of {
    static const bool TWO = true, HAS_MAXIMA = false;
    template <typename A> __device__ static float apply(float dout, float out)
    {
        return dout * (1.0f - out * out);
    }
};

struct relu_of {
    static const bool TWO = false, HAS_MAXIMA = false;
    template <typename A> __device__ static float apply(float a, float)
    {
        return a > 0.0f ? a : 0.0f;
    }
};

struct relu_backward_of {
    static const bool TWO = true, HAS_MAXIMA = false;
    template <typename A> __device__ static float apply(float dout, float out)
    {
        return out > 0.0f ? dout : 0.0f;
    }
};

struct gelu_tanh_of {
    static const bool TWO = false, HAS_MAXIMA = false;
    template <typename A> __device__ static float apply(float z, float)
    {
        return 0.5f * z * (1.0f + tanhf(gelu_tanh_argument(z)));
    }
};

struct gelu_tanh_backward_of {
    static const bool TWO = true, HAS_MAXIMA = false;
    template <typename A> __device__ static float apply(float dout, float z)
    {
        return dout * gelu_tanh_slope(z, tanhf(gelu_tanh_argument(z)));
    }
};

struct sum_of {
    static const bool TWO = true, HAS_MAXIMA = false;
    template <typename A> __device__ static float apply(float a, float b)
    {
        return a + b;
    }
};

/* out[i] = f(a[i], b[i]) over n elements; a thread has GROUPS groups of eight, whose loads are all issued
 * before the first is used. */
static const int GROUPS = 2;

template <typename F, typename A, typename B, bool WHOLE>
__global__ static void elements_kernel(early_start start, A *out, const A *a, const B *b, int64_t n,
                                       uint32_t *maxima)
{
    start.wait();
    int64_t first = ((int64_t)blockIdx.x * GROUPS * BLOCK + threadIdx.x) * EIGHT;
    packed_eight<A> packed_a[GROUPS];
    packed_eight<B> packed_b[GROUPS];
    float largest = 0;
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
        int64_t column = first + g * BLOCK * EIGHT;
        if (column < n) {
            packed_a[g] = load_group<WHOLE>(a, column, n);
            if (F::TWO) {
                packed_b[g] = load_group<WHOLE>(b, column, n);
            }
        }
    }
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
        int64_t column = first + g * BLOCK * EIGHT;
        if (column < n) {
            eight x = unpack(packed_a[g]), y = F::TWO ? unpack(packed_b[g]) : x;
            UNROLL
            for (int k = 0; k < EIGHT; k++) {
                x.v[k] = F::template apply<A>(x.v[k], y.v[k]);
            }
            store_group<WHOLE>(out, column, n, x);
            if (F::HAS_MAXIMA) {
                take_largest(&largest, x); /* gelu(0) = 0 beyond the end */
            }
        }
    }
    if (F::HAS_MAXIMA) {
        raise_maxima<A>(maxima, largest);
    }
}

template <typename F, typename A, typename B = A>
static void launch_elements(const launch *l, void *out, const void *a, const void *b, int64_t n,
                            uint32_t *maxima)
{
    clear_maxima(l, maxima);
    const void *addresses[] = {out, a, b};
    unsigned blocks = blocks_of(n, BLOCK * EIGHT * GROUPS);
    if (rows_are_whole(n, addresses, 3)) {
        LAUNCH_EARLY(l, (elements_kernel<F, A, B, true>), blocks, BLOCK, (A *)out, (const A *)a, (const B *)b,
                     n, maxima);
    } else {
        LAUNCH_EARLY(l, (elements_kernel<F, A, B, false>), blocks, BLOCK, (A *)out, (const A *)a,
                     (const B *)b, n, maxima);
    }
}

void cuda_launch_add(const launch *l, float *out, const float *in, int64_t n)
{
    launch_elements<sum_of, float>(l, out, out, in, n, NULL);
}

void cuda_launch_gelu(const launch *l, void *out, const void *pre, launch_type type, int64_t n,
                      uint32_t *maxima)
{
    if (maxima != NULL) {
        BY_TYPE(type, (launch_elements<gelu_noting_of, A>(l, out, pre, pre, n, maxima)));
    } else {
        BY_TYPE(type, (launch_elements<gelu_of, A>(l, out, pre, pre, n, NULL)));
    }
}

/* pre += bias, rounded; out = gelu(pre).  Both are [rows, cols]; a block has columns of one row. */
template <typename A, typename B, bool WHOLE>
__global__ static void bias_gelu_kernel(early_start start, A *out, A *pre, const B *bias,
                                        unsigned blocks_in_row, int64_t cols, uint32_t *maxima)
{
    start.wait();
    float largest = 0;
    int64_t at = (int64_t)(blockIdx.x / blocks_in_row) * cols;
    int64_t column = ((int64_t)(blockIdx.x % blocks_in_row) * BLOCK + threadIdx.x) * EIGHT;
    if (column < cols) {
        eight x = load_values<WHOLE>(pre + at, column, cols), b = load_values<WHOLE>(bias, column, cols);
        UNROLL
        for (int k = 0; k < EIGHT; k++) {
            A rounded;
            from_float(&rounded, x.v[k] + b.v[k]);
            x.v[k] = to_float(rounded);
        }
        if (out != pre) {
            store_group<WHOLE>(pre + at, column, cols, x);
        }
        UNROLL
        for (int k = 0; k < EIGHT; k++) {
            x.v[k] = gelu<A>(x.v[k]);
        }
        store_group<WHOLE>(out + at, column, cols, x);
        take_largest(&largest, x);
    }
    raise_maxima<A>(maxima, largest);
}

template <typename A, typename B>
static void launch_bias_gelu(const launch *l, A *out, A *pre, const B *bias, int64_t rows, int64_t cols,
                             uint32_t *maxima)
{
    clear_maxima(l, maxima);
    const void *addresses[] = {out, pre, bias};
    unsigned blocks_in_row = blocks_of(cols, BLOCK * EIGHT), blocks = blocks_of(rows * blocks_in_row, 1);
    if (rows_are_whole(cols, addresses, 3)) {
        LAUNCH_EARLY(l, (bias_gelu_kernel<A, B, true>), blocks, BLOCK, out, pre, bias, blocks_in_row, cols,
                     maxima);
    } else {
        LAUNCH_EARLY(l, (bias_gelu_kernel<A, B, false>), blocks, BLOCK, out, pre, bias, blocks_in_row, cols,
                     maxima);
    }
}

void cuda_launch_bias_gelu(const launch *l, void *out, void *pre, const void *bias, launch_type bias_type,
                           launch_type type, int64_t rows, int64_t cols, uint32_t *maxima)
{
    if (rows > 0 && bias_type == type) {
        BY_TYPE(type, launch_bias_gelu(l, (A *)out, (A *)pre, (const A *)bias, rows, cols, maxima));
    } else if (rows > 0) {
        BY_TYPE(type, launch_bias_gelu(l, (A *)out, (A *)pre, (const float *)bias, rows, cols, maxima));
    }
}

void cuda_launch_early_probe(const launch *l, float *numbers)
{
    launch probe = *l;
    probe.begins_early = 1;
    cuda_launch_fill(&probe, launch_rows{numbers, 16}, LAUNCH_F32, 1, 16, 0);
    cuda_launch_gelu(&probe, numbers, numbers, LAUNCH_F32, 16, NULL);
    cuda_launch_gelu(&probe, numbers, numbers, LAUNCH_F32, 16, NULL);
}

void cuda_launch_tanh(const launch *l, void *out, const void *in, launch_type type, int64_t n)
{
    BY_TYPE(type, (launch_elements<tanh_of, A>(l, out, in, in, n, NULL)));
}

void cuda_launch_tanh_backward(const launch *l, void *din, const void *dout, const void *out,
                               launch_type type, int64_t n)
{
    BY_TYPE(type, (launch_elements<tanh_backward_of, A>(l, din, dout, out, n, NULL)));
}

void cuda_launch_relu(const launch *l, void *out, const void *in, launch_type type, int64_t n)
{
    BY_TYPE(type, (launch_elements<relu_of, A>(l, out, in, in, n, NULL)));
}

void cuda_launch_relu_backward(const launch *l, void *din, const void *dout, const void *out,
                               launch_type type, int64_t n)
{
    BY_TYPE(type, (launch_elements<relu_backward_of, A>(l, din, dout, out, n, NULL)));
}

void cuda_launch_gelu_tanh(const launch *l, void *out, const void *pre, launch_type type, int64_t n)
{
    BY_TYPE(type, (launch_elements<gelu_tanh_of, A>(l, out, pre, pre, n, NULL)));
}

void cuda_launch_gelu_tanh_backward(const launch *l, void *dpre, const void *dout, const void *pre,
                                    launch_type type, int64_t n)
{
    BY_TYPE(type, (launch_elements<gelu_tanh_backward_of, A>(l, dpre, dout, pre, n, NULL)));
}

void cuda_launch_residual_add(const launch *l, void *out, const void *residual, launch_type stream_type,
                              const void *branch, launch_type type, int64_t n)
{
    BY_TYPES(type, stream_type, launch_elements<sum_of, R, A>(l, out, residual, branch, n, NULL));
}

template <typename A>
__global__ static void gather_kernel(launch_rows out, launch_rows in, const int32_t *index,
                                     launch_slice slice, int64_t cols, int32_t *fault)
{
    int64_t from = checked_index(index, blockIdx.x, slice.n_all, fault) - slice.first;
    bool is_here = from >= 0 && from < slice.n;
    const A *source = (const A *)in.data + from * in.stride;
    A *target = (A *)out.data + blockIdx.x * out.stride;
    for (int64_t c = threadIdx.x * EIGHT; c < cols; c += blockDim.x * EIGHT) {
        store_packed(target, c, cols, is_here ? load_packed(source, c, cols) : packed_eight<A>{});
    }
}

void cuda_launch_gather(const launch *l, launch_rows out, launch_rows in, launch_type type,
                        const int32_t *index, int64_t rows, launch_slice here, int64_t cols)
{
    if (rows == 0) {
        return;
    }
    BY_TYPE(type,
            LAUNCH(l, gather_kernel<A>, (unsigned)rows, BLOCK, 0, out, in, index, here, cols, l->fault));
}

/* A thread has eight columns of a row. */
template <typename A>
__global__ static void dropout_kernel(A *out, const A *in, int64_t rows, int64_t cols, unsigned groups,
                                      launch_dropout d, const uint64_t *dropout_key)
{
    uint64_t key = dropout_key_of(dropout_key, d);
    int64_t group = (int64_t)blockIdx.x * BLOCK + threadIdx.x, row = group / groups;
    int64_t column = group % groups * EIGHT;
    if (row < rows) {
        eight x = load_eight(in + row * cols, column, cols), factors = dropout_factors(key, d, row, column);
        UNROLL
        for (int k = 0; k < EIGHT; k++) {
            x.v[k] *= factors.v[k];
        }
        store_eight(out + row * cols, column, cols, x);
    }
}

void cuda_launch_dropout(const launch *l, void *out, const void *in, launch_type type, int64_t rows,
                         int64_t cols, const launch_dropout *d)
{
    unsigned groups = (unsigned)((cols + EIGHT - 1) / EIGHT);
    if (rows > 0) {
        BY_TYPE(type, LAUNCH(l, dropout_kernel<A>, blocks_of(rows * groups, BLOCK), BLOCK, 0, (A *)out,
                             (const A *)in, rows, cols, groups, *d, l->dropout_key));
    }
}
