/* norm_row: layer normalisation of one row in fp32 (Ba et al. 2016, arXiv:1607.06450), and the RMS norm
 * (Zhang and Sennrich 2019, arXiv:1910.07467), shared by the kernels that end in one.  Mean and variance take
 * two passes over a row in the first-level cache. */
#ifndef KILN_OPS_CPU_NORM_ROW_H
#define KILN_OPS_CPU_NORM_ROW_H

#include "ops/cpu/dropout_bits.h"
#include "ops/cpu/rows.h"
#include "ops/workspace.h"

#include <math.h>

static inline float norm_row_rms(float *out, const float *in, const float *gamma, int64_t n, float eps)
{
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < n; i++) {
        squares += in[i] * in[i];
    }
    float r = 1.0f / sqrtf(squares / (float)n + eps);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = in[i] * r * gamma[i];
    }
    return r;
}

static inline float norm_row_layer(float *out, float *mean, const float *in, const float *gamma,
                                   const float *beta, int64_t n, float eps)
{
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        sum += in[i];
    }
    float mu = sum / (float)n;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < n; i++) {
        squares += (in[i] - mu) * (in[i] - mu);
    }
    float r = 1.0f / sqrtf(squares / (float)n + eps);
    *mean = mu;
    if (beta == NULL) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            out[i] = (in[i] - mu) * r * gamma[i];
        }
        return r;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = (in[i] - mu) * r * gamma[i] + beta[i];
    }
    return r;
}

/* out may be `in`; beta, mean and rstd may be NULL.  Without beta and mean it is the RMS norm. */
static inline void norm_row_forward(float *out, float *mean, float *rstd, const float *in, const float *gamma,
                                    const float *beta, int64_t n, float eps)
{
    bool is_rms = beta == NULL && mean == NULL;
    float mu = 0, r = is_rms ? norm_row_rms(out, in, gamma, n, eps)
                             : norm_row_layer(out, &mu, in, gamma, beta, n, eps);
    if (mean != NULL) {
        *mean = mu;
    }
    if (rstd != NULL) {
        *rstd = r;
    }
}

/* Adds to dgamma and dbeta; din may be dout. */
static inline void norm_row_backward(float *din, float *dgamma, float *dbeta, const float *dout,
                                     const float *in, const float *gamma, float mu, float r, int64_t n)
{
    float sum_g = 0, sum_g_xhat = 0;
#pragma omp simd reduction(+ : sum_g, sum_g_xhat)
    for (int64_t i = 0; i < n; i++) {
        float g = dout[i] * gamma[i];
        sum_g += g;
        sum_g_xhat += g * ((in[i] - mu) * r);
    }
    float mean_g = sum_g / (float)n, mean_g_xhat = sum_g_xhat / (float)n;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float xhat = (in[i] - mu) * r, dy = dout[i];
        dgamma[i] += dy * xhat;
        dbeta[i] += dy;
        din[i] = r * (dy * gamma[i] - mean_g - xhat * mean_g_xhat);
    }
}

/* The backward of the RMS norm: adds to dgamma; din may be dout. */
static inline void norm_row_rms_backward(float *din, float *dgamma, const float *dout, const float *in,
                                         const float *gamma, float r, int64_t n)
{
    float sum_g_xhat = 0;
#pragma omp simd reduction(+ : sum_g_xhat)
    for (int64_t i = 0; i < n; i++) {
        sum_g_xhat += dout[i] * gamma[i] * (in[i] * r);
    }
    float mean_g_xhat = sum_g_xhat / (float)n;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float xhat = in[i] * r, dy = dout[i];
        dgamma[i] += dy * xhat;
        din[i] = r * (dy * gamma[i] - xhat * mean_g_xhat);
    }
}

/* out = in where the element is kept, times `scale`; 0 where it is dropped.  out may be `in`. */
static inline void norm_row_dropout(float *out, const float *in, const uint16_t *bits, uint32_t threshold,
                                    float scale, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = bits[i] < threshold ? 0.0f : in[i] * scale;
    }
}

#endif
