/* rng: randomness that is addressed, not drawn.
 *
 * Philox 4x32-7 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3") maps (key, counter) to
 * 128 random bits.  A random number is named by seed, step, site, sequence, position and element, so every
 * device, every recomputation and every split of the work gets the same one. */
#ifndef KILN_CORE_RNG_H
#define KILN_CORE_RNG_H

#include <stdint.h>

struct rng_block {
    uint32_t word[4];
};

/* Philox 4x32 with 7 rounds, the fewest that pass BigCrush (Salmon et al., table 2). */
static inline struct rng_block rng_philox(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3)
{
    uint32_t k0 = (uint32_t)key;
    uint32_t k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 7; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53U * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57U * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    return (struct rng_block){{c0, c1, c2, c3}};
}

/* A key from two parts, well mixed (the finaliser of splitmix64, Steele et al. 2014). */
uint64_t rng_key(uint64_t seed, uint64_t purpose);

/* A sequence of draws under one key, for host code that draws one number after another. */
struct rng_stream {
    uint64_t key;
    uint64_t n_blocks; /* blocks used so far */
    struct rng_block block;
    int left; /* unused words of `block` */
};

/* A stream of numbers from the address `key`. */
struct rng_stream rng_stream(uint64_t key);
uint32_t rng_u32(struct rng_stream *s);
uint32_t rng_below(struct rng_stream *s, uint32_t n); /* uniform in [0, n), without bias; n > 0 */
double rng_uniform(struct rng_stream *s);             /* uniform in [0, 1), 53 bits */

/* Standard normal number `index` under `key` (Box and Muller 1958). */
double rng_normal(uint64_t key, uint64_t index);

/* Uniform number `index` under `key`, in [0, 1). */
double rng_uniform_at(uint64_t key, uint64_t index);

/* The image of `index` under a pseudo-random permutation of [0, n): a balanced Feistel network over the next
 * even power of two, repeated until the result is below n (Black and Rogaway 2002).  O(1) memory, O(1)
 * expected time. */
uint64_t rng_permute(uint64_t key, uint64_t n, uint64_t index);

#endif
