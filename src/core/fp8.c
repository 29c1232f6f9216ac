#include "core/fp8.h"

enum { SIGN = 0x80, MAGNITUDE = 0x7f };

/* e4m3 has one NaN and no infinity; e5m2 has both, as in IEEE 754. */
static uint8_t nan_of(enum dtype format)
{
    return format == DTYPE_E4M3 ? 0x7f : 0x7e;
}

uint8_t fp8_from_f32(enum dtype format, float v)
{
    struct fp8_format f = fp8_format_of(format);
    uint8_t sign = signbit(v) ? SIGN : 0;
    float size = fabsf(fp8_round(format, v));
    int exponent;
    if (isnan(v)) {
        return sign | nan_of(format);
    }
    frexpf(size, &exponent);
    int last_bit = exponent - 1 - f.fraction_bits; /* weighs 2^last_bit */
    last_bit = size == 0 || last_bit < f.lowest ? f.lowest : last_bit;
    int units = (int)ldexpf(size, -last_bit);
    return (uint8_t)(sign | (((last_bit - f.lowest) << f.fraction_bits) + units));
}

float fp8_to_f32(enum dtype format, uint8_t code)
{
    struct fp8_format f = fp8_format_of(format);
    int magnitude = code & MAGNITUDE, exponent = magnitude >> f.fraction_bits, one = 1 << f.fraction_bits;
    int units = magnitude & (one - 1);
    float size = exponent == 0 ? ldexpf((float)units, f.lowest)
                               : ldexpf((float)(units | one), exponent - 1 + f.lowest);
    if (format == DTYPE_E4M3 ? magnitude == MAGNITUDE : exponent == 31) {
        size = format == DTYPE_E5M2 && units == 0 ? INFINITY : NAN;
    }
    return (code & SIGN) != 0 ? -size : size;
}
