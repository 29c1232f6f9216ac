/* tile_product: C = A B or C += A B on small matrices in the cache, with accumulators in registers; GCC
 * vectors of the width of the instruction set.  Operands are padded by their owner, so there are no edges: C
 * has a multiple of TILE_ROWS rows and of TILE_COLS columns.
 *
 * C is fp32.  A and B consist of words: a word is one fp32 or, where the processor multiplies bf16 (TILE_PAIRS),
 * a pair of bf16 that are neighbours along the inner dimension, the earlier one in the low half.  The loops are
 * the same; pairs make the inner dimension half as long. */
#ifndef KILN_OPS_CPU_TILE_PRODUCT_H
#define KILN_OPS_CPU_TILE_PRODUCT_H

#include "core/dtype.h"

#include <stdbool.h>
#if defined(__AVX512BF16__)
#    include <immintrin.h>
#endif

enum { TILE_ROWS = 8, TILE_COLS = 16 };

/* 32, 16 or 16 vector registers: accumulators for BLOCK_ROWS x 2 vectors, and room for the operands. */
#if defined(__AVX512F__)
enum { TILE_VECTOR = 16, TILE_BLOCK_ROWS = 8 };
#elif defined(__AVX__)
enum { TILE_VECTOR = 8, TILE_BLOCK_ROWS = 4 };
#else
enum { TILE_VECTOR = 4, TILE_BLOCK_ROWS = 4 };
#endif

#if defined(__AVX512BF16__)
enum { TILE_PAIRS = true };
#else
enum { TILE_PAIRS = false };
#endif

typedef float tile_vector __attribute__((vector_size(TILE_VECTOR * sizeof(float)), aligned(4), may_alias));

static inline tile_vector *tile_at(float *p)
{
    return (tile_vector *)p;
}

static inline tile_vector tile_load(const float *p)
{
    return *(const tile_vector *)p;
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

/* A matrix whose word (i, l) is at data[i * row + l * step]; B and C have rows `stride` apart. */
struct tile_left {
    const float *data;
    int64_t row, step;
};

/* One block of TILE_BLOCK_ROWS rows and n_vectors (1 or 2, a constant) vectors of columns. */
static inline __attribute__((always_inline)) void tile_block(float *c, int64_t c_stride, struct tile_left a,
                                                             const float *b, int64_t b_stride, int64_t k,
                                                             bool accumulate, const bool pairs,
                                                             const int n_vectors)
{
    tile_vector sum[TILE_BLOCK_ROWS][2];
#pragma GCC unroll 8
    for (int i = 0; i < TILE_BLOCK_ROWS; i++) {
        sum[i][0] = (tile_vector){0};
        sum[i][1] = (tile_vector){0};
    }
    for (int64_t l = 0; l < k; l++) {
        const float *row = b + l * b_stride;
        tile_vector b0 = tile_load(row);
        tile_vector b1 = n_vectors == 2 ? tile_load(row + TILE_VECTOR) : (tile_vector){0};
#pragma GCC unroll 8
        for (int i = 0; i < TILE_BLOCK_ROWS; i++) {
            float s = a.data[i * a.row + l * a.step];
            sum[i][0] = tile_multiply_add(sum[i][0], s, b0, pairs);
            if (n_vectors == 2) {
                sum[i][1] = tile_multiply_add(sum[i][1], s, b1, pairs);
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < TILE_BLOCK_ROWS; i++) {
        for (int v = 0; v < n_vectors; v++) {
            tile_vector *to = tile_at(c + i * c_stride + v * TILE_VECTOR);
            if (accumulate) {
                *to += sum[i][v];
            } else {
                *to = sum[i][v];
            }
        }
    }
}

static inline __attribute__((always_inline)) void tile_blocks(float *restrict c, int64_t c_stride,
                                                              struct tile_left a, const float *restrict b,
                                                              int64_t b_stride, int64_t m, int64_t n,
                                                              int64_t k, bool accumulate, const bool pairs)
{
    for (int64_t j = 0; j < n;) {
        bool two = n - j >= 2 * TILE_VECTOR;
        for (int64_t i = 0; i < m; i += TILE_BLOCK_ROWS) {
            struct tile_left rows = {a.data + i * a.row, a.row, a.step};
            if (two) {
                tile_block(c + i * c_stride + j, c_stride, rows, b + j, b_stride, k, accumulate, pairs, 2);
            } else {
                tile_block(c + i * c_stride + j, c_stride, rows, b + j, b_stride, k, accumulate, pairs, 1);
            }
        }
        j += two ? 2 * TILE_VECTOR : TILE_VECTOR;
    }
}

/* C [m, n] = (or +=) A [m, k] B [k, n], k in words. */
static inline void tile_product(float *restrict c, int64_t c_stride, struct tile_left a,
                                const float *restrict b, int64_t b_stride, int64_t m, int64_t n, int64_t k,
                                bool accumulate, bool pairs)
{
    if (TILE_PAIRS && pairs) {
        tile_blocks(c, c_stride, a, b, b_stride, m, n, k, accumulate, true);
    } else {
        tile_blocks(c, c_stride, a, b, b_stride, m, n, k, accumulate, false);
    }
}

/* A row of n fp32 becomes its n / 2 pairs, in place; n is a multiple of TILE_COLS. */
static inline void tile_pair_along(float *row, int64_t n)
{
    uint16_t *out = (uint16_t *)row;
    for (int64_t i = 0; i < n; i += TILE_COLS) {
#if defined(__AVX512BF16__)
        _mm256_storeu_si256((__m256i *)(out + i), (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(row + i)));
#else
        for (int64_t l = i; l < i + TILE_COLS; l++) {
            out[l] = bf16_from_f32(row[l]);
        }
#endif
    }
}

/* out[i] = the pair of a[i] and b[i]; n is a multiple of TILE_COLS; out may be one of them. */
static inline void tile_pair_across(float *out, const float *a, const float *b, int64_t n)
{
#if defined(__AVX512BF16__)
    const __m512i halves = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23,
                                            7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    for (int64_t i = 0; i < n; i += TILE_COLS) {
        __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(b + i), _mm512_loadu_ps(a + i));
        _mm512_storeu_si512(out + i, _mm512_permutexvar_epi16(halves, (__m512i)both));
    }
#else
    for (int64_t i = 0; i < n; i++) {
        uint32_t word = bf16_from_f32(a[i]) | (uint32_t)bf16_from_f32(b[i]) << 16;
        memcpy(out + i, &word, sizeof word);
    }
#endif
}

/* Lane l of the two results of one stage of a transposition, which exchanges the off-diagonal blocks of size
 * h. */
#define TILE_LOW(l, h)   ((l) & (h) ? TILE_VECTOR + (l) - (h) : (l))
#define TILE_HIGH(l, h)  ((l) & (h) ? TILE_VECTOR + (l) : (l) + (h))
#define TILE_4(f, l, h)  f(l, h), f((l) + 1, h), f((l) + 2, h), f((l) + 3, h)
#define TILE_8(f, l, h)  TILE_4(f, l, h), TILE_4(f, (l) + 4, h)
#define TILE_16(f, l, h) TILE_8(f, l, h), TILE_8(f, (l) + 8, h)
#if defined(__AVX512F__)
#    define TILE_LANES(f, h) TILE_16(f, 0, h)
#elif defined(__AVX__)
#    define TILE_LANES(f, h) TILE_8(f, 0, h)
#else
#    define TILE_LANES(f, h) TILE_4(f, 0, h)
#endif

#define TILE_STAGE(rows, h)                                                                                  \
    _Pragma("GCC unroll 16") for (int i = 0; i < TILE_VECTOR; i++)                                           \
    {                                                                                                        \
        if ((i & (h)) == 0) {                                                                                \
            tile_vector low = (rows)[i], high = (rows)[i + (h)];                                             \
            (rows)[i] = __builtin_shufflevector(low, high, TILE_LANES(TILE_LOW, h));                         \
            (rows)[i + (h)] = __builtin_shufflevector(low, high, TILE_LANES(TILE_HIGH, h));                  \
        }                                                                                                    \
    }

/* out [cols, rows] = in^T, words, both counts multiples of TILE_COLS: vector by vector, in registers. */
static inline void tile_transpose(float *restrict out, int64_t out_stride, const float *restrict in,
                                  int64_t in_stride, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r += TILE_VECTOR) {
        for (int64_t c = 0; c < cols; c += TILE_VECTOR) {
            tile_vector v[TILE_VECTOR];
#pragma GCC unroll 16
            for (int i = 0; i < TILE_VECTOR; i++) {
                v[i] = tile_load(in + (r + i) * in_stride + c);
            }
#if defined(__AVX512F__)
            TILE_STAGE(v, 8)
#endif
#if defined(__AVX__)
            TILE_STAGE(v, 4)
#endif
            TILE_STAGE(v, 2)
            TILE_STAGE(v, 1)
#pragma GCC unroll 16
            for (int i = 0; i < TILE_VECTOR; i++) {
                *tile_at(out + (c + i) * out_stride + r) = v[i];
            }
        }
    }
}

#endif
