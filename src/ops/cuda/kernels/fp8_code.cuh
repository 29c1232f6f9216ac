/* fp8_code: the two formats of core/fp8.h for kernels. */
#ifndef KILN_OPS_CUDA_KERNELS_FP8_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_FP8_CODE_CUH

#include "ops/cuda/kernels/device_code.cuh"

/* The two formats, with the numbers of struct fp8_format (core/fp8.h). */
struct e4m3 {
    static const int fraction_bits = 3, lowest = -9, margin = 8;
};

struct e5m2 {
    static const int fraction_bits = 2, lowest = -16, margin = 15;
};

/* Four elements in a word, the first in its low byte, rounded to nearest, ties to even; a NaN stays a NaN,
 * too large a number becomes the largest.  Of two sources the first goes to the upper byte (PTX ISA, cvt). */
#ifdef KILN_EMULATED_CUDA
template <typename F> inline uint32_t pack_four(float a, float b, float c, float d)
{
    const float v[] = {a, b, c, d};
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) {
        word |= (uint32_t)emulated_fp8(v[i], F::fraction_bits) << 8 * i;
    }
    return word;
}
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
template <typename F> __device__ inline uint32_t pack_four(float, float, float, float)
{
    __trap(); /* cuda_launch_fp8_is_possible() is false */
    return 0;
}
#else
#    define PACK_FP8(type)                                                                                   \
        uint16_t low, high;                                                                                  \
        asm("cvt.rn.satfinite." type "x2.f32 %0, %1, %2;" : "=h"(low) : "f"(b), "f"(a));                     \
        asm("cvt.rn.satfinite." type "x2.f32 %0, %1, %2;" : "=h"(high) : "f"(d), "f"(c));                    \
        return low | (uint32_t)high << 16

template <typename F> __device__ uint32_t pack_four(float a, float b, float c, float d);

template <> __device__ inline uint32_t pack_four<e4m3>(float a, float b, float c, float d)
{
    PACK_FP8("e4m3");
}

template <> __device__ inline uint32_t pack_four<e5m2>(float a, float b, float c, float d)
{
    PACK_FP8("e5m2");
}
#endif

/* The exponent field of the least scale, as in core/fp8.h. */
enum { FP8_LEAST_SCALE = 127 - 100 };

/* fp8_scale for numbers whose largest magnitude has these bits. */
template <typename F> __device__ inline float fp8_scale(uint32_t largest)
{
    int exponent = (int)(largest >> 23) + ((largest & 0x7fffffU) > 0x600000U) - F::margin;
    exponent = exponent < FP8_LEAST_SCALE ? FP8_LEAST_SCALE : exponent;
    return __uint_as_float(largest >= 0x7f800000U ? 0x7fc00000U : (uint32_t)exponent << 23);
}

/* fp8_scale_after of core/fp8.h in two parts, for the bits of magnitudes: the scale from the history alone,
 * before the tensor is read; and whether it fits.  If it does not, the scale is fp8_scale. */
template <typename F> __device__ inline float fp8_scale_before(uint32_t before)
{
    return 2.0f * fp8_scale<F>(before);
}

template <typename F> __device__ inline bool fp8_fits(uint32_t before, uint32_t largest)
{
    float most = 1.75f * (float)(1 << F::margin) * fp8_scale_before<F>(before);
    return before > 0 && largest < 0x7f800000U && __uint_as_float(largest) <= most;
}

/* fp8_round: any device can. */
template <typename F> __device__ inline float fp8_round(float v)
{
    const float largest = 1.75f * (float)(1 << F::margin), least = 1.0f / (float)(1 << -F::lowest);
    float size = fabsf(v);
    size = size > largest ? largest : size;
    float step = __uint_as_float(__float_as_uint(size) & 0x7f800000U) / (float)(1 << F::fraction_bits);
    float shift = (step < least ? least : step) * 0x1.8p23f;
    return copysignf((size + shift) - shift, v);
}

#endif
