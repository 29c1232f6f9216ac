/* softmax: the parts of log softmax over a row, as losses and choices of tokens compute them: their bits are
 * the same. */
#ifndef KILN_OPS_CPU_SOFTMAX_H
#define KILN_OPS_CPU_SOFTMAX_H

#include "ops/cpu/kernel.h"
#include "ops/cpu/vmath.h"

#include <math.h>

/* -infinity of no elements. */
static inline float softmax_maximum(const float *v, int64_t n)
{
    float max = n > 0 ? v[0] : -INFINITY;
#pragma omp simd reduction(max : max)
    for (int64_t i = 0; i < n; i++) {
        max = v[i] > max ? v[i] : max;
    }
    return max;
}

/* e^(v - max) into `out`, which may be `v`.  Returns their sum: runs of 256 are summed in fp32 and the runs
 * in fp64, so the error does not grow with the vocabulary. */
static inline double softmax_exponentials(float *out, const float *v, int64_t n, float max)
{
    enum { RUN = 256 };
    double total = 0;
    for (int64_t first = 0; first < n; first += RUN) {
        float sum = 0;
        int64_t end = kernel_min(n, first + RUN);
#pragma omp simd reduction(+ : sum)
        for (int64_t i = first; i < end; i++) {
            out[i] = vmath_exp2((v[i] - max) * VMATH_LOG2_E);
            sum += out[i];
        }
        total += (double)sum;
    }
    return total;
}

/* -log p of an element, by the sum of the exponentials. */
static inline float softmax_loss(double sum, float max, float at)
{
    return (float)log(sum) + (max - at);
}

#endif
