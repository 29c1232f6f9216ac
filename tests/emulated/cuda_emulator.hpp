/* cuda_emulator: enough of CUDA C for the kernels of ops/cuda to run on the cpu, one block, or cluster of
 * blocks, at a time, so that their arithmetic, indices and barriers are tested where there is no GPU.
 *
 * A thread of a block is a fiber.  It runs until it meets a barrier, of its block or of its warp.  A warp
 * runs from one barrier of the block to the next before other warps do, so that what is missing between them
 * shows; a barrier that some threads never reach ends the program.  So do blocks of a cluster between two of
 * its barriers; one that writes into another which has not begun, or has ended, ends the program.  Shared
 * memory is static memory; it is filled with NaN before each block.  Lanes of a warp run in turn, forwards
 * and backwards by turns.  What is not tested: memory consistency beyond what these orders show, and
 * speed. */
#ifndef KILN_TESTS_CUDA_EMULATOR_HPP
#define KILN_TESTS_CUDA_EMULATOR_HPP

#include "emulated_counts.h"
#include "emulated_fp8.hpp"
#include "emulated_half.hpp"
#include "emulated_memory.h"
#include "ops/cuda/kernels/launch.h"

#include <functional>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tuple>
#include <type_traits>

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

/* Its copies from and to the device's memory are counted. */
struct uint4 {
    uint32_t x, y, z, w;
    uint4() = default;
    uint4(uint32_t x_, uint32_t y_, uint32_t z_, uint32_t w_) : x(x_), y(y_), z(z_), w(w_) {}
    uint4(const uint4 &o) : x(o.x), y(o.y), z(o.z), w(o.w)
    {
        emulated_touch(&o, false);
    }
    uint4 &operator=(const uint4 &o)
    {
        x = o.x, y = o.y, z = o.z, w = o.w;
        emulated_touch(&o, false);
        emulated_touch(this, true);
        return *this;
    }
};

static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return uint4(x, y, z, w);
}

struct emulated_thread {
    dim3 thread, block, block_size, grid_size;
};

extern emulated_thread *emulated;

void emulated_launch(const char *name, dim3 grid, dim3 block, size_t shared,
                     const std::function<void()> &kernel, bool early = false, unsigned cluster = 1);
void emulated_wait_for_launch_before(void);
/* Who waits for whom. */
enum emulated_scope { EMULATED_WARP, EMULATED_WARPGROUP, EMULATED_BLOCK };

void emulated_barrier(emulated_scope scope);
void *emulated_shared(void);
size_t emulated_shared_bytes(void);   /* that the launch asked for */
uint64_t *emulated_exchange(void);    /* [threads of a block] */
unsigned emulated_index(void);        /* of the running thread, in its cluster */
unsigned emulated_block(void);        /* of the running thread, in its cluster */
void emulated_end(void);              /* matrix_emulator.cpp: the running thread has returned */
void emulated_end_products(void);     /* warpgroup_emulator.cpp: the same */
void emulated_new_blocks(unsigned n); /* the same: nothing was written to their shared memory yet */
void emulated_met(unsigned first, unsigned end); /* the same: threads of a block, all of them, have met */

/* The barrier of a cluster, and 16 bytes of the shared memory of one of its blocks, to be written. */
void emulated_arrive(void);
void emulated_wait_for_cluster(void);
unsigned char *emulated_place_of(unsigned block, size_t offset);

/* For tests of what the emulator finds: threads do not wait when they come to this wait for their cluster. */
enum { EMULATED_NO_WAIT = -1 };

void emulated_forget_wait(int number);

/* What a kernel is given must not point to the host's memory: pointers, classes of pointers and integers
 * without gaps word by word, and those of launch.h that have gaps by their fields. */
template <typename T> static inline void emulated_check(const T &value)
{
    if constexpr (std::is_pointer_v<T>) {
        emulated_memory_check((const void *)value);
    } else if constexpr (std::is_class_v<T> && std::has_unique_object_representations_v<T>) {
        const void *words[sizeof(T) / sizeof(void *)];
        memcpy(words, &value, sizeof words);
        for (const void *word : words) {
            emulated_memory_check(word);
        }
    }
}

template <typename... T> static inline void emulated_check_all(const T &...values)
{
    (emulated_check(values), ...);
}

inline void emulated_check(const launch_dropout &d)
{
    emulated_check_all(d.row_keys);
}

inline void emulated_check(const launch_norm &n)
{
    emulated_check_all(n.gamma, n.beta, n.mean, n.rstd);
}

inline void emulated_check(const launch_attention &a)
{
    emulated_check_all(a.cu_q, a.cu_kv, a.slopes, a.dropout.row_keys, a.bits);
}

inline void emulated_check(const launch_optim &o)
{
    emulated_check_all(o.master, o.grad, o.exp_avg, o.exp_avg_sq, o.working, o.spans, o.norm, o.scalars,
                       o.sums, o.ratios);
}

/* A call of a kernel with the values that its arguments have now: a recording outlives what they point to. */
template <typename... P, typename... T>
static inline std::function<void()> emulated_call(void (*kernel)(P...), T... arguments)
{
    std::tuple<P...> values(static_cast<P>(arguments)...);
    std::apply([](const P &...value) { (emulated_check(value), ...); }, values);
    return [=] { std::apply(kernel, values); };
}

#define threadIdx (emulated->thread)
#define blockIdx  (emulated->block)
#define blockDim  (emulated->block_size)
#define gridDim   (emulated->grid_size)

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define SHARED_MEMORY(name) float *name = (float *)emulated_shared()
#define UNROLL
#define UNROLL_BY(n)
#define ROLLED
#define __syncthreads() emulated_barrier(EMULATED_BLOCK)
#define __syncwarp()    emulated_barrier(EMULATED_WARP)
#define LAUNCH(l, kernel, grid, block, shared, ...)                                                          \
    emulated_launch(#kernel, dim3(grid), dim3(block), shared, emulated_call(kernel, __VA_ARGS__))
#define LAUNCH_CLUSTERS(l, kernel, grid, block, shared, ...)                                                 \
    emulated_launch(#kernel, grid, dim3(block), shared, emulated_call(kernel, __VA_ARGS__), false, (grid).x)

/* As in device_code.cuh.  Until its first thread has waited the kernel finds no device memory; a thread that
 * never waits ends the program. */
struct early_start {
    void wait(void) const
    {
        emulated_wait_for_launch_before();
    }
};

#define LAUNCH_EARLY_SHARED(l, kernel, grid, block, shared, ...)                                             \
    emulated_launch(#kernel, dim3(grid), dim3(block), shared,                                                \
                    emulated_call(kernel, early_start(), __VA_ARGS__), true)
#define LAUNCH_EARLY_CLUSTERS(l, kernel, grid, block, shared, ...)                                           \
    emulated_launch(#kernel, grid, dim3(block), shared, emulated_call(kernel, early_start(), __VA_ARGS__),   \
                    true, (grid).x)

/* The value of another thread of the block. */
template <typename T> static inline T emulated_shuffle(T value, unsigned from)
{
    uint64_t bits = 0;
    T other;
    memcpy(&bits, &value, sizeof value);
    emulated_exchange()[emulated_index()] = bits;
    emulated_barrier(EMULATED_WARP);
    bits = emulated_exchange()[from];
    emulated_barrier(EMULATED_WARP);
    memcpy(&other, &bits, sizeof other);
    return other;
}

template <typename T> static inline T __shfl_xor_sync(uint32_t, T value, int mask)
{
    return emulated_shuffle(value, emulated_index() ^ (unsigned)mask);
}

template <typename T> static inline T __shfl_sync(uint32_t, T value, int lane)
{
    return emulated_shuffle(value, emulated_index() / 32 * 32 + (unsigned)lane % 32);
}

static inline uint32_t __reduce_max_sync(uint32_t mask, uint32_t value)
{
    for (int distance = 16; distance > 0; distance /= 2) {
        uint32_t other = __shfl_xor_sync(mask, value, distance);
        value = other > value ? other : value;
    }
    return value;
}

static inline void atomicMax(uint32_t *p, uint32_t v)
{
    *p = v > *p ? v : *p;
}

static inline void atomicMin(unsigned long long *p, unsigned long long v)
{
    *p = v < *p ? v : *p;
}

/* Lanes whose value is that of this one. */
template <typename T> static inline uint32_t __match_any_sync(uint32_t, T value)
{
    uint32_t same = 0;
    emulated_exchange()[emulated_index()] = (uint64_t)value;
    emulated_barrier(EMULATED_WARP);
    for (unsigned lane = 0; lane < 32; lane++) {
        same |= (uint32_t)(emulated_exchange()[emulated_index() / 32 * 32 + lane] == (uint64_t)value) << lane;
    }
    emulated_barrier(EMULATED_WARP);
    return same;
}

static inline int __popc(uint32_t v)
{
    return __builtin_popcount(v);
}

/* Bytes of b:a, the i-th named by the i-th hexadecimal digit of `selector`. */
static inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector)
{
    uint64_t bytes = a | (uint64_t)b << 32;
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) {
        word |= (uint32_t)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    }
    return word;
}

static inline float __fdividef(float a, float b)
{
    return a / b;
}

static inline float exp2_approx(float x)
{
    return exp2f(x);
}

static inline uint32_t __umulhi(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

static inline float __uint_as_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t __float_as_uint(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

enum cudaError_t { cudaSuccess };
typedef struct CUstream_st *cudaStream_t;
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };

enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount };

/* Few, so that blocks which stay as long as there is work have several pieces of it; tests of them have other
 * numbers too. */
extern int emulated_multiprocessors;

static inline cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

static inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    *value = emulated_multiprocessors;
    return cudaSuccess;
}

struct cudaFuncAttributes {
    int ptxVersion, maxThreadsPerBlock;
};

template <typename F> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, F *)
{
    attributes->maxThreadsPerBlock = 1024;
    return cudaSuccess;
}

static inline cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

static inline const char *cudaGetErrorString(cudaError_t)
{
    return "no error";
}

/* A launch like any other. */
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);

template <typename F> static inline cudaError_t cudaFuncSetAttribute(F *, cudaFuncAttribute, int)
{
    return cudaSuccess;
}

#endif
