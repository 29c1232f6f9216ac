/* tally_code: the largest value of a row, its place and the sum of exponentials, found in one reading
 * (Milakov and Gimelshein 2018, arXiv:1805.02867). */
#ifndef KILN_OPS_CUDA_KERNELS_TALLY_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_TALLY_CODE_CUH

#include "ops/cuda/kernels/device_code.cuh"

/* Over the values seen so far: the largest, its first index, and the sum of exponentials relative to it. */
struct tally {
    float largest;
    int at;
    float sum;
};

__device__ static inline tally empty_tally(void)
{
    return tally{-INFINITY, INT32_MAX, 0.0f};
}

__device__ static inline void take(tally *t, float v, int at)
{
    if (v > t->largest) {
        t->sum = t->sum * expf(t->largest - v) + 1.0f;
        t->largest = v;
        t->at = at;
    } else if (v != -INFINITY) { /* a NaN makes the sum one */
        t->sum += expf(v - t->largest);
        t->at = v == t->largest && at < t->at ? at : t->at;
    }
}

__device__ static inline tally merge(const tally &a, const tally &b)
{
    bool second = b.largest > a.largest || (b.largest == a.largest && b.at < a.at);
    const tally &more = second ? b : a, &less = second ? a : b;
    float shrink = less.largest == -INFINITY ? 1.0f : expf(less.largest - more.largest);
    return tally{more.largest, more.at, more.sum + less.sum * shrink};
}

__device__ static inline tally warp_tally(tally t)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        t = merge(t, tally{__shfl_xor_sync(0xffffffffU, t.largest, distance),
                           __shfl_xor_sync(0xffffffffU, t.at, distance),
                           __shfl_xor_sync(0xffffffffU, t.sum, distance)});
    }
    return t;
}

/* The merged tallies of all threads of the block, in each of them. */
__device__ static tally block_tally(tally t)
{
    __shared__ tally all[WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, n_warps = blockDim.x / WARP;
    t = warp_tally(t);
    if (lane == 0) {
        all[warp] = t;
    }
    __syncthreads();
    if (warp == 0) {
        t = warp_tally(lane < n_warps ? all[lane] : empty_tally());
        __syncwarp();
        if (lane == 0) {
            all[0] = t;
        }
    }
    __syncthreads();
    return all[0];
}

__device__ static inline float log_sum_exp(const tally &t)
{
    return t.largest + logf(t.sum);
}

/* The tally of values[0..n), by all threads of a block. */
__device__ static inline tally row_tally(const float *values, int64_t n)
{
    tally t = empty_tally();
    for (int64_t c = threadIdx.x * EIGHT; c < n; c += (int64_t)blockDim.x * EIGHT) {
        eight e = load_eight(values, c, n);
        for (int k = 0; k < EIGHT && c + k < n; k++) {
            take(&t, e.v[k], (int)c + k);
        }
    }
    return block_tally(t);
}

/* Threads per row: enough that the rows in progress stay in the cache for their second reading. */
static inline int threads_for(int64_t n_classes)
{
    return n_classes > 8 * BLOCK * EIGHT ? 8 * BLOCK : n_classes > BLOCK * EIGHT ? 2 * BLOCK : BLOCK;
}

#endif
