/* fp8: the two formats of 8 bits of Micikevicius et al. 2022 (arXiv:2209.05433, table 1), under a scale: e4m3 for
 * activations and weights, e5m2, with more range and less precision, for gradients.
 *
 * A scale is a power of two, so scaling rounds nothing and bf16 holds every scaled number exactly: a device without
 * fp8 products keeps the rounded numbers in bf16 and computes what one with them computes. */
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

/* The exponent field of the least scale, 2^-100: under it bf16 still holds the smallest numbers of both formats. */
enum { FP8_LEAST_SCALE = 127 - 100 };

/* The least power of two, but no less than 2^-100, by which numbers up to `largest` in magnitude fit; a NaN if `largest`
 * is not finite. */
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

/* Of a factor with a history (ops.h, quantize): room for twice what was the largest in the step before, if what is the
 * largest now fits; else, as where nothing is known of a step before, the least. */
static inline float fp8_scale_after(enum dtype format, float before, float largest)
{
    float held = 2.0F * fp8_scale(format, before);
    bool fits = before > 0 && isfinite(largest) &&
                largest <= 1.75F * (float)(1 << fp8_format_of(format).margin) * held;
    return fits ? held : fp8_scale(format, largest);
}

/* `v`, already scaled, as the nearest number of the format, ties to even; what is too large becomes the largest, a NaN
 * stays a NaN. */
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

/* The code of a number, rounded as above, and the number of a code. */
uint8_t fp8_from_f32(enum dtype format, float v);
float fp8_to_f32(enum dtype format, uint8_t code);

#endif
