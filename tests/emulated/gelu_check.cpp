/* gelu of each element type (ops/cuda/kernels/gelu_code.cuh) against its definition: z Phi(z), and what is no
 * number stays none. */
#include "ops/cuda/kernels/gelu_code.cuh"

#include <stdio.h>
#include <stdlib.h>

static void expect(bool holds, const char *type, float z, float got)
{
    if (!holds) {
        fprintf(stderr, "gelu(%g) in %s is %.9g\n", (double)z, type, (double)got);
        exit(1);
    }
}

/* Within `absolute`, and for z < 0 within `relative` of itself, down to what 16 bits can hold. */
template <typename A> static void check(const char *type, double absolute, double relative)
{
    for (int i = -40000; i <= 40000; i++) {
        float z = (float)i / 1000, got = gelu<A>(z);
        double wanted = (double)z * 0.5 * erfc(-(double)z / sqrt(2.0));
        expect(fabs((double)got - wanted) <= absolute * fmax(1, fabs(wanted)), type, z, got);
        expect(z < -6.5f || fabs((double)got - wanted) <= relative * fabs(wanted), type, z, got);
    }
    for (float z = 64; z < 1e38f; z *= 8) {
        expect(gelu<A>(z) == z && gelu<A>(-z) == 0, type, z, gelu<A>(-z));
    }
    expect(isnan(gelu<A>(NAN)) && !isfinite(gelu<A>(INFINITY)), type, NAN, gelu<A>(NAN));
}

int main(void)
{
    check<bf16>("bf16", 2e-6, 2e-5);
    check<f16>("fp16", 2e-6, 2e-5);
    check<float>("fp32", 1e-6, 1);
    printf("gelu: within 2e-6 of its definition, 2e-5 of itself\n");
    return 0;
}
