#include "core/rng.h"

#include "core/status.h"

#include <math.h>

static uint64_t mix(uint64_t z)
{
    z += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

uint64_t rng_key(uint64_t seed, uint64_t purpose)
{
    return mix(mix(seed) ^ purpose);
}

struct rng_stream rng_stream(uint64_t key)
{
    return (struct rng_stream){.key = key};
}

static struct rng_block block_at(uint64_t key, uint64_t index)
{
    return rng_philox(key, (uint32_t)index, (uint32_t)(index >> 32), 0, 0);
}

uint32_t rng_u32(struct rng_stream *s)
{
    if (s->left == 0) {
        s->block = block_at(s->key, s->n_blocks++);
        s->left = 4;
    }
    return s->block.word[4 - s->left--];
}

uint32_t rng_below(struct rng_stream *s, uint32_t n)
{
    CHECK(n > 0, "an empty range");
    /* Lemire 2019: the high word of a product; the few low words that would bias it are rejected */
    uint64_t product = (uint64_t)rng_u32(s) * n;
    uint32_t reject_below = (uint32_t)(-n) % n;
    while ((uint32_t)product < reject_below) {
        product = (uint64_t)rng_u32(s) * n;
    }
    return (uint32_t)(product >> 32);
}

static double unit_interval(uint32_t high, uint32_t low)
{
    uint64_t bits = ((uint64_t)high << 32 | low) >> 11;
    return (double)bits * 0x1p-53;
}

double rng_uniform(struct rng_stream *s)
{
    uint32_t high = rng_u32(s);
    return unit_interval(high, rng_u32(s));
}

double rng_uniform_at(uint64_t key, uint64_t index)
{
    struct rng_block b = block_at(key, index);
    return unit_interval(b.word[0], b.word[1]);
}

double rng_normal(uint64_t key, uint64_t index)
{
    struct rng_block b = block_at(key, index);
    double radius = sqrt(-2.0 * log(1.0 - unit_interval(b.word[0], b.word[1])));
    return radius * cos(2.0 * 3.14159265358979323846 * unit_interval(b.word[2], b.word[3]));
}

uint64_t rng_permute(uint64_t key, uint64_t n, uint64_t index)
{
    CHECK(index < n, "index %llu of a permutation of %llu", (unsigned long long)index, (unsigned long long)n);
    unsigned half_bits = 1;
    while (half_bits < 32 && (n - 1) >> (2 * half_bits) != 0) {
        half_bits++;
    }
    uint64_t mask = ((uint64_t)1 << half_bits) - 1;
    do {
        uint64_t left = index >> half_bits;
        uint64_t right = index & mask;
        for (uint32_t round = 0; round < 4; round++) {
            struct rng_block f = rng_philox(key, (uint32_t)right, round, 0, 1);
            uint64_t next = left ^ (f.word[0] & mask);
            left = right;
            right = next;
        }
        index = left << half_bits | right;
    } while (index >= n);
    return index;
}
