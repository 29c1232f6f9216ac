/* row_integers: rows of fp32 as integers under a scale of their own, the largest magnitude of which is
 * `most`. */
#ifndef KILN_OPS_CPU_ROW_INTEGERS_H
#define KILN_OPS_CPU_ROW_INTEGERS_H

#include <stdint.h>
#include <string.h>

/* The bits of the largest magnitude: these sort like the numbers, with infinity and NaN on top. */
static inline uint32_t largest_bits(const float *v, int64_t n)
{
    uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &v[i], sizeof u);
        u &= 0x7fffffffU;
        largest = u > largest ? u : largest;
    }
    return largest;
}

/* max |in| / most, or NaN if a number is not finite. */
static inline float row_integers_scale(const float *in, int64_t n, int32_t most)
{
    uint32_t largest = largest_bits(in, n);
    float magnitude;
    memcpy(&magnitude, &largest, sizeof magnitude);
    return largest >= 0x7f800000U ? __builtin_nanf("") : magnitude / (float)most;
}

/* The integer next to a quotient of at most 2^21, to even where there are two: the low bits of a sum whose
 * last bits are integers. */
static inline int32_t row_integers_round(float quotient)
{
    float sum = quotient + 0x1.8p23f;
    int32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return bits - 0x4b400000;
}

/* A row of zeros, or nearly, is zeros; so is one without a finite scale, which says so. */
static inline float row_integers_divisor(float scale)
{
    return scale >= 0x1p-126f ? scale : __builtin_inff();
}

#endif
