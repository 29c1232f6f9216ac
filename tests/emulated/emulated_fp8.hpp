/* emulated_fp8: the conversion to fp8 in software.  e4m3 is sign, 4 bits of exponent with the bias 7, 3 bits
 * of fraction; e5m2 is 5 bits with the bias 15, and 2.  Subnormals are as in IEEE 754.  e4m3 has no infinity:
 * of its codes that would be one, all but the last, a NaN, are numbers (Micikevicius et al. 2022,
 * arXiv:2209.05433, table 1). */
#ifndef KILN_TESTS_EMULATED_FP8_HPP
#define KILN_TESTS_EMULATED_FP8_HPP

#include <math.h>
#include <stdint.h>

/* To nearest, ties to even; what is too large becomes the largest number. */
static inline uint8_t emulated_fp8(float f, int fraction_bits)
{
    const int bias = fraction_bits == 3 ? 7 : 15, least = 1 - bias;
    const int largest = fraction_bits == 3 ? 0x7e : 0x7b;
    uint8_t sign = signbit(f) ? 0x80 : 0;
    float a = fabsf(f);
    if (a != a) {
        return 0x7f;
    }
    if (a >= 0x1p16f) {
        return (uint8_t)(sign | largest);
    }
    int exponent = a == 0 || ilogbf(a) < least ? least : ilogbf(a);
    long units = lrintf(ldexpf(a, fraction_bits - exponent)); /* the rounding mode is to nearest even */
    long code = ((long)(exponent - least) << fraction_bits) + units; /* a carry makes the right exponent */
    return (uint8_t)(sign | (code < largest ? code : largest));
}

#endif
