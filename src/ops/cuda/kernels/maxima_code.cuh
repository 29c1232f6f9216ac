/* maxima_code: a kernel that writes a tensor also stores its largest magnitudes (core/tensor.h), so that no
 * other kernel need read the tensor to find them.  They are fp32 bits of the numbers as stored.  A maximum
 * does not depend on the order of numbers, so neither do its bits.  NULL: not wanted. */
#ifndef KILN_OPS_CUDA_KERNELS_MAXIMA_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_MAXIMA_CODE_CUH

#include "ops/cuda/kernels/device_code.cuh"

/* The larger magnitude; a NaN, if one is. */
__device__ inline float larger_magnitude(float a, float b)
{
#ifdef KILN_EMULATED_CUDA
    return isnan(a) || isnan(b) ? NAN : fmaxf(fabsf(a), fabsf(b));
#else
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(fabsf(a)), "f"(fabsf(b)));
    return larger;
#endif
}

/* The maximum over a lane's eight columns. */
__device__ inline void take_largest(float *largest, const eight &e)
{
    UNROLL
    for (int k = 0; k < EIGHT; k++) {
        *largest = larger_magnitude(*largest, e.v[k]);
    }
}

/* The largest magnitude over the lanes of a warp, as the bits of the stored number: rounding to A keeps the
 * order of numbers, so only the largest is rounded, at the end. */
template <typename A> __device__ inline uint32_t warp_largest(float largest)
{
    A stored;
    from_float(&stored, largest);
    return __reduce_max_sync(0xffffffffU, __float_as_uint(to_float(stored)) & 0x7fffffffU);
}

/* Every warp of a kernel raises one of the maxima, which were cleared. */
template <typename A> __device__ inline void raise_maxima(uint32_t *maxima, float largest)
{
    if (maxima != NULL) {
        uint32_t bits = warp_largest<A>(largest);
        if (threadIdx.x % WARP == 0) {
            unsigned part = (blockIdx.y * gridDim.x + blockIdx.x) * (BLOCK / WARP) + threadIdx.x / WARP;
            atomicMax(maxima + part % LAUNCH_MOST_MAXIMA, bits);
        }
    }
}

/* For a kernel with at most LAUNCH_MOST_MAXIMA blocks: every block assigns its own maximum, and the maxima
 * without a block are cleared. */
template <typename A> __device__ inline void assign_maxima(uint32_t *maxima, float largest)
{
    __shared__ uint32_t of_warp[BLOCK / WARP];
    if (maxima != NULL) {
        uint32_t bits = warp_largest<A>(largest);
        if (threadIdx.x % WARP == 0) {
            of_warp[threadIdx.x / WARP] = bits;
        }
        __syncthreads();
        unsigned own = blockIdx.y * gridDim.x + blockIdx.x, blocks = gridDim.x * gridDim.y;
        if (threadIdx.x == 0) {
            for (int w = 1; w < BLOCK / WARP; w++) {
                bits = of_warp[w] > bits ? of_warp[w] : bits;
            }
            maxima[own] = bits;
        }
        for (unsigned i = own + (threadIdx.x + 1) * blocks; i < LAUNCH_MOST_MAXIMA; i += BLOCK * blocks) {
            maxima[i] = 0;
        }
    }
}

/* Clears maxima, before a kernel that raises them. */
static inline void clear_maxima(const launch *l, uint32_t *maxima)
{
    if (maxima != NULL) {
        cudaMemsetAsync(maxima, 0, LAUNCH_MOST_MAXIMA * sizeof *maxima, (cudaStream_t)l->stream);
    }
}

#endif
