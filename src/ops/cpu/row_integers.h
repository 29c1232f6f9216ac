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

/* A row of n numbers in int8, as the op quantize defines it: returns the scale.  Division, and not a factor,
 * so that ties are those of the definition. */
static inline float row_integers_int8(int8_t *out, const float *in, int64_t n)
{
    float scale = row_integers_scale(in, n, 127), divisor = row_integers_divisor(scale);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = (int8_t)row_integers_round(in[i] / divisor);
    }
    return scale;
}

/* The step of a row, such that all its numbers and 0 are 254 steps at most from the smallest to the largest;
 * NaN if one is not finite. */
static inline float row_integers_step(const float *in, int64_t n, float *smallest)
{
    float low = 0, high = 0, nan = 0;
#pragma omp simd reduction(min : low) reduction(max : high) reduction(+ : nan)
    for (int64_t i = 0; i < n; i++) {
        low = in[i] < low ? in[i] : low;
        high = in[i] > high ? in[i] : high;
        nan += 0 * in[i];
    }
    *smallest = low;
    return (high - low) / 254 + nan;
}

/* A row as such multiples of its step, counted from the smallest one; returns the step. */
static inline float row_integers_bytes(uint8_t *out, int32_t *zero, const float *in, int64_t n)
{
    float smallest, step = row_integers_step(in, n, &smallest), divisor = row_integers_divisor(step);
    int32_t least = row_integers_round(smallest / divisor);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = (uint8_t)(row_integers_round(in[i] / divisor) - least);
    }
    *zero = -least;
    return step;
}

#endif
