/* text_split: the beginnings and ends of the runs and the punctuation of a text, for 64 bytes at once.
 *
 * A run is the text between ASCII white space and punctuation; bytes above 127 belong to runs (enum
 * basic_kind).  The rule: one loop without branches classifies 64 bytes, so a compiler makes vectors of it;
 * the answer is two words of 64 bits, so finding a token costs no branch a byte. */
#ifndef KILN_TEXT_TEXT_SPLIT_H
#define KILN_TEXT_TEXT_SPLIT_H

#include <stdint.h>

enum { TEXT_SPLIT_BYTES = 64 };

/* Bit i is byte i.  Tokens are runs and punctuation characters.  The bits of `ends` belong to those of
 * `starts` in their order; only the last token may lack one, because it continues to the end of the block or
 * past it. */
struct text_split {
    uint64_t starts; /* a token begins */
    uint64_t ends;   /* a token ended with the byte before */
};

/* Reads text[0..TEXT_SPLIT_BYTES); a run may continue after them. */
struct text_split text_split_block(const char *text);

/* The position of the lowest bit of m, which is not 0: a power of two times a de Bruijn sequence has the
 * position in its six highest bits (Leiserson, Prokop and Randall 1998, "Using de Bruijn sequences to index a
 * 1 in a computer word"). */
extern const uint8_t text_split_positions[64];
static inline unsigned text_split_lowest(uint64_t m)
{
    return text_split_positions[((m & (0 - m)) * UINT64_C(0x022FDD63CC95386D)) >> 58];
}

#endif
