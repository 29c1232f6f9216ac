/* dropout_bits: the addressed random numbers of ops.h, sixteen Philox blocks at a time.  One block covers eight columns
 * of one row; the loops over the sixteen become vector code. */
#ifndef KILN_OPS_CPU_DROPOUT_BITS_H
#define KILN_OPS_CPU_DROPOUT_BITS_H

#include "ops/cpu/kernel.h"

#include <string.h>

enum { DROPOUT_LANES = 16, DROPOUT_COLUMNS = 8, DROPOUT_SLACK = DROPOUT_LANES * DROPOUT_COLUMNS };

/* Which numbers: n_blocks blocks of eight columns, from column 8 first_block, of each row. */
struct dropout_bits {
    uint64_t key;
    uint32_t site;
    uint32_t first_block;
    int64_t n_blocks;
    const int32_t *row_keys; /* [rows, 2] sequence, position */
};

/* Numbers of `rows` rows need this many elements: whole groups of sixteen blocks are written. */
static inline int64_t dropout_bits_count(int64_t rows, int64_t n_blocks)
{
    return rows * n_blocks * DROPOUT_COLUMNS + DROPOUT_SLACK;
}

static inline void dropout_philox(uint32_t c[4][DROPOUT_LANES], uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 7; round++) {
#pragma omp simd
        for (int l = 0; l < DROPOUT_LANES; l++) {
            uint64_t p0 = (uint64_t)0xD2511F53U * c[0][l];
            uint64_t p1 = (uint64_t)0xCD9E8D57U * c[2][l];
            c[0][l] = (uint32_t)(p1 >> 32) ^ c[1][l] ^ k0;
            c[2][l] = (uint32_t)(p0 >> 32) ^ c[3][l] ^ k1;
            c[1][l] = (uint32_t)p1;
            c[3][l] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
}

/* bits[row * 8 n_blocks + column - 8 first_block] = the element's 16-bit number. */
static inline void dropout_bits(uint16_t *restrict bits, struct dropout_bits d, int64_t rows)
{
    int64_t n = rows * d.n_blocks;
    int64_t row = 0, block = 0;
    for (int64_t first = 0; first < n; first += DROPOUT_LANES) {
        uint32_t c[4][DROPOUT_LANES], words[DROPOUT_LANES][4];
        for (int l = 0; l < DROPOUT_LANES; l++) {
            int64_t r = row < rows ? row : rows - 1; /* lanes past the end repeat the last row */
            c[0][l] = d.first_block + (uint32_t)block;
            c[1][l] = (uint32_t)d.row_keys[2 * r + 1];
            c[2][l] = (uint32_t)d.row_keys[2 * r];
            c[3][l] = d.site;
            block = block + 1 == d.n_blocks ? 0 : block + 1;
            row += block == 0;
        }
        dropout_philox(c, d.key);
        for (int l = 0; l < DROPOUT_LANES; l++) {
            for (int w = 0; w < 4; w++) {
                words[l][w] = c[w][l];
            }
        }
        memcpy(bits + first * DROPOUT_COLUMNS, words, sizeof words);
    }
}

#endif
