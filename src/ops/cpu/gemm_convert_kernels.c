#include "ops/cpu/gemm_backend.h"
#include "ops/cpu/kernel.h"
#include "ops/cpu/row_integers.h"
#include "ops/cpu/rows.h"

static void from_bf16(float *out, const uint16_t *in, int64_t stride, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        rows_from_bf16(out + i * cols, in + i * stride, cols);
    }
}

static void to_bf16(uint16_t *out, const float *in, int64_t stride, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        rows_to_bf16(out + i * stride, in + i * cols, cols);
    }
}

static float to_int16(int16_t *out, int64_t padded, const float *in, int64_t n)
{
    float scale = row_integers_scale(in, n, OPS_INT8_STEPS((int32_t)n)),
          factor = 1 / row_integers_divisor(scale);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = (int16_t)row_integers_round(factor * in[i]);
    }
    memset(out + n, 0, (size_t)(padded - n) * sizeof *out);
    return scale;
}

static float to_bytes(uint8_t *out, int32_t *zero, const float *in, int64_t n)
{
    return row_integers_bytes(out, zero, in, n);
}

static int32_t sum_int8(const int8_t *w, int64_t n)
{
    int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        sum += w[i];
    }
    return sum;
}

/* Scales the sums of one row.  Pointers are the callee's own, since a store could change a struct's. */
static void scale_row(float *restrict c, const int32_t *restrict sums, int32_t zero,
                      const int32_t *restrict b_sums, float scale, const float *restrict b_scales,
                      const float *restrict bias, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        float b = bias == NULL ? 0.0f : bias[j];
        c[j] = __builtin_fmaf((float)(sums[j] - zero * b_sums[j]), scale * b_scales[j], b);
    }
}

static void scale_sums(const struct gemm *g, const int32_t *sums)
{
    for (int64_t i = 0; i < g->m; i++) {
        scale_row((float *)g->c + i * g->c_stride, sums + i * g->n, g->a_zeros[i], g->b_sums, g->a_scales[i],
                  g->b_scales, g->bias, g->n);
    }
}

KERNEL_FILL(gemm_convert, struct gemm_convert)
{
    t->from_bf16 = from_bf16;
    t->to_bf16 = to_bf16;
    t->to_int16 = to_int16;
    t->to_bytes = to_bytes;
    t->sum_int8 = sum_int8;
    t->scale_sums = scale_sums;
}
