/* gelu_code: z Phi(z) and its slope, for each element type (Hendrycks and Gimpel 2016, arXiv:1606.08415). */
#ifndef KILN_OPS_CUDA_KERNELS_GELU_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_GELU_CODE_CUH

#include "ops/cuda/kernels/device_code.cuh"

/* Phi(z) and phi(z), the normal distribution and its density. */
struct normal {
    float distribution, density;
};

__device__ static inline normal normal_at(float z, float)
{
    const float inverse_sqrt_2pi = 0.39894228040143268f;
    return normal{0.5f * (1.0f + erff(z * 0.70710678118654752f)), inverse_sqrt_2pi * expf(-0.5f * z * z)};
}

/* Error up to 1.5e-7, invisible in two-byte types, with one exponential for both, so that the kernel stays
 * bound by memory (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26, with x = |z| /
 * sqrt(2)). */
template <typename H> __device__ static inline normal normal_at(float z, H)
{
    const float p = 0.3275911f * 0.70710678118654752f, log2_e = 1.44269504088896341f,
                inverse_sqrt_2pi = 0.39894228040143268f;
    float t = reciprocal_approx(1.0f + p * fabsf(z)), e = exp2_approx(-0.5f * log2_e * z * z);
    float polynomial =
        t *
        (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    float tail = 0.5f * polynomial * e;
    return normal{z > 0 ? 1.0f - tail : tail, inverse_sqrt_2pi * e};
}

/* gelu(z) = z Phi(z) and its slope Phi(z) + z phi(z). */
__device__ static inline float gelu_at(float z, float)
{
    return z * normal_at(z, float()).distribution;
}

/* max(z, 0) - |z| Phi(-|z|), where the logarithm of Phi(-|z|) is a polynomial: one exponential, and no
 * quotient.  It is the one of degree 7 whose largest error over 0 to 7 is least (Lawson's iteration); the
 * relative error of Phi(-|z|) is at most 1.3e-5 there, the error of gelu 1.5e-6; beyond, it keeps falling. */
template <typename H> __device__ static inline float gelu_at(float z, H)
{
    float a = fabsf(z), power = -1.58822161e-06f;
    power = fmaf(power, a, 5.6153498e-05f);
    power = fmaf(power, a, -0.000883216853f);
    power = fmaf(power, a, 0.0083032269f);
    power = fmaf(power, a, -0.0535013378f);
    power = fmaf(power, a, -0.458964288f);
    power = fmaf(power, a, -1.15103567f);
    power = fmaf(power, a, -1.00001395f);
    return fmaf(-a, exp2_approx(power), fmaxf(z, 0.0f));
}

template <typename A> __device__ static inline float gelu(float z)
{
    return gelu_at(z, A());
}

template <typename A> __device__ static inline float gelu_slope(float z)
{
    normal n = normal_at(z, A());
    return n.distribution + z * n.density;
}

/* u = sqrt(2 / pi) (z + 0.044715 z^3) of the tanh form; and the slope of that at z, t = tanh u. */
__device__ static inline float gelu_tanh_argument(float z)
{
    return 0.79788456f * (z + 0.044715f * z * z * z);
}

__device__ static inline float gelu_tanh_slope(float z, float t)
{
    float inner = 0.79788456f * (1.0f + 3.0f * 0.044715f * z * z);
    return 0.5f * (1.0f + t) + 0.5f * z * (1.0f - t * t) * inner;
}

#endif
