/* tile_vector: a GCC vector of the fp32 numbers that a register of the instruction set holds, and operations
 * that GCC's operators lack: by the processor's own instructions if it has them, else lane by lane. */
#ifndef KILN_OPS_CPU_TILE_VECTOR_H
#define KILN_OPS_CPU_TILE_VECTOR_H

#include "core/dtype.h"
#include "ops/cpu/vmath.h"

#include <stdbool.h>
#if defined(__AVX2__)
#    include <immintrin.h>
#endif

/* 32, 16 or 16 vector registers: accumulators for BLOCK_ROWS x 2 vectors, and registers for the operands. */
#if defined(__AVX512F__)
enum { TILE_VECTOR = 16, TILE_BLOCK_ROWS = 8 };
#elif defined(__AVX__)
enum { TILE_VECTOR = 8, TILE_BLOCK_ROWS = 4 };
#else
enum { TILE_VECTOR = 4, TILE_BLOCK_ROWS = 4 };
#endif

/* Whether the processor multiplies pairs of bf16. */
#if defined(__AVX512BF16__)
enum { TILE_PAIRS = true };
#else
enum { TILE_PAIRS = false };
#endif

typedef float tile_vector __attribute__((vector_size(TILE_VECTOR * sizeof(float)), aligned(4), may_alias));

/* A vector of the same number of integers: the type of comparisons, with all bits of a lane set or none. */
typedef int32_t tile_ints __attribute__((vector_size(TILE_VECTOR * sizeof(int32_t))));
typedef uint32_t tile_bits __attribute__((vector_size(TILE_VECTOR * sizeof(uint32_t))));
typedef uint16_t tile_halves
    __attribute__((vector_size(TILE_VECTOR * sizeof(uint16_t)), aligned(2), may_alias));

static inline tile_vector *tile_at(float *p)
{
    return (tile_vector *)p;
}

static inline tile_vector tile_load(const float *p)
{
    return *(const tile_vector *)p;
}

/* TILE_VECTOR numbers of 16 bits, at any even address, in 32.  GCC 12 makes four instructions of the
 * conversion for AVX2. */
static inline tile_bits tile_widen(const void *p)
{
#if defined(__AVX512F__)
    return (tile_bits)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
#elif defined(__AVX2__)
    return (tile_bits)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
#else
    return __builtin_convertvector(*(const tile_halves *)p, tile_bits);
#endif
}

/* TILE_VECTOR numbers of bf16, at any even address. */
static inline tile_vector tile_from_bf16(const void *p)
{
    return (tile_vector)(tile_widen(p) << 16);
}

/* sum + a b, word by word. */
static inline tile_vector tile_multiply_add(tile_vector sum, float a, tile_vector b, const bool pairs)
{
#if defined(__AVX512BF16__)
    if (pairs) {
        return (tile_vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_ps(a), (__m512bh)b);
    }
#endif
    (void)pairs;
    return sum + a * b;
}

/* a where the mask is set, b elsewhere. */
static inline tile_vector tile_choose(tile_ints mask, tile_vector a, tile_vector b)
{
    return (tile_vector)((mask & (tile_ints)a) | (~mask & (tile_ints)b));
}

/* 2^x, relative error below 2e-7; almost 0 below -126, and for minus infinity; infinity from 128 on, where a
 * run that diverges gets. */
static inline tile_vector tile_exp2(tile_vector x)
{
#if defined(__AVX512F__)
    __m512 v = (__m512)x;
    tile_vector r =
        (tile_vector)_mm512_reduce_ps(v, _MM_FROUND_TO_NEG_INF); /* x - floor(x); 0 of an infinity */
    tile_vector p = r * 0.00187757658f + 0.00898934063f;
    p = p * r + 0.0558263175f;
    p = p * r + 0.240153611f;
    p = p * r + 0.693153083f;
    p = p * r + 0.99999994f;
    return (tile_vector)_mm512_scalef_ps((__m512)p, v); /* p 2^floor(x) */
#else
    const float to_integer = 0x1.8p23f; /* adding it leaves the nearest integer in the low bits */
    tile_vector lowest = (tile_vector){0} - 126.0f, highest = (tile_vector){0} + 128.0f;
    tile_vector clamped = tile_choose(x < lowest, lowest, tile_choose(x > highest, highest, x));
    tile_vector shifted = clamped + to_integer;
    tile_vector r = clamped - (shifted - to_integer);
    tile_vector p = r * 0.00132647273f + 0.00967151299f;
    p = p * r + 0.0555073358f;
    p = p * r + 0.240222424f;
    p = p * r + 0.693147004f;
    p = p * r + 1.0f;
    return (tile_vector)((tile_bits)p + ((tile_bits)shifted << 23));
#endif
}

/* v where bits, of which there are TILE_VECTOR, are not below the threshold; 0 elsewhere. */
static inline tile_vector tile_keep(tile_vector v, const uint16_t *bits, uint32_t threshold)
{
    return (tile_vector)(((tile_ints)tile_widen(bits) >= (int32_t)threshold) & (tile_ints)v);
}

/* The sum of all lanes, in a fixed order. */
static inline float tile_sum(tile_vector v)
{
    float sum = v[0];
    for (int i = 1; i < TILE_VECTOR; i++) {
        sum += v[i];
    }
    return sum;
}

/* v as bf16, pairs along a row. */
static inline void tile_store_along(uint16_t *out, tile_vector v)
{
#if defined(__AVX512BF16__)
    _mm256_storeu_si256((__m256i *)out, (__m256i)_mm512_cvtneps_pbh((__m512)v));
#else
    for (int i = 0; i < TILE_VECTOR; i++) {
        out[i] = bf16_from_f32(v[i]);
    }
#endif
}

/* The pairs of a and b, lane by lane. */
static inline tile_vector tile_pair_across(tile_vector a, tile_vector b)
{
#if defined(__AVX512BF16__)
    const __m512i halves = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23,
                                            7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512bh both = _mm512_cvtne2ps_pbh((__m512)b, (__m512)a);
    a = (tile_vector)_mm512_permutexvar_epi16(halves, (__m512i)both);
#else
    for (int i = 0; i < TILE_VECTOR; i++) {
        a[i] = vmath_float(bf16_from_f32(a[i]) | (uint32_t)bf16_from_f32(b[i]) << 16);
    }
#endif
    return a;
}

#endif
