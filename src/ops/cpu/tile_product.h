/* tile_product: C = A B or C += A B on small fp32 matrices in the cache, with accumulators in registers; GCC vectors of
 * the width of the instruction set.  Operands are padded by their owner, so there are no edges: C has a multiple of
 * TILE_ROWS rows and of TILE_COLS columns. */
#ifndef KILN_OPS_CPU_TILE_PRODUCT_H
#define KILN_OPS_CPU_TILE_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

enum { TILE_ROWS = 8, TILE_COLS = 16 };

/* 32, 16 or 16 vector registers: accumulators for BLOCK_ROWS x 2 vectors, and room for the operands. */
#if defined(__AVX512F__)
enum { TILE_VECTOR = 16, TILE_BLOCK_ROWS = 8 };
#elif defined(__AVX__)
enum { TILE_VECTOR = 8, TILE_BLOCK_ROWS = 4 };
#else
enum { TILE_VECTOR = 4, TILE_BLOCK_ROWS = 4 };
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

/* A matrix whose element (i, l) is at data[i * row + l * step]; B and C have rows `stride` apart. */
struct tile_left {
    const float *data;
    int64_t row, step;
};

/* One block of TILE_BLOCK_ROWS rows and n_vectors (1 or 2, a constant) vectors of columns. */
static inline __attribute__((always_inline)) void tile_block(float *c, int64_t c_stride, struct tile_left a,
                                                             const float *b, int64_t b_stride, int64_t k,
                                                             bool accumulate, const int n_vectors)
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
            sum[i][0] += s * b0;
            if (n_vectors == 2) {
                sum[i][1] += s * b1;
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

/* C [m, n] = (or +=) A [m, k] B [k, n]. */
static inline void tile_product(float *restrict c, int64_t c_stride, struct tile_left a,
                                const float *restrict b, int64_t b_stride, int64_t m, int64_t n, int64_t k,
                                bool accumulate)
{
    for (int64_t j = 0; j < n;) {
        bool two = n - j >= 2 * TILE_VECTOR;
        for (int64_t i = 0; i < m; i += TILE_BLOCK_ROWS) {
            struct tile_left rows = {a.data + i * a.row, a.row, a.step};
            if (two) {
                tile_block(c + i * c_stride + j, c_stride, rows, b + j, b_stride, k, accumulate, 2);
            } else {
                tile_block(c + i * c_stride + j, c_stride, rows, b + j, b_stride, k, accumulate, 1);
            }
        }
        j += two ? 2 * TILE_VECTOR : TILE_VECTOR;
    }
}

#endif
