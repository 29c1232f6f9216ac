/* fp8: the two 8-bit formats of Micikevicius et al. 2022 (arXiv:2209.05433, table 1), with a scale: e4m3 for
 * activations and weights, e5m2, with more range and less precision, for gradients.
 *
 * A scale is a power of two, so scaling rounds nothing and bf16 holds every scaled number exactly.  A device
 * without fp8 products keeps the rounded numbers in bf16 and multiplies the same values as a device with
 * them. */
#ifndef KILN_CORE_FP8_H
#define KILN_CORE_FP8_H

#include "core/dtype.h"

#include <math.h>
#include <stdbool.h>

struct fp8_format {
    int fraction_bits;
    int lowest; /* the last bit of the smallest numbers weighs 2^lowest */
    int margin; /* the largest number is 1.75 x 2^margin */
};

static inline bool dtype_is_fp8(enum dtype t)
{
    return t == DTYPE_E4M3 || t == DTYPE_E5M2;
}

static inline struct fp8_format fp8_format_of(enum dtype t)
{
    return t == DTYPE_E4M3 ? (struct fp8_format){3, -9, 8} : (struct fp8_format){2, -16, 15};
}

/* The exponent field of the least scale, 2^-100: with it bf16 still holds the smallest numbers of both
 * formats. */
enum { FP8_LEAST_SCALE = 127 - 100 };

/* The smallest power of two, at least 2^-100, with which numbers up to `largest` in magnitude fit the format;
 * a NaN if `largest` is not finite. */
static inline float fp8_scale(enum dtype format, float largest)
{
    uint32_t u;
    float scale;
    memcpy(&u, &largest, sizeof u);
    int32_t exponent = (int32_t)(u >> 23) + ((u & 0x7fffffU) > 0x600000U) - fp8_format_of(format).margin;
    u = u >= 0x7f800000U ? 0x7fc00000U
                         : (uint32_t)(exponent < FP8_LEAST_SCALE ? FP8_LEAST_SCALE : exponent) << 23;
    memcpy(&scale, &u, sizeof scale);
    return scale;
}

/* The scale of a factor with a history (ops.h, quantize): it allows for twice the largest magnitude of the
 * step before, if the largest magnitude now fits.  If it does not, or no step came before, it is the smallest
 * scale that fits. */
static inline float fp8_scale_after(enum dtype format, float before, float largest)
{
    float held = 2.0F * fp8_scale(format, before);
    bool fits = before > 0 && isfinite(largest) &&
                largest <= 1.75F * (float)(1 << fp8_format_of(format).margin) * held;
    return fits ? held : fp8_scale(format, largest);
}

/* `v`, already scaled, rounded to the nearest number of the format, ties to even.  Too large a number becomes
 * the largest one; a NaN stays a NaN. */
static inline float fp8_round(enum dtype format, float v)
{
    struct fp8_format f = fp8_format_of(format);
    float largest = 1.75F * (float)(1 << f.margin), size = fabsf(v), step;
    uint32_t u;
    size = size > largest ? largest : size;
    memcpy(&u, &size, sizeof u);
    u &= 0x7f800000U;
    memcpy(&step, &u, sizeof step);
    step /= (float)(1 << f.fraction_bits);
    float least = 1.0F / (float)(1 << -f.lowest);
    step = step < least ? least : step;
    float shift = step * 0x1.8p23F; /* the last bit of a sum with it weighs `step` */
    return copysignf((size + shift) - shift, v);
}

/* The 8-bit code of a number, rounded as above, and the number that a code stands for. */
uint8_t fp8_from_f32(enum dtype format, float v);
float fp8_to_f32(enum dtype format, uint8_t code);

#endif
