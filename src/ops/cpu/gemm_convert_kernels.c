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

static int32_t sum_of(const int8_t *w, int64_t n)
{
    int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        sum += w[i];
    }
    return sum;
}

static void scale_sums(const struct gemm *g)
{
    int32_t of_b[GEMM_MAX_TILE_COLS];
    for (int64_t j = 0; j < g->n; j++) {
        of_b[j] = sum_of((const int8_t *)g->b + j * g->b_stride, g->k);
    }
    for (int64_t i = 0; i < g->m; i++) {
        float *c = (float *)g->c + i * g->c_stride, scale = g->a_scales[i];
        const int32_t *sums = (const int32_t *)c, zero = g->a_zeros[i];
#pragma omp simd
        for (int64_t j = 0; j < g->n; j++) {
            float bias = g->bias == NULL ? 0.0f : g->bias[j];
            c[j] = __builtin_fmaf((float)(sums[j] - zero * of_b[j]), scale * g->b_scales[j], bias);
        }
    }
}

KERNEL_FILL(gemm_convert, struct gemm_convert)
{
    t->from_bf16 = from_bf16;
    t->to_bf16 = to_bf16;
    t->to_int16 = to_int16;
    t->to_bytes = to_bytes;
    t->scale_sums = scale_sums;
}
