/* The cpu's operations that round to fp16: the rounding is that of core/dtype.h, and what they give are
 * values of fp16. */
#include "ops/half_ops.h"
#include "test.h"

#include "core/rng.h"

static bool same(float a, float b)
{
    return isnan(a) ? isnan(b) != 0 : a == b && !signbit(a) == !signbit(b);
}

static void rounding_is_that_of_core(void)
{
    uint32_t stride = 65537 - 3; /* bit patterns of all exponents */
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += stride) {
        uint32_t u = (uint32_t)bits;
        float f, rounded;
        memcpy(&f, &u, sizeof f);
        rounded = f;
        half_ops_round(&rounded, 1);
        EXPECT(same(rounded, f16_to_f32(f16_from_f32(f))), "%a became %a, not %a", (double)f, (double)rounded,
               (double)f16_to_f32(f16_from_f32(f)));
    }
    static const float edges[] = {
        0.0f,         -0.0f,    0x1p-25f,        0x1.8p-25f, 0x1p-24f,           0x1.ffcp-15f, 0x1.ffep-15f,
        0x1.fffp-15f, 0x1p-14f, 1.0f + 0x1p-11f, 65504.0f,   65519.0f,           65520.0f,     -65520.0f,
        INFINITY,     NAN,      0x1p-149f,       0x1.8p-24f, 1.0f + 3 * 0x1p-11f};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        float rounded = edges[i];
        half_ops_round(&rounded, 1);
        EXPECT(same(rounded, f16_to_f32(f16_from_f32(edges[i]))), "%a became %a", (double)edges[i],
               (double)rounded);
    }
}

static void parts_of_a_matrix_are_rounded_alone(void)
{
    float m[4][6];
    for (int i = 0; i < 24; i++) {
        m[i / 6][i % 6] = 1.0f + 0x1p-13f;
    }
    half_ops_round_tensor(tensor_columns(tensor_2d(m, DTYPE_F32, 4, 6), 2, 3));
    for (int i = 0; i < 24; i++) {
        bool inside = i % 6 >= 2 && i % 6 < 5;
        EXPECT(m[i / 6][i % 6] == (inside ? 1.0f : 1.0f + 0x1p-13f), "element %d", i);
    }
}

static void operations_round_what_they_give(void)
{
    enum { T = 5, N = 24, K = 40 };
    float in[T * K], w[N * K], bias[N], plain[T * N], rounded[T * N];
    struct ops table = half_ops();
    struct exec x = {.device = &device_cpu, .ops = &table};
    for (int i = 0; i < T * K; i++) {
        in[i] = (float)rng_normal(1, (uint64_t)i);
    }
    for (int i = 0; i < N * K; i++) {
        w[i] = (float)rng_normal(2, (uint64_t)i);
    }
    for (int i = 0; i < N; i++) {
        bias[i] = (float)rng_normal(3, (uint64_t)i);
    }
    tensor t_in = tensor_2d(in, DTYPE_F32, T, K), t_w = tensor_2d(w, DTYPE_F32, N, K);
    tensor t_bias = tensor_1d(bias, DTYPE_F32, N);
    ops_cpu()->linear(&x, tensor_2d(plain, DTYPE_F32, T, N), t_in, t_w, t_bias);
    table.linear(&x, tensor_2d(rounded, DTYPE_F32, T, N), t_in, t_w, t_bias);
    EXPECT_OK(x.status);
    for (int i = 0; i < T * N; i++) {
        EXPECT(same(rounded[i], f16_to_f32(f16_from_f32(plain[i]))), "product %d", i);
    }
    ops_cpu()->tanh(&x, tensor_2d(plain, DTYPE_F32, T, N), tensor_2d(rounded, DTYPE_F32, T, N));
    table.tanh(&x, tensor_2d(rounded, DTYPE_F32, T, N), tensor_2d(rounded, DTYPE_F32, T, N));
    EXPECT_OK(x.status);
    for (int i = 0; i < T * N; i++) {
        EXPECT(same(rounded[i], f16_to_f32(f16_from_f32(plain[i]))), "tanh %d", i);
    }
}

int main(void)
{
    rounding_is_that_of_core();
    parts_of_a_matrix_are_rounded_alone();
    operations_round_what_they_give();
    return 0;
}
