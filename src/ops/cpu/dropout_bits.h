/* dropout_bits: the addressed random numbers of ops.h, a vector of Philox blocks at a time.  One block covers
 * eight columns of one row. */
#ifndef KILN_OPS_CPU_DROPOUT_BITS_H
#define KILN_OPS_CPU_DROPOUT_BITS_H

#include "ops/cpu/kernel.h"

#if defined(__x86_64__)
#    include <immintrin.h>
#endif

/* Counters are in the low halves of 64-bit lanes, where one instruction computes all products of a round; GCC
 * does not find it by itself.  The high halves are never read. */
#if defined(__AVX512F__)
enum { DROPOUT_LANES = 8 };
#    define DROPOUT_FIRST_BLOCKS 0, 8, 1, 9, 2, 10, 3, 11
#    define DROPOUT_LAST_BLOCKS  4, 12, 5, 13, 6, 14, 7, 15
#elif defined(__AVX2__)
enum { DROPOUT_LANES = 4 };
#    define DROPOUT_FIRST_BLOCKS 0, 4, 1, 5
#    define DROPOUT_LAST_BLOCKS  2, 6, 3, 7
#else
enum { DROPOUT_LANES = 2 };
#    define DROPOUT_FIRST_BLOCKS 0, 2
#    define DROPOUT_LAST_BLOCKS  1, 3
#endif

enum { DROPOUT_COLUMNS = 8, DROPOUT_SLACK = DROPOUT_LANES * DROPOUT_COLUMNS };

typedef uint64_t dropout_vector __attribute__((vector_size(DROPOUT_LANES * sizeof(uint64_t))));
typedef dropout_vector dropout_anywhere __attribute__((aligned(2), may_alias));

/* The numbers to draw: n_blocks blocks of eight columns, from column 8 first_block on, of each row. */
struct dropout_bits {
    uint64_t key;
    uint32_t site;
    uint32_t first_block;
    int64_t n_blocks;
    const int32_t *row_keys; /* [rows, 2] sequence, position */
};

/* Numbers of `rows` rows need this many elements: full vectors of blocks are written. */
static inline int64_t dropout_bits_count(int64_t rows, int64_t n_blocks)
{
    return rows * n_blocks * DROPOUT_COLUMNS + DROPOUT_SLACK;
}

/* Low half times low half. */
static inline dropout_vector dropout_multiply(dropout_vector a, uint32_t b)
{
#if defined(__AVX512F__)
    return (dropout_vector)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64((long long)b));
#elif defined(__AVX2__)
    return (dropout_vector)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x((long long)b));
#elif defined(__SSE2__)
    return (dropout_vector)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x((long long)b));
#else
    return (a & 0xffffffffU) * b;
#endif
}

/* The blocks with first counter c0 in each lane, in memory order. */
static inline void dropout_philox(uint16_t *out, dropout_vector c0, uint32_t position, uint32_t sequence,
                                  uint32_t site, uint64_t key)
{
    dropout_vector zero = {0};
    dropout_vector c1 = zero + position, c2 = zero + sequence, c3 = zero + site;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#pragma GCC unroll 7
    for (int round = 0; round < 7; round++) {
        dropout_vector p0 = dropout_multiply(c0, 0xD2511F53U), p1 = dropout_multiply(c2, 0xCD9E8D57U);
        c0 = (p1 >> 32) ^ c1 ^ k0;
        c2 = (p0 >> 32) ^ c3 ^ k1;
        c1 = p1;
        c3 = p0;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    dropout_vector words01 = (c0 & 0xffffffffU) | c1 << 32, words23 = (c2 & 0xffffffffU) | c3 << 32;
    dropout_anywhere *to = (dropout_anywhere *)out;
    to[0] = __builtin_shufflevector(words01, words23, DROPOUT_FIRST_BLOCKS);
    to[1] = __builtin_shufflevector(words01, words23, DROPOUT_LAST_BLOCKS);
}

/* bits[row * 8 n_blocks + column - 8 first_block] = the element's 16-bit number (halves of words, low half
 * first: the order in which a little-endian machine stores them). */
static inline void dropout_bits(uint16_t *restrict bits, struct dropout_bits d, int64_t rows)
{
    dropout_vector first = {0};
    for (int l = 0; l < DROPOUT_LANES; l++) {
        first[l] = d.first_block + (uint64_t)l;
    }
    for (int64_t r = 0; r < rows; r++) {
        uint16_t *row =
            bits + r * d.n_blocks * DROPOUT_COLUMNS; /* the next row overwrites what it writes past its end */
        uint32_t sequence = (uint32_t)d.row_keys[2 * r], position = (uint32_t)d.row_keys[2 * r + 1];
        for (int64_t b = 0; b < d.n_blocks; b += DROPOUT_LANES) {
            dropout_philox(row + b * DROPOUT_COLUMNS, first + (uint64_t)b, position, sequence, d.site, d.key);
        }
    }
}

#endif
