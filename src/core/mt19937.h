/* mt19937: the draws of numpy's RandomState, for orders that other programs made with it.
 *
 * Matsumoto and Nishimura 1998, "Mersenne Twister"; the seed fills the state by their init_genrand.  kiln's
 * own randomness is addressed (core/rng.h). */
#ifndef KILN_CORE_MT19937_H
#define KILN_CORE_MT19937_H

#include <stdint.h>

enum { MT19937_WORDS = 624 };

struct mt19937 {
    uint32_t state[MT19937_WORDS];
    int at;
};

/* RandomState(seed). */
void mt19937_init(struct mt19937 *m, uint32_t seed);

/* The next number of the generator, of 32 bits. */
uint32_t mt19937_u32(struct mt19937 *m);

/* RandomState.shuffle of items[0..end) (Fisher and Yates, from the last item down) as far as it decides
 * items[begin, end): a shuffle is its parts, the last one first. */
void mt19937_shuffle(struct mt19937 *m, uint32_t *items, int64_t begin, int64_t end);

#endif
