#include "core/mt19937.h"

#include "core/integers.h"

enum { SHIFT = 397 }; /* the words of a recurrence lie so far apart */

void mt19937_init(struct mt19937 *m, uint32_t seed)
{
    m->state[0] = seed;
    for (uint32_t i = 1; i < MT19937_WORDS; i++) {
        m->state[i] = 1812433253U * (m->state[i - 1] ^ m->state[i - 1] >> 30) + i;
    }
    m->at = MT19937_WORDS;
}

static void twist(struct mt19937 *m)
{
    uint32_t *s = m->state;
    for (int i = 0; i < MT19937_WORDS; i++) {
        uint32_t y = (s[i] & 0x80000000U) | (s[(i + 1) % MT19937_WORDS] & 0x7FFFFFFFU);
        s[i] = s[(i + SHIFT) % MT19937_WORDS] ^ y >> 1 ^ ((y & 1) != 0 ? 0x9908B0DFU : 0);
    }
    m->at = 0;
}

uint32_t mt19937_u32(struct mt19937 *m)
{
    if (m->at == MT19937_WORDS) {
        twist(m);
    }
    uint32_t y = m->state[m->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9D2C5680U;
    y ^= y << 15 & 0xEFC60000U;
    return y ^ y >> 18;
}

static uint64_t draw(struct mt19937 *m, uint64_t most)
{
    uint64_t high = most > UINT32_MAX ? (uint64_t)mt19937_u32(m) << 32 : 0;
    return high | mt19937_u32(m);
}

/* Uniform in [0, most]: 32 bits, or 64 where `most` needs them, are drawn and masked until they fit. */
static uint64_t up_to(struct mt19937 *m, uint64_t most)
{
    uint64_t mask = most, value = 0;
    if (most == 0) {
        return 0; /* without a draw */
    }
    for (int bits = 1; bits < 64; bits *= 2) {
        mask |= mask >> bits;
    }
    do {
        value = draw(m, most) & mask;
    } while (value > most);
    return value;
}

void mt19937_shuffle(struct mt19937 *m, uint32_t *items, int64_t begin, int64_t end)
{
    enum { DRAWS = 64 }; /* ahead of their swaps, so that these wait for memory together */
    int64_t with[DRAWS], first = int_larger(begin, 1);
    for (int64_t i = end - 1; i >= first; i -= DRAWS) {
        int64_t n = int_smaller(DRAWS, i - first + 1);
        for (int64_t k = 0; k < n; k++) {
            with[k] = (int64_t)up_to(m, (uint64_t)(i - k));
        }
        for (int64_t k = 0; k < n; k++) {
            uint32_t item = items[with[k]];
            items[with[k]] = items[i - k];
            items[i - k] = item;
        }
    }
}
