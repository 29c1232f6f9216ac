#include "text/text_split.h"

/* clang-format off */
const uint8_t text_split_positions[64] = {
    0,  1,  2,  53, 3,  7,  54, 27, 4,  38, 41, 8,  34, 55, 48, 28,
    62, 5,  39, 46, 44, 42, 22, 9,  24, 35, 59, 56, 49, 18, 29, 11,
    63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21, 23, 58, 17, 10,
    51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12,
};
/* clang-format on */

/* Eight bytes in a word of 64 bits, each with a flag in its highest bit. */
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* A flag for each byte of y, all below 128, that is at least `least`; the other bits are undefined. */
#define AT_LEAST(y, least)      ((y) + EACH(0x80 - (least)))
#define BETWEEN(y, first, last) (AT_LEAST(y, first) & ~AT_LEAST(y, (last) + 1))

enum { N_WORDS = TEXT_SPLIT_BYTES / 8 };

/* Classifies bytes as basic_kinds does.  There are no branches and no look-ups, which compilers could not
 * make vectors of. */
static void classify(uint64_t runs[restrict N_WORDS], uint64_t spaces[restrict N_WORDS],
                     const uint64_t words[restrict N_WORDS])
{
    for (int i = 0; i < N_WORDS; i++) {
        uint64_t y = words[i] & EACH(0x7F);
        uint64_t z = y | EACH(0x20); /* lower case */
        uint64_t space = BETWEEN(y, '\t', '\n') | BETWEEN(y, '\r', '\r') | BETWEEN(y, ' ', ' ');
        uint64_t other = BETWEEN(z, 'a', 'z') | BETWEEN(y, '0', '9') | AT_LEAST(y, 0x7F) | ~AT_LEAST(y, ' ');
        runs[i] = (words[i] | (other & ~space)) & EACH(0x80);
        spaces[i] = space & ~words[i] & EACH(0x80);
    }
}

/* Eight bytes, the first in the lowest bits: one load where that is the order in memory. */
static uint64_t load_word(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

/* The flags of eight bytes as eight bits: bit 8 i + 7 moves to bit 56 + i. */
static uint64_t pack(uint64_t flags)
{
    return ((flags >> 7) * UINT64_C(0x0102040810204080)) >> 56;
}

struct text_split text_split_block(const char *text)
{
    uint64_t words[N_WORDS];
    uint64_t run_flags[N_WORDS];
    uint64_t space_flags[N_WORDS];
    for (int i = 0; i < N_WORDS; i++) {
        words[i] = load_word((const unsigned char *)text + 8 * i);
    }
    classify(run_flags, space_flags, words);
    uint64_t runs = 0;
    uint64_t spaces = 0;
    for (int i = 0; i < N_WORDS; i++) {
        runs |= pack(run_flags[i]) << (8 * i);
        spaces |= pack(space_flags[i]) << (8 * i);
    }
    uint64_t punctuation = ~(runs | spaces);
    return (struct text_split){.starts = punctuation | (runs & ~(runs << 1)),
                               .ends = punctuation << 1 | (~runs & runs << 1)};
}
