/* cuda_loss: cross-entropy with its gradient, over the columns of a row, and over the rows of a sequence.
 *
 * A block owns a row (a column of a sequence) and reads it three times, from the cache after the first: maximum, sum,
 * gradient.  Bound by memory: logits once in, gradients once out. */
#include "ops/cuda/device_code.cuh"

/* A largest value and the first place where it is. */
struct peak {
    float value;
    int64_t at;
};

__device__ static inline peak larger(peak a, peak b)
{
    return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}

/* The peak over the threads of the block, the same in all of them. */
__device__ static peak block_peak(peak p)
{
    __shared__ peak all[BLOCK];
    __syncthreads();
    all[threadIdx.x] = p;
    __syncthreads();
    for (int distance = BLOCK / 2; distance > 0; distance /= 2) {
        if ((int)threadIdx.x < distance) {
            all[threadIdx.x] = larger(all[threadIdx.x], all[threadIdx.x + distance]);
        }
        __syncthreads();
    }
    return all[0];
}

/* n values, `stride` apart. */
struct column {
    const float *at;
    int64_t n, stride;
};

/* The peak, and log sum exp. */
__device__ static peak find_peak(column c, float *lse)
{
    __shared__ float partial[WARP];
    peak p = {-INFINITY, INT64_MAX};
    float sum = 0;
    for (int64_t i = threadIdx.x; i < c.n; i += blockDim.x) {
        p = larger(p, peak{c.at[i * c.stride], i});
    }
    p = block_peak(p);
    for (int64_t i = threadIdx.x; i < c.n; i += blockDim.x) {
        sum += expf(c.at[i * c.stride] - p.value);
    }
    *lse = p.value + logf(block_sum(sum, partial));
    return p;
}

template <typename A>
__global__ static void cross_entropy_kernel(float *loss, int32_t *correct, launch_rows dlogits, launch_rows logits,
                                            const int32_t *labels, int64_t cols, int64_t n_classes, const double *loss_scale,
                                            int32_t *fault)
{
    float scale = (float)*loss_scale;
    int64_t row = blockIdx.x;
    const float *values = (const float *)logits.data + row * logits.stride;
    A *gradient = dlogits.data == NULL ? NULL : (A *)dlogits.data + row * dlogits.stride;
    int64_t label = labels[row] < 0 ? -1 : checked_index(labels, row, n_classes, fault);
    float lse;
    peak p = find_peak(column{values, n_classes, 1}, &lse);
    if (threadIdx.x == 0) {
        loss[row] = label < 0 ? 0.0f : lse - values[label];
        correct[row] = label >= 0 && p.at == label;
    }
    __syncthreads(); /* the gradient may take the place of the logits */
    for (int64_t c = threadIdx.x; gradient != NULL && c < cols; c += blockDim.x) {
        float probability = c < n_classes ? expf(values[c] - lse) : 0.0f;
        from_float(&gradient[c], label < 0 ? 0.0f : scale * (probability - (c == label ? 1.0f : 0.0f)));
    }
}

void cuda_launch_cross_entropy(const launch *l, float *loss, int32_t *correct, launch_rows dlogits,
                               launch_type dlogits_type, launch_rows logits, const int32_t *labels, int64_t rows,
                               int64_t cols, int64_t n_classes, const double *loss_scale)
{
    if (rows == 0) {
        return;
    }
    BY_TYPE(dlogits_type, LAUNCH(l, cross_entropy_kernel<A>, (unsigned)rows, BLOCK, 0, loss, correct, dlogits, logits,
                                 labels, cols, n_classes, loss_scale, l->fault));
}

template <typename A>
__global__ static void span_kernel(float *loss, int32_t *correct, A *dlogits, const float *logits,
                                   const int32_t *cu_seqlens, const int32_t *labels, const double *loss_scale, int32_t *fault)
{
    float scale = (float)*loss_scale;
    int64_t b = blockIdx.x, e = blockIdx.y, first = cu_seqlens[b], n = cu_seqlens[b + 1] - first;
    if (labels[2 * b + e] < 0) {
        if (threadIdx.x == 0) {
            loss[2 * b + e] = 0;
            correct[2 * b + e] = 0;
        }
        return;
    }
    int64_t label = checked_index(labels, 2 * b + e, n, fault);
    const float *values = logits + 2 * first + e;
    float lse;
    peak p = find_peak(column{values, n, 2}, &lse);
    if (threadIdx.x == 0) {
        loss[2 * b + e] = lse - values[2 * label];
        correct[2 * b + e] = p.at == label;
    }
    for (int64_t t = threadIdx.x; dlogits != NULL && t < n; t += blockDim.x) {
        from_float(&dlogits[2 * (first + t) + e],
                   scale * (expf(values[2 * t] - lse) - (t == label ? 1.0f : 0.0f)));
    }
}

void cuda_launch_span_cross_entropy(const launch *l, float *loss, int32_t *correct, void *dlogits,
                                    launch_type dlogits_type, const float *logits, const int32_t *cu_seqlens, const int32_t *labels,
                                    int64_t n_sequences, int64_t rows, const double *loss_scale)
{
    launch_rows gradient = {dlogits, 2};
    dim3 grid((unsigned)n_sequences, 2);
    if (dlogits != NULL) {
        cuda_launch_fill(l, gradient, dlogits_type, rows, 2, 0);
    }
    if (n_sequences == 0) {
        return;
    }
    BY_TYPE(dlogits_type, LAUNCH(l, span_kernel<A>, grid, BLOCK, 0, loss, correct, (A *)dlogits, logits, cu_seqlens,
                                 labels, loss_scale, l->fault));
}
