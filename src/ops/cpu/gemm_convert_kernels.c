#include "ops/cpu/gemm_backend.h"
#include "ops/cpu/kernel.h"
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

KERNEL_FILL(gemm_convert, struct gemm_convert)
{
    t->from_bf16 = from_bf16;
    t->to_bf16 = to_bf16;
}
