/* device_code: what kernels share: elements of each type as floats, eight columns at a time; sums over a block; the
 * addressed random numbers of dropout.
 *
 * Every sum is a tree of fixed shape, so results do not depend on how blocks are scheduled. */
#ifndef KILN_OPS_CUDA_DEVICE_CODE_CUH
#define KILN_OPS_CUDA_DEVICE_CODE_CUH

#include "ops/cuda/launch.h"
#ifdef KILN_EMULATED_CUDA
#    include KILN_EMULATED_CUDA
#else
#    include <cuda_fp16.h>
#    include <cuda_runtime.h>
#    define LAUNCH(l, kernel, grid, block, shared, ...)                                                      \
        kernel<<<grid, block, shared, (cudaStream_t)(l)->stream>>>(__VA_ARGS__)
#    define SHARED_MEMORY(name) extern __shared__ __align__(16) float name[]
#    define UNROLL              _Pragma("unroll")
#endif

static const int WARP = 32, BLOCK = 128, EIGHT = 8;

struct bf16 {
    uint16_t bits;
};

struct f16 {
    uint16_t bits;
};

/* Runs a statement in which A is the element type of matrices that `type` names. */
#define BY_TYPE(type, ...)                                                                                   \
    do {                                                                                                     \
        if ((type) == LAUNCH_BF16) {                                                                         \
            using A = bf16;                                                                                  \
            __VA_ARGS__;                                                                                     \
        } else if ((type) == LAUNCH_F16) {                                                                   \
            using A = f16;                                                                                   \
            __VA_ARGS__;                                                                                     \
        } else {                                                                                             \
            using A = float;                                                                                 \
            __VA_ARGS__;                                                                                     \
        }                                                                                                    \
    } while (0)

__device__ inline float to_float(float v)
{
    return v;
}

__device__ inline float to_float(bf16 v)
{
    return __uint_as_float((uint32_t)v.bits << 16);
}

__device__ inline float to_float(f16 v)
{
    return __half2float(__ushort_as_half(v.bits));
}

/* All round to nearest, ties to even; a NaN stays a NaN; what is too large becomes infinite. */
__device__ inline void from_float(bf16 *p, float v)
{
    uint32_t u = __float_as_uint(v);
    uint32_t rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
    p->bits = (uint16_t)((u & 0x7fffffffU) > 0x7f800000U ? (u >> 16) | 0x40U : rounded);
}

__device__ inline void from_float(f16 *p, float v)
{
    p->bits = __half_as_ushort(__float2half_rn(v));
}

__device__ inline void from_float(float *p, float v)
{
    *p = v;
}

/* Eight neighbouring columns of a row. */
struct eight {
    float v[EIGHT];
};

__device__ inline bool is_aligned(const void *p)
{
    return ((uintptr_t)p & 15) == 0;
}

/* Columns [column, column + 8) of a row of n, zero beyond its end. */
__device__ inline eight load_eight(const float *row, int64_t column, int64_t n)
{
    eight e;
    const float *p = row + column;
    if (column + EIGHT <= n && is_aligned(p)) {
        float4 a = *(const float4 *)p, b = *(const float4 *)(p + 4);
        e.v[0] = a.x, e.v[1] = a.y, e.v[2] = a.z, e.v[3] = a.w;
        e.v[4] = b.x, e.v[5] = b.y, e.v[6] = b.z, e.v[7] = b.w;
        return e;
    }
    for (int i = 0; i < EIGHT; i++) {
        e.v[i] = column + i < n ? p[i] : 0.0f;
    }
    return e;
}

/* H has two bytes. */
template <typename H> __device__ inline eight load_eight(const H *row, int64_t column, int64_t n)
{
    eight e;
    const H *p = row + column;
    if (column + EIGHT <= n && is_aligned(p)) {
        uint4 a = *(const uint4 *)p;
        const uint32_t words[4] = {a.x, a.y, a.z, a.w};
        for (int i = 0; i < 4; i++) {
            e.v[2 * i] = to_float(H{(uint16_t)words[i]});
            e.v[2 * i + 1] = to_float(H{(uint16_t)(words[i] >> 16)});
        }
        return e;
    }
    for (int i = 0; i < EIGHT; i++) {
        e.v[i] = column + i < n ? to_float(p[i]) : 0.0f;
    }
    return e;
}

__device__ inline void store_eight(float *row, int64_t column, int64_t n, eight e)
{
    float *p = row + column;
    if (column + EIGHT <= n && is_aligned(p)) {
        *(float4 *)p = make_float4(e.v[0], e.v[1], e.v[2], e.v[3]);
        *(float4 *)(p + 4) = make_float4(e.v[4], e.v[5], e.v[6], e.v[7]);
        return;
    }
    for (int i = 0; i < EIGHT && column + i < n; i++) {
        p[i] = e.v[i];
    }
}

template <typename H> __device__ inline void store_eight(H *row, int64_t column, int64_t n, eight e)
{
    H *p = row + column;
    if (column + EIGHT <= n && is_aligned(p)) {
        H rounded[EIGHT];
        uint32_t words[4];
        for (int i = 0; i < EIGHT; i++) {
            from_float(&rounded[i], e.v[i]);
        }
        for (int i = 0; i < 4; i++) {
            words[i] = rounded[2 * i].bits | (uint32_t)rounded[2 * i + 1].bits << 16;
        }
        *(uint4 *)p = make_uint4(words[0], words[1], words[2], words[3]);
        return;
    }
    for (int i = 0; i < EIGHT && column + i < n; i++) {
        from_float(&p[i], e.v[i]);
    }
}

/* Sums and maxima over the threads of a warp, the same value in all of them. */
template <typename T> __device__ inline T warp_sum(T v)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        v += __shfl_xor_sync(0xffffffffU, v, distance);
    }
    return v;
}

__device__ inline float warp_max(float v)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        v = fmaxf(v, __shfl_xor_sync(0xffffffffU, v, distance));
    }
    return v;
}

/* The sum over the threads of a block of up to 1,024, the same in all of them; `partial` is shared memory, [32]. */
template <typename T> __device__ inline T block_sum(T v, T *partial)
{
    int warp = threadIdx.x / WARP, n_warps = (blockDim.x + WARP - 1) / WARP;
    v = warp_sum(v);
    __syncthreads(); /* the last call's values are read */
    if (threadIdx.x % WARP == 0) {
        partial[warp] = v;
    }
    __syncthreads();
    T total = 0;
    for (int i = 0; i < n_warps; i++) {
        total += partial[i];
    }
    return total;
}

/* The 16-bit numbers of eight columns at an address: docs/math/dropout.md. */
struct dropout_eight {
    uint32_t word[4];
};

__device__ inline dropout_eight dropout_numbers(uint64_t key, uint32_t block, uint32_t position, uint32_t sequence,
                                                uint32_t site)
{
    uint32_t c0 = block, c1 = position, c2 = sequence, c3 = site;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int turn = 0; turn < 7; turn++) {
        uint32_t high0 = __umulhi(0xD2511F53U, c0), low0 = 0xD2511F53U * c0;
        uint32_t high1 = __umulhi(0xCD9E8D57U, c2), low1 = 0xCD9E8D57U * c2;
        c0 = high1 ^ c1 ^ k0;
        c2 = high0 ^ c3 ^ k1;
        c1 = low1;
        c3 = low0;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    return dropout_eight{{c0, c1, c2, c3}};
}

__device__ inline uint32_t dropout_number(dropout_eight numbers, int column)
{
    uint32_t word = numbers.word[column % EIGHT / 2];
    return column % 2 == 0 ? word & 0xffffU : word >> 16;
}

/* The key of a kernel whose launch may be replayed with another; 0 where nothing is dropped. */
__device__ inline uint64_t dropout_key_of(const uint64_t *dropout_key, launch_dropout d)
{
    return d.threshold == 0 || dropout_key == NULL ? 0 : *dropout_key;
}

/* What eight columns of a row are multiplied by. */
__device__ inline eight dropout_factors(uint64_t key, launch_dropout d, int64_t row, int64_t column)
{
    eight f;
    if (d.threshold == 0) {
        for (int i = 0; i < EIGHT; i++) {
            f.v[i] = 1.0f;
        }
        return f;
    }
    dropout_eight numbers = dropout_numbers(key, (uint32_t)(column / EIGHT), (uint32_t)d.row_keys[2 * row + 1],
                                            (uint32_t)d.row_keys[2 * row], d.site);
    for (int i = 0; i < EIGHT; i++) {
        f.v[i] = dropout_number(numbers, i) < d.threshold ? 0.0f : d.scale;
    }
    return f;
}

/* An index, or 0 and a note if it lies outside [0, n). */
__device__ inline int64_t checked_index(const int32_t *index, int64_t i, int64_t n, int32_t *fault)
{
    int32_t value = index[i];
    if (value >= 0 && value < n) {
        return value;
    }
    fault[1] = value;
    fault[2] = (int32_t)n;
    fault[3] = (int32_t)i;
    fault[0] = 1;
    return 0;
}

/* Blocks that n items of `size` each make, at most the most a grid may have in x. */
static inline unsigned blocks_of(int64_t n, int64_t size)
{
    int64_t blocks = (n + size - 1) / size;
    return (unsigned)(blocks < 1 ? 1 : blocks > 0x7fffffff ? 0x7fffffff : blocks);
}

#endif
