#include "core/dtype.h"

#include <math.h>

float f16_to_f32(uint16_t bits)
{
    int exponent = (bits >> 10) & 0x1f;
    int fraction = bits & 0x3ff;
    float magnitude;
    if (exponent == 31) {
        magnitude = fraction == 0 ? INFINITY : NAN;
    } else if (exponent == 0) {
        magnitude = ldexpf((float)fraction, -24);
    } else {
        magnitude = ldexpf((float)(fraction | 0x400), exponent - 25);
    }
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

uint16_t f16_from_f32(float f)
{
    uint16_t sign = signbit(f) ? 0x8000 : 0;
    float a = fabsf(f);
    if (isnan(f)) {
        return (uint16_t)(sign | 0x7e00);
    }
    if (a >= 65520.0f) { /* rounds past the largest finite value, 65504 */
        return (uint16_t)(sign | 0x7c00);
    }
    if (a < 0x1p-14f) {
        /* subnormal: a count of 2^-24; a carry out of the fraction makes the right exponent */
        return (uint16_t)(sign | (int)nearbyintf(ldexpf(a, 24)));
    }
    int exponent;
    frexpf(a, &exponent);
    int last_bit = exponent - 11; /* the last kept bit weighs 2^last_bit */
    int units = (int)nearbyintf(ldexpf(a, -last_bit));
    return (uint16_t)(sign | (((last_bit + 24) << 10) + units));
}
