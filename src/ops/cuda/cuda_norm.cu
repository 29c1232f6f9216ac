/* cuda_norm: LayerNorm and what is fused with it: the embedding sum, and bias + dropout + residual at the end of both
 * halves of a layer; forward and backward.
 *
 * Forward: a block owns a row, kept as fp32 in shared memory, a thread every BLOCK-th group of eight columns.  Backward: a
 * block owns a run of rows and keeps the sums over them, for the gradients of vectors, in registers, while the next row is on
 * its way; the runs' sums are added in order.  Bound by memory: bytes a row are those of its tensors, once. */
#include "ops/cuda/sums_code.cuh"

/* Mean and 1 / sqrt(variance + eps) of a row in shared memory, of which every thread wrote its own columns. */
__device__ static void statistics(const float *row, int64_t cols, float eps, float *mean, float *rstd)
{
    __shared__ float partial[WARP];
    float sum = 0, squares = 0;
    for (int64_t c = threadIdx.x * EIGHT; c < cols; c += blockDim.x * EIGHT) {
        eight e = load_eight(row, c, cols);
        for (int k = 0; k < EIGHT; k++) {
            sum += e.v[k];
        }
    }
    *mean = block_sum(sum, partial) / (float)cols;
    for (int64_t c = threadIdx.x * EIGHT; c < cols; c += blockDim.x * EIGHT) {
        eight e = load_eight(row, c, cols);
        for (int k = 0; k < EIGHT; k++) {
            squares += c + k < cols ? (e.v[k] - *mean) * (e.v[k] - *mean) : 0.0f;
        }
    }
    *rstd = 1.0f / sqrtf(block_sum(squares, partial) / (float)cols + eps);
}

/* out = dropout(LN(row)). */
template <typename A>
__device__ static void normalize(A *out, const float *row, launch_norm n, int64_t index, uint64_t key,
                                 launch_dropout d)
{
    float mean, rstd;
    statistics(row, n.cols, n.eps, &mean, &rstd);
    if (threadIdx.x == 0) {
        n.mean[index] = mean;
        n.rstd[index] = rstd;
    }
    for (int64_t c = threadIdx.x * EIGHT; c < n.cols; c += blockDim.x * EIGHT) {
        eight e = load_eight(row, c, n.cols), gamma = load_eight(n.gamma, c, n.cols);
        eight beta = load_eight(n.beta, c, n.cols), factors = dropout_factors(key, d, index, c);
        for (int k = 0; k < EIGHT; k++) {
            e.v[k] = ((e.v[k] - mean) * rstd * gamma.v[k] + beta.v[k]) * factors.v[k];
        }
        store_eight(out, c, n.cols, e);
    }
}

/* Blocks of a multiprocessor that a forward kernel leaves registers for. */
static const int FORWARD_BLOCKS = 10;

template <typename A>
__global__ static void __launch_bounds__(BLOCK, FORWARD_BLOCKS)
    layernorm_kernel(A *out, const A *in, launch_norm n)
{
    SHARED_MEMORY(values);
    int64_t row = blockIdx.x, at = row * n.cols;
    for (int64_t c = threadIdx.x * EIGHT; c < n.cols; c += blockDim.x * EIGHT) {
        store_eight(values, c, n.cols, load_eight(in + at, c, n.cols));
    }
    normalize(out + at, values, n, row, 0, launch_dropout{0, 0, 1.0f, NULL});
}

/* Shared memory of a row. */
static size_t row_bytes(const launch_norm *n)
{
    return (size_t)n->cols * sizeof(float);
}

void cuda_launch_layernorm(const launch *l, const launch_norm *n, void *out, const void *in, launch_type type)
{
    if (n->rows == 0) {
        return;
    }
    BY_TYPE(type, LAUNCH(l, layernorm_kernel<A>, (unsigned)n->rows, BLOCK, row_bytes(n), (A *)out,
                         (const A *)in, *n));
}

template <typename A>
__global__ static void __launch_bounds__(BLOCK, FORWARD_BLOCKS)
    bias_dropout_add_layernorm_kernel(A *out, A *sum, const A *in, const float *bias, const A *residual,
                                      launch_norm n, const uint64_t *dropout_key, launch_dropout d)
{
    SHARED_MEMORY(values);
    uint64_t key = dropout_key_of(dropout_key, d);
    int64_t row = blockIdx.x, at = row * n.cols;
    for (int64_t c = threadIdx.x * EIGHT; c < n.cols; c += blockDim.x * EIGHT) {
        eight e = load_eight(in + at, c, n.cols), b = load_eight(bias, c, n.cols);
        eight r = load_eight(residual + at, c, n.cols), factors = dropout_factors(key, d, row, c);
        for (int k = 0; k < EIGHT; k++) {
            e.v[k] = r.v[k] + (e.v[k] + b.v[k]) * factors.v[k];
        }
        store_eight(sum + at, c, n.cols, e);
        store_eight(values, c, n.cols, e);
    }
    normalize(out + at, values, n, row, 0, launch_dropout{0, 0, 1.0f, NULL});
}

void cuda_launch_bias_dropout_add_layernorm(const launch *l, const launch_norm *n, void *out, void *sum,
                                            const void *in, const float *bias, const void *residual,
                                            launch_type type, const launch_dropout *d)
{
    if (n->rows == 0) {
        return;
    }
    BY_TYPE(type,
            LAUNCH(l, bias_dropout_add_layernorm_kernel<A>, (unsigned)n->rows, BLOCK, row_bytes(n), (A *)out,
                   (A *)sum, (const A *)in, bias, (const A *)residual, *n, l->dropout_key, *d));
}

/* What a backward reads and writes; dropped and dbias may be NULL. */
template <typename A> struct backward_call {
    A *din, *dropped;
    const A *dout, *in;
    float *partials; /* [3][runs][cols]: of dgamma, dbeta, dbias */
    launch_norm n;
    const uint64_t *dropout_key;
    launch_dropout before, after; /* of dout, and from din to dropped */
};

/* Where in a row a thread's group `g` begins. */
__device__ static inline int64_t column_of(int g)
{
    return ((int64_t)g * BLOCK + threadIdx.x) * EIGHT;
}

/* A thread's part of the two tensors that a row is made of. */
template <typename A, int GROUPS> struct row_part {
    packed_eight<A> dout[GROUPS], in[GROUPS];
};

template <typename A, int GROUPS>
__device__ static inline row_part<A, GROUPS> load_part(const backward_call<A> &c, int64_t row)
{
    row_part<A, GROUPS> part;
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
        part.dout[g] = load_packed(c.dout + row * c.n.cols, column_of(g), c.n.cols);
        part.in[g] = load_packed(c.in + row * c.n.cols, column_of(g), c.n.cols);
    }
    return part;
}

/* Both summed over the block of BLOCK threads; two calls in a row need different memory. */
__device__ static inline void sum_both(float *a, float *b, float (*partial)[2])
{
    float x = warp_sum(*a), y = warp_sum(*b);
    if (threadIdx.x % WARP == 0) {
        partial[threadIdx.x / WARP][0] = x;
        partial[threadIdx.x / WARP][1] = y;
    }
    __syncthreads();
    *a = *b = 0;
    UNROLL
    for (int w = 0; w < BLOCK / WARP; w++) {
        *a += partial[w][0];
        *b += partial[w][1];
    }
}

/* Blocks of a multiprocessor, whose registers hold as many. */
static constexpr int blocks_for(int groups)
{
    return groups == 1 ? 4 : groups == 2 ? 3 : groups == 4 ? 2 : 1;
}

/* din = rstd (g - mean(g) - xhat mean(g xhat)), g = dout gamma, of a run of rows; sums over them stay in registers.  Each
 * row is read once.  GROUPS of eight columns belong to a thread. */
template <typename A, int GROUPS>
__global__ static void __launch_bounds__(BLOCK, blocks_for(GROUPS))
    layernorm_backward_kernel(backward_call<A> c)
{
    __shared__ float partial[2][BLOCK / WARP][2];
    launch_norm n = c.n;
    uint64_t key_before = dropout_key_of(c.dropout_key, c.before),
             key_after = dropout_key_of(c.dropout_key, c.after);
    int64_t runs = gridDim.x, first = n.rows * blockIdx.x / runs, end = n.rows * (blockIdx.x + 1) / runs;
    eight sums[3][GROUPS] = {};
    row_part<A, GROUPS> next = load_part<A, GROUPS>(c, first);
    for (int64_t row = first; row < end; row++) {
        eight dy[GROUPS], xhat[GROUPS];
        float sum = 0, sum_xhat = 0, mean = n.mean[row], rstd = n.rstd[row];
        UNROLL
        for (int g = 0; g < GROUPS; g++) {
            int64_t at = column_of(g);
            eight factors = dropout_factors(key_before, c.before, row, at),
                  gamma = load_eight(n.gamma, at, n.cols);
            dy[g] = unpack(next.dout[g]);
            xhat[g] = unpack(next.in[g]);
            for (int k = 0; k < EIGHT; k++) { /* beyond the end dy is 0 */
                dy[g].v[k] *= factors.v[k];
                xhat[g].v[k] = (xhat[g].v[k] - mean) * rstd;
                sums[0][g].v[k] += dy[g].v[k] * xhat[g].v[k];
                sums[1][g].v[k] += dy[g].v[k];
                dy[g].v[k] *= gamma.v[k];
                sum += dy[g].v[k];
                sum_xhat += dy[g].v[k] * xhat[g].v[k];
            }
        }
        if (row + 1 < end) {
            next = load_part<A, GROUPS>(c, row + 1);
        }
        sum_both(&sum, &sum_xhat, partial[row % 2]);
        float mean_g = sum / (float)n.cols, mean_g_xhat = sum_xhat / (float)n.cols;
        UNROLL
        for (int g = 0; g < GROUPS; g++) {
            int64_t at = column_of(g);
            eight factors = dropout_factors(key_after, c.after, row, at);
            for (int k = 0; k < EIGHT; k++) {
                dy[g].v[k] = rstd * (dy[g].v[k] - mean_g - xhat[g].v[k] * mean_g_xhat);
            }
            store_eight(c.din + row * n.cols, at, n.cols, dy[g]);
            for (int k = 0; k < EIGHT; k++) {
                dy[g].v[k] *= factors.v[k];
                sums[2][g].v[k] += dy[g].v[k];
            }
            if (c.dropped != NULL) {
                store_eight(c.dropped + row * n.cols, at, n.cols, dy[g]);
            }
        }
    }
    UNROLL
    for (int k = 0; k < 3; k++) {
        UNROLL
        for (int g = 0; g < GROUPS; g++) {
            store_eight(c.partials + (k * runs + blockIdx.x) * n.cols, column_of(g), n.cols, sums[k][g]);
        }
    }
}

template <typename A> static void launch_groups(const launch *l, const backward_call<A> &c, unsigned runs)
{
    int64_t groups = (c.n.cols + BLOCK * EIGHT - 1) / (BLOCK * EIGHT);
    if (groups <= 1) {
        LAUNCH(l, (layernorm_backward_kernel<A, 1>), runs, BLOCK, 0, c);
    } else if (groups <= 2) {
        LAUNCH(l, (layernorm_backward_kernel<A, 2>), runs, BLOCK, 0, c);
    } else if (groups <= 4) {
        LAUNCH(l, (layernorm_backward_kernel<A, 4>), runs, BLOCK, 0, c);
    } else {
        LAUNCH(l, (layernorm_backward_kernel<A, LAUNCH_MOST_NORM_COLS / (BLOCK * EIGHT)>), runs, BLOCK, 0, c);
    }
}

template <typename A>
static void launch_backward(const launch *l, const launch_norm *n, const launch_norm_backward *b)
{
    const launch_dropout none = {0, 0, 1.0f, NULL};
    backward_call<A> c = {(A *)b->din,
                          (A *)b->dropped,
                          (const A *)b->dout,
                          (const A *)b->in,
                          l->scratch,
                          *n,
                          l->dropout_key,
                          b->before == NULL ? none : *b->before,
                          b->after == NULL ? none : *b->after};
    launch_groups(l, c, (unsigned)b->runs);
    add_runs(l, run_totals{{b->dgamma, b->dbeta, b->dbias}}, 3, l->scratch, b->runs, n->cols);
}

void cuda_launch_layernorm_backward(const launch *l, const launch_norm *n, const launch_norm_backward *b,
                                    launch_type type)
{
    if (n->rows == 0) {
        return;
    }
    BY_TYPE(type, launch_backward<A>(l, n, b));
}

template <typename A>
__global__ static void embed_kernel(A *out, A *sum, const A *word, const A *position, const A *type,
                                    launch_tables t, launch_norm n, const uint64_t *dropout_key,
                                    launch_dropout d, int32_t *fault)
{
    SHARED_MEMORY(values);
    int64_t row = blockIdx.x, at = row * n.cols;
    const A *w = word + checked_index(t.ids, row, t.n_ids, fault) * n.cols;
    const A *p = position + checked_index(t.positions, row, t.n_positions, fault) * n.cols;
    const A *s = type + checked_index(t.types, row, t.n_types, fault) * n.cols;
    for (int64_t c = threadIdx.x * EIGHT; c < n.cols; c += blockDim.x * EIGHT) {
        eight e = load_eight(w, c, n.cols), f = load_eight(p, c, n.cols), g = load_eight(s, c, n.cols);
        for (int k = 0; k < EIGHT; k++) {
            e.v[k] += f.v[k] + g.v[k];
        }
        store_eight(sum + at, c, n.cols, e);
        store_eight(values, c, n.cols, e);
    }
    normalize(out + at, values, n, row, dropout_key_of(dropout_key, d), d);
}

void cuda_launch_embed(const launch *l, const launch_norm *n, const launch_tables *t, void *out, void *sum,
                       const void *word, const void *position, const void *segment, launch_type type,
                       const launch_dropout *d)
{
    if (n->rows == 0) {
        return;
    }
    BY_TYPE(type, LAUNCH(l, embed_kernel<A>, (unsigned)n->rows, BLOCK, row_bytes(n), (A *)out, (A *)sum,
                         (const A *)word, (const A *)position, (const A *)segment, *t, *n, l->dropout_key, *d,
                         l->fault));
}
