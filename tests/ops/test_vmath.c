/* The stated errors of ops/cpu/vmath.h, over every 97th fp32 number, against libm in fp64; and the same of
 * tile_vector's exponential. */
#include "ops/cpu/tile_vector.h"
#include "ops/cpu/vmath.h"
#include "test.h"

/* Calls `check` with every 97th number of [low, high] and of [-high, -low]; 0 < low. */
static void sweep(float low, float high, void (*check)(float x))
{
    for (uint32_t u = vmath_bits(low); u <= vmath_bits(high); u += 97) {
        check(vmath_float(u));
        check(-vmath_float(u));
    }
}

static void check_exp(float x)
{
    double want = exp((double)x);
    EXPECT(fabs((double)vmath_exp(x) - want) <= 2e-7 * want, "exp(%.9g) = %.9g, not %.17g", (double)x,
           (double)vmath_exp(x), want);
}

static void check_exp2(float x)
{
    double want = exp2((double)x), got = (double)vmath_exp2(x);
    EXPECT(fabs(got - want) <= 2e-7 * want || (x < -126.0f && got == 0x1p-126), "2^%.9g = %.9g, not %.17g",
           (double)x, got, want);
}

static float tile_exp2_of(float x)
{
    return tile_exp2((tile_vector){0} + x)[TILE_VECTOR - 1];
}

static void check_tile_exp2(float x)
{
    double want = exp2((double)x), got = (double)tile_exp2_of(x);
    EXPECT(fabs(got - want) <= 2e-7 * want || (x < -126.0f && got <= 0x1p-126), "2^%.9g = %.9g, not %.17g",
           (double)x, got, want);
}

static void check_normal(float z)
{
    struct vmath_normal got = vmath_normal(z);
    double cdf = 0.5 * erfc(-(double)z * sqrt(0.5));
    double density = exp(-0.5 * (double)z * (double)z) * 0.39894228040143267794;
    EXPECT(fabs((double)got.cdf - cdf) <= 4e-7, "Phi(%.9g) = %.9g, not %.17g", (double)z, (double)got.cdf,
           cdf);
    EXPECT(fabs((double)got.density - density) <= 1e-7, "phi(%.9g) = %.9g, not %.17g", (double)z,
           (double)got.density, density);
    double slope = cdf + (double)z * density;
    EXPECT(fabs((double)vmath_cdf_bf16(z) - cdf) <= 5e-6, "Phi(%.9g) = %.9g for bf16, not %.17g", (double)z,
           (double)vmath_cdf_bf16(z), cdf);
    EXPECT(fabs((double)vmath_gelu_slope_bf16(z) - slope) <= 2e-5, "gelu'(%.9g) = %.9g for bf16, not %.17g",
           (double)z, (double)vmath_gelu_slope_bf16(z), slope);
}

static void check_tanh(float x)
{
    double want = tanh((double)x);
    EXPECT(fabs((double)vmath_tanh(x) - want) <= 2e-7, "tanh(%.9g) = %.9g, not %.17g", (double)x,
           (double)vmath_tanh(x), want);
}

int main(void)
{
    sweep(1e-8f, 87.3f, check_exp);
    sweep(1e-8f, 88.0f, check_exp2);
    check_exp2(-125.99f);
    check_exp2(-1e30f);
    sweep(1e-8f, 127.9f, check_tile_exp2);
    EXPECT(isinf(tile_exp2_of(128)) && isinf(tile_exp2_of(1e30f)) && isnan(tile_exp2_of(NAN)) &&
               tile_exp2_of(-INFINITY) <= 0x1p-126f,
           "an exponential of no number");
    sweep(1e-8f, 100.0f, check_normal);
    sweep(1e-8f, 100.0f, check_tanh);
    EXPECT(vmath_exp(-INFINITY) == 0 && vmath_exp(-88.0f) == 0, "small exponentials are not zero");
    EXPECT(isfinite(vmath_exp(1e30f)) && vmath_exp(1e30f) > 1e38f, "large exponentials are not capped");
    EXPECT(isnan(vmath_exp(NAN)) && isnan(vmath_normal(NAN).cdf) && isnan(vmath_tanh(NAN)) &&
               isnan(vmath_exp2(NAN)) && isnan(vmath_gelu_slope_bf16(NAN)),
           "a NaN was lost");
    EXPECT(fabsf(1e4f * vmath_cdf_bf16(-1e4f)) < 1e-3f, "gelu far below zero is not about zero");
    EXPECT(vmath_exp(0) == 1 && vmath_tanh(0) == 0, "not exact at zero");
    return 0;
}
