/* device_code: code shared by kernels: elements of each type as floats, eight columns at a time; sums over a
 * block; the addressed random numbers of dropout.
 *
 * Every sum is a tree of fixed shape, so results do not depend on how blocks are scheduled. */
#ifndef KILN_OPS_CUDA_KERNELS_DEVICE_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_DEVICE_CODE_CUH

#include "ops/cuda/kernels/launch.h"
#ifdef KILN_EMULATED_CUDA
#    include KILN_EMULATED_CUDA
#else
#    include <cuda_fp16.h>
#    include <cuda_runtime.h>
#    define LAUNCH(l, kernel, grid, block, shared, ...)                                                      \
        kernel<<<grid, block, shared, (cudaStream_t)(l)->stream>>>(__VA_ARGS__)

/* The first parameter of a kernel that may begin while the previous launch still runs (PTX ISA 9.0,
 * "griddepcontrol"); only kernels with it are launched so.  Every thread calls `wait` before it touches
 * memory; after an ordinary launch that returns at once. */
struct early_start {
    __device__ void wait(void) const
    {
#    if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        asm volatile("griddepcontrol.wait;" : : : "memory");
#    endif
    }
};

template <typename... P, typename... T>
static inline void launch_with(const launch *l, bool early, unsigned cluster, void (*kernel)(P...), dim3 grid,
                               unsigned block, size_t shared, const T &...arguments)
{
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = grid, config.blockDim = dim3(block), config.dynamicSmemBytes = shared;
    config.stream = (cudaStream_t)l->stream;
    config.attrs = attributes;
    if (early && l->begins_early) {
        attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 1) {
        attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
        attributes[config.numAttrs].val.clusterDim.x = cluster;
        attributes[config.numAttrs].val.clusterDim.y = 1;
        attributes[config.numAttrs++].val.clusterDim.z = 1;
    }
    cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...);
}

/* In CLUSTERS the blocks of a row of the grid are a cluster: at most eight. */
#    define LAUNCH_CLUSTERS(l, kernel, grid, block, shared, ...)                                             \
        launch_with(l, false, (grid).x, kernel, grid, block, shared, __VA_ARGS__)
#    define LAUNCH_EARLY_SHARED(l, kernel, grid, block, shared, ...)                                         \
        launch_with(l, true, 1, kernel, dim3(grid), block, shared, early_start(), __VA_ARGS__)
#    define LAUNCH_EARLY_CLUSTERS(l, kernel, grid, block, shared, ...)                                       \
        launch_with(l, true, (grid).x, kernel, grid, block, shared, early_start(), __VA_ARGS__)
#    define SHARED_MEMORY(name) extern __shared__ __align__(16) float name[]
/* clang-format off */
#    define PRAGMA(text)        _Pragma(#text)
/* clang-format on */
#    define UNROLL              PRAGMA(unroll)
#    define UNROLL_BY(n)        PRAGMA(unroll n)
#endif

#define LAUNCH_EARLY(l, kernel, grid, block, ...) LAUNCH_EARLY_SHARED(l, kernel, grid, block, 0, __VA_ARGS__)

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

/* BY_TYPE that also defines R, the type of a residual stream: A or float. */
#define BY_TYPES(type, stream_type, ...)                                                                     \
    BY_TYPE(                                                                                                 \
        type,                                                                                                \
        if ((stream_type) == (type)) {                                                                       \
            using R = A;                                                                                     \
            __VA_ARGS__;                                                                                     \
        } else {                                                                                             \
            using R = float;                                                                                 \
            __VA_ARGS__;                                                                                     \
        })

#ifndef KILN_EMULATED_CUDA
/* Two elements in a word, `low` in its low half, rounded to nearest, ties to even; a NaN stays a NaN, too
 * large a number becomes infinite. */
#    define PACK(type)                                                                                       \
        uint32_t word;                                                                                       \
        asm("cvt.rn." type "x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));                         \
        return word

__device__ inline uint32_t pack_two(float low, float high, bf16)
{
    PACK("bf16");
}

__device__ inline uint32_t pack_two(float low, float high, f16)
{
    PACK("f16");
}

/* 2^x to 2 units in the last place; 2^-inf = 0. */
__device__ inline float exp2_approx(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#else
inline uint32_t pack_two(float low, float high, bf16)
{
    return emulated_bf16(low) | (uint32_t)emulated_bf16(high) << 16;
}

inline uint32_t pack_two(float low, float high, f16)
{
    return __float2half_rn(low).bits | (uint32_t)__float2half_rn(high).bits << 16;
}
#endif

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

__device__ inline void from_float(float *p, float v)
{
    *p = v;
}

template <typename H> __device__ inline void from_float(H *p, float v)
{
    p->bits = (uint16_t)pack_two(v, v, H());
}

/* Eight neighbouring columns of a row. */
struct eight {
    float v[EIGHT];
};

/* Eight columns as they are stored, so that loads of several can be in flight at once. */
template <typename A> struct packed_eight {
    uint32_t word[EIGHT * sizeof(A) / 4];
};

__device__ inline eight unpack(packed_eight<float> p)
{
    eight e;
    for (int i = 0; i < EIGHT; i++) {
        e.v[i] = __uint_as_float(p.word[i]);
    }
    return e;
}

template <typename H> __device__ inline eight unpack(packed_eight<H> p)
{
    eight e;
    for (int i = 0; i < EIGHT / 2; i++) {
        e.v[2 * i] = to_float(H{(uint16_t)p.word[i]});
        e.v[2 * i + 1] = to_float(H{(uint16_t)(p.word[i] >> 16)});
    }
    return e;
}

__device__ inline packed_eight<float> pack(eight e, float)
{
    packed_eight<float> p;
    for (int i = 0; i < EIGHT; i++) {
        p.word[i] = __float_as_uint(e.v[i]);
    }
    return p;
}

template <typename H> __device__ inline packed_eight<H> pack(eight e, H)
{
    packed_eight<H> p;
    for (int i = 0; i < EIGHT / 2; i++) {
        p.word[i] = pack_two(e.v[2 * i], e.v[2 * i + 1], H());
    }
    return p;
}

/* Eight columns at an address that is a multiple of 16 bytes: one or two accesses. */
template <typename A> __device__ inline packed_eight<A> load_whole(const A *p)
{
    packed_eight<A> packed;
    UNROLL
    for (int i = 0; i < (int)sizeof packed / 16; i++) {
        uint4 four = ((const uint4 *)p)[i];
        packed.word[4 * i] = four.x, packed.word[4 * i + 1] = four.y;
        packed.word[4 * i + 2] = four.z, packed.word[4 * i + 3] = four.w;
    }
    return packed;
}

template <typename A> __device__ inline void store_whole(A *p, const packed_eight<A> &packed)
{
    UNROLL
    for (int i = 0; i < (int)sizeof packed / 16; i++) {
        const uint32_t *word = packed.word + 4 * i;
        ((uint4 *)p)[i] = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

/* Whether columns [column, column + 8) of a row of n can be loaded and stored in one piece. */
__device__ inline bool is_whole(const void *p, int64_t column, int64_t n)
{
    return column + EIGHT <= n && ((uintptr_t)p & 15) == 0;
}

/* Columns [column, column + 8) of a row of n, zero beyond its end. */
template <typename A> __device__ inline packed_eight<A> load_packed(const A *row, int64_t column, int64_t n)
{
    const A *p = row + column;
    if (is_whole(p, column, n)) {
        return load_whole(p);
    }
    eight e;
    for (int i = 0; i < EIGHT; i++) {
        e.v[i] = column + i < n ? to_float(p[i]) : 0.0f;
    }
    return pack(e, A());
}

template <typename A>
__device__ inline void store_packed(A *row, int64_t column, int64_t n, const packed_eight<A> &packed)
{
    A *p = row + column;
    if (is_whole(p, column, n)) {
        store_whole(p, packed);
        return;
    }
    eight e = unpack(packed);
    for (int i = 0; i < EIGHT && column + i < n; i++) {
        from_float(&p[i], e.v[i]);
    }
}

template <typename A> __device__ inline eight load_eight(const A *row, int64_t column, int64_t n)
{
    return unpack(load_packed(row, column, n));
}

template <typename A> __device__ inline void store_eight(A *row, int64_t column, int64_t n, const eight &e)
{
    store_packed(row, column, n, pack(e, A()));
}

/* Columns [column, column + 8), as load_packed reads them, for a column below n.  WHOLE: rows_are_whole, so
 * groups need no checks. */
template <bool WHOLE, typename A>
__device__ inline packed_eight<A> load_group(const A *row, int64_t column, int64_t n)
{
    return WHOLE ? load_whole(row + column) : load_packed(row, column, n);
}

template <bool WHOLE, typename A> __device__ inline eight load_values(const A *row, int64_t column, int64_t n)
{
    return unpack(load_group<WHOLE>(row, column, n));
}

/* The values of a vector that may be NULL: 0 then. */
template <bool WHOLE> __device__ inline eight load_values_or_0(const float *vector, int64_t column, int64_t n)
{
    return vector == NULL ? eight{} : load_values<WHOLE>(vector, column, n);
}

template <bool WHOLE, typename A>
__device__ inline void store_group(A *row, int64_t column, int64_t n, const eight &e)
{
    if (WHOLE) {
        store_whole(row + column, pack(e, A()));
    } else {
        store_eight(row, column, n, e);
    }
}

/* Whether rows of n columns at these addresses are groups of eight at multiples of 16 bytes. */
static inline bool rows_are_whole(int64_t n, const void *const *addresses, int n_addresses)
{
    uintptr_t all = 0;
    for (int i = 0; i < n_addresses; i++) {
        all |= (uintptr_t)addresses[i];
    }
    return n % EIGHT == 0 && (all & 15) == 0;
}

/* sum += e. */
__device__ inline void add_eight(eight *sum, const eight &e)
{
    for (int i = 0; i < EIGHT; i++) {
        sum->v[i] += e.v[i];
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

/* The sum over the threads of a block of up to 1,024, the same in all of them; `partial` is shared memory,
 * [32]. */
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

__device__ inline dropout_eight dropout_numbers(uint64_t key, uint32_t block, uint32_t position,
                                                uint32_t sequence, uint32_t site)
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

/* 1 / x for x >= 1, without __fdividef's handling of numbers near the ends of the range. */
__device__ static inline float reciprocal_approx(float x)
{
#ifdef KILN_EMULATED_CUDA
    return 1.0f / x;
#else
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}

/* The key of dropout; it is in memory, since a replay may use another one. 0 if nothing is dropped. */
__device__ inline uint64_t dropout_key_of(const uint64_t *dropout_key, launch_dropout d)
{
    return d.threshold == 0 || dropout_key == NULL ? 0 : *dropout_key;
}

/* The factors of dropout for eight columns of a row. */
__device__ inline eight dropout_factors(uint64_t key, launch_dropout d, int64_t row, int64_t column)
{
    eight f;
    if (d.threshold == 0) {
        for (int i = 0; i < EIGHT; i++) {
            f.v[i] = 1.0f;
        }
        return f;
    }
    dropout_eight numbers =
        dropout_numbers(key, (uint32_t)(column / EIGHT), (uint32_t)d.row_keys[2 * row + 1],
                        (uint32_t)d.row_keys[2 * row], d.site);
    for (int i = 0; i < EIGHT; i++) {
        f.v[i] = dropout_number(numbers, i) < d.threshold ? 0.0f : d.scale;
    }
    return f;
}

/* The index, or 0 if it is outside [0, n), which is recorded as a fault. */
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

/* The number of blocks of `size` items that hold n items, at most the limit of a grid in x. */
static inline unsigned blocks_of(int64_t n, int64_t size)
{
    int64_t blocks = (n + size - 1) / size;
    return (unsigned)(blocks < 1 ? 1 : blocks > 0x7fffffff ? 0x7fffffff : blocks);
}

#endif
