/* vmath: exp, the normal distribution and tanh in fp32, written so that the compiler vectorises a loop over
 * them: no branch, no table, no call.  Errors are against the exact value and were measured over the full
 * range by tests/ops/test_vmath. Polynomials are least-squares fits at Chebyshev nodes, reweighted towards
 * the minimax error. */
#ifndef KILN_OPS_CPU_VMATH_H
#define KILN_OPS_CPU_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t vmath_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float vmath_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* e^x, relative error below 2e-7; 0 below -87.3, where the result would be subnormal, and at most e^88. */
static inline float vmath_exp(float x)
{
    const float to_integer = 0x1.8p23f; /* adding it leaves the nearest integer in the low bits */
    const float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    float clamped = x < -87.3f ? -87.3f : x;
    clamped = clamped > 88.0f ? 88.0f : clamped;
    float shifted = clamped * 1.44269504f + to_integer;
    float n = shifted - to_integer;
    float r = clamped - n * ln2_high;
    r = r - n * ln2_low;
    float p = 0.00139464466f;
    p = p * r + 0.00836915169f;
    p = p * r + 0.0416662631f;
    p = p * r + 0.16666516f;
    p = p * r + 0.5f;
    p = p * (r * r) + (r + 1.0f);
    float e = vmath_float(vmath_bits(p) + (vmath_bits(shifted) << 23));
    return x < -87.3f ? 0.0f : e;
}

static const float VMATH_LOG2_E = 1.44269504f;

/* 2^x for x up to 88, relative error below 2e-7; 2^-126 below -126.  For softmax, whose arguments are at most
 * 0. */
static inline float vmath_exp2(float x)
{
    const float to_integer = 0x1.8p23f;
    float clamped = x < -126.0f ? -126.0f : x;
    float shifted = clamped + to_integer;
    float r = clamped - (shifted - to_integer);
    float p = 0.00132647273f;
    p = p * r + 0.00967151299f;
    p = p * r + 0.0555073358f;
    p = p * r + 0.240222424f;
    p = p * r + 0.693147004f;
    p = p * r + 1.0f;
    return vmath_float(vmath_bits(p) + (vmath_bits(shifted) << 23));
}

/* The normal distribution at z. */
struct vmath_normal {
    float cdf;     /* Phi(z): error below 4e-7 */
    float density; /* phi(z): error below 1e-7 */
};

/* Phi(-|z|) = e^(-z^2 / 2) R(|z|), R a polynomial in t = 1 / (1 + 0.3 |z|) on [0, 14]; the exponential serves
 * both. */
static inline struct vmath_normal vmath_normal(float z)
{
    float a = fabsf(z);
    float e = vmath_exp(-0.5f * z * z);
    float u = 2.47619048f / (1.0f + 0.3f * a) - 1.47619048f;
    float r = 2.71529556e-05f;
    r = r * u + 2.42969839e-05f;
    r = r * u - 0.000413737532f;
    r = r * u - 0.000706876175f;
    r = r * u + 0.00580758449f;
    r = r * u + 0.0359347767f;
    r = r * u + 0.105531541f;
    r = r * u + 0.200571487f;
    r = r * u + 0.153223803f;
    float tail = r * e;
    return (struct vmath_normal){.cdf = z > 0.0f ? 1.0f - tail : tail, .density = 0.398942280f * e};
}

/* z clamped to [-limit, limit], a NaN too.  It works on the bits, because GCC turns comparisons with
 * constants into branches. */
static inline float vmath_clamp(float z, float limit)
{
    const uint32_t sign = 0x80000000U;
    uint32_t magnitude = vmath_bits(z) & ~sign, most = vmath_bits(limit);
    return vmath_float((magnitude < most ? magnitude : most) | (vmath_bits(z) & sign));
}

/* Phi(z) for results that are rounded to bf16, whose own rounding error near 1 is up to 2e-3: error below
 * 5e-6; z times a polynomial in z^2. */
static inline float vmath_cdf_bf16(float z)
{
    float c = vmath_clamp(z, 4.5f);
    float u = c * c * 0.0987654321f - 1.0f;
    float p = -0.00182131445f;
    p = p * u + 0.00496591255f;
    p = p * u - 0.0062924549f;
    p = p * u + 0.00964603014f;
    p = p * u - 0.0183355119f;
    p = p * u + 0.0288623888f;
    p = p * u - 0.040272966f;
    p = p * u + 0.0546365455f;
    p = p * u - 0.0771835893f;
    p = p * u + 0.156906068f;
    return c * p + 0.5f;
}

/* Phi(z) + z phi(z), the slope of GELU, likewise: error below 2e-5. */
static inline float vmath_gelu_slope_bf16(float z)
{
    float c = vmath_clamp(z, 5.0f);
    float u = c * c * 0.08f - 1.0f;
    float p = -0.0205580704f;
    p = p * u + 0.0465323292f;
    p = p * u - 0.0281275976f;
    p = p * u + 0.0211880207f;
    p = p * u - 0.0680820197f;
    p = p * u + 0.0951514244f;
    p = p * u - 0.0854979903f;
    p = p * u + 0.0770794675f;
    p = p * u - 0.0715196282f;
    p = p * u + 0.0668272525f;
    p = p * u - 0.0751237348f;
    p = p * u + 0.142130539f;
    return c * p + (z * 0.0f + 0.5f); /* a NaN stays one */
}

/* tanh(x), error below 2e-7; a polynomial near zero, where 1 - e^(-2x) would cancel. */
static inline float vmath_tanh(float x)
{
    float a = fabsf(x);
    float e = vmath_exp(-2.0f * a);
    float far = (1.0f - e) / (1.0f + e);
    float s = x * x;
    float p = -0.00610494801f;
    p = p * s + 0.0210036412f;
    p = p * s - 0.0538524975f;
    p = p * s + 0.133327823f;
    p = p * s - 0.333333291f;
    float near = a + a * s * p;
    return copysignf(a < 0.625f ? near : far, x);
}

/* sqrt(2 / pi) (z + 0.044715 z^3), whose hyperbolic tangent t gelu's tanh form has; and its slope at z. */
static inline float vmath_gelu_tanh_argument(float z)
{
    return 0.79788456f * (z + 0.044715f * z * z * z);
}

static inline float vmath_gelu_tanh_slope(float z, float t)
{
    float inner = 0.79788456f * (1.0f + 3.0f * 0.044715f * z * z);
    return 0.5f * (1.0f + t) + 0.5f * z * (1.0f - t * t) * inner;
}

#endif
