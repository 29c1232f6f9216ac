/* emulated_half: the conversions of cuda_fp16.h, and that to bf16, in software.  A binary16 is sign, 5 bits
 * of exponent with the bias 15, 10 bits of fraction; a binary32 has 8 with the bias 127, and 23 (IEEE
 * 754-2019, section 3.4). */
#ifndef KILN_TESTS_EMULATED_HALF_HPP
#define KILN_TESTS_EMULATED_HALF_HPP

#include <math.h>
#include <stdint.h>
#include <string.h>

struct __half {
    uint16_t bits;
};

static inline __half __ushort_as_half(uint16_t bits)
{
    return __half{bits};
}

static inline float __half2float(__half h)
{
    uint32_t magnitude = (uint32_t)(h.bits & 0x7fff) << 13;
    float f;
    memcpy(&f, &magnitude, sizeof f);
    f *= 0x1p112f; /* the difference of the biases, for subnormals too */
    if ((h.bits & 0x7c00) == 0x7c00) {
        f = magnitude == 0x0f800000 ? INFINITY : NAN;
    }
    return (h.bits & 0x8000) != 0 ? -f : f;
}

/* To nearest, ties to even. */
static inline __half __float2half_rn(float f)
{
    uint16_t sign = signbit(f) ? 0x8000 : 0;
    float a = fabsf(f);
    uint32_t u;
    if (a != a) {
        return __half{0x7fff};
    }
    if (a >= 0x1p16f) {
        return __half{(uint16_t)(sign | 0x7c00)};
    }
    if (a < 0x1p-14f) {
        a += 0.5f; /* whose last bit weighs as much as that of a subnormal half */
        memcpy(&u, &a, sizeof u);
        return __half{(uint16_t)(sign | (u - 0x3f000000))};
    }
    memcpy(&u, &a, sizeof u);
    u += 0xfff + ((u >> 13) & 1); /* a carry makes the right exponent, and infinity of what is too large */
    return __half{(uint16_t)(sign | ((u >> 13) - (112 << 10)))};
}

/* The bits of a bf16: the upper half of a binary32, to nearest, ties to even; a NaN stays a NaN. */
static inline uint16_t emulated_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return f != f ? 0x7fff : (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

#endif
