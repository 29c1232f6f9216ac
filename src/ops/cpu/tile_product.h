/* tile_product: C = A B or C += A B on small matrices in the cache, with accumulators in registers; GCC
 * vectors of the width of the instruction set.  The caller pads operands, so there are no edges: C
 * has a multiple of TILE_ROWS rows and of TILE_COLS columns.
 *
 * C is fp32.  A and B consist of words: a word is one fp32 or, if the processor multiplies bf16 (TILE_PAIRS),
 * a pair of bf16 adjacent along the inner dimension, the earlier one in the low half.  The loops are the
 * same; with pairs the inner dimension is half as long. */
#ifndef KILN_OPS_CPU_TILE_PRODUCT_H
#define KILN_OPS_CPU_TILE_PRODUCT_H

#include "ops/cpu/tile_vector.h"

enum { TILE_ROWS = 8, TILE_COLS = 16 };

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
