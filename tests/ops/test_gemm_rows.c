/* Products by rows alone (exec.rows_alone), of every instruction set that the processor has: right against
 * sums in fp64, and each row with the bits that it gets alone, in any block, tile or number of rows. */
#include "core/rng.h"
#include "ops/cpu/cpu_isa.h"
#include "ops/cpu/gemm_backend.h"
#include "test.h"

#define DECLARE(isa) void gemm_rows_kernels_fill_##isa(struct gemm_backend *t);
#define FILL(isa)    gemm_rows_kernels_fill_##isa,
CPU_ISAS(DECLARE)
static void (*const fills[])(struct gemm_backend *t) = {CPU_ISAS(FILL)};

enum { M = 13, MOST_N = 200, MOST_K = 1030 };

static float bias[MOST_N], out[M * MOST_N], alone[MOST_N];
static char a[M * MOST_K * 4], w[MOST_N * MOST_K * 4];

static void fill(char *to, int64_t n, enum dtype dtype, uint64_t key)
{
    for (int64_t i = 0; i < n; i++) {
        float v = (float)rng_normal(key, (uint64_t)i);
        if (dtype == DTYPE_F32) {
            ((float *)to)[i] = v;
        } else {
            ((uint16_t *)to)[i] = bf16_from_f32(v);
        }
    }
}

static double at(const char *from, int64_t i, enum dtype dtype)
{
    return dtype == DTYPE_F32 ? (double)((const float *)from)[i]
                              : (double)bf16_to_f32(((const uint16_t *)from)[i]);
}

static struct gemm product(int64_t m, int64_t n, int64_t k, enum dtype dtype)
{
    return (struct gemm){.m = m,
                         .n = n,
                         .k = k,
                         .c = out,
                         .a = a,
                         .b = w,
                         .bias = bias,
                         .c_stride = n,
                         .a_stride = k,
                         .b_stride = k,
                         .c_dtype = DTYPE_F32,
                         .ab_dtype = dtype,
                         .b_transposed = true};
}

static void check_right(const struct gemm *g, const char *isa)
{
    for (int64_t i = 0; i < g->m * g->n; i++) {
        double want = (double)bias[i % g->n], size = fabs(want);
        for (int64_t l = 0; l < g->k; l++) {
            double p = at(a, i / g->n * g->k + l, g->ab_dtype) * at(w, i % g->n * g->k + l, g->ab_dtype);
            want += p, size += fabs(p);
        }
        EXPECT(fabs((double)out[i] - want) <= 1e-6 * size, "%s: element %lld of k %lld is %g, not %g", isa,
               (long long)i, (long long)g->k, (double)out[i], want);
    }
}

/* Rows [row, row + n) alone. */
static void check_alone(const struct gemm_backend *b, const struct gemm *g, int64_t row, int64_t n,
                        const char *isa)
{
    struct gemm one = *g;
    static float some[M * MOST_N];
    one.m = n;
    one.c = some;
    one.a = a + row * g->k * (int64_t)dtype_bytes(g->ab_dtype);
    EXPECT(b->tile("rows", &one, NULL), "%s", isa);
    EXPECT(memcmp(some, out + row * g->n, (size_t)(n * g->n) * sizeof *some) == 0,
           "%s: %lld rows from %lld have other bits alone, k %lld", isa, (long long)n, (long long)row,
           (long long)g->k);
}

static void check_isa(const struct gemm_backend *b, const char *isa, int64_t n, int64_t k, enum dtype dtype)
{
    struct gemm g = product(M, n, k, dtype);
    fill(a, M * k, dtype, 1);
    fill(w, n * k, dtype, 2);
    EXPECT(b->tile("rows", &g, NULL), "%s", isa);
    check_right(&g, isa);
    for (int64_t i = 0; i < M; i++) {
        check_alone(b, &g, i, 1, isa);
    }
    check_alone(b, &g, 1, 2, isa);
    check_alone(b, &g, 2, 3, isa);
    check_alone(b, &g, 5, 7, isa);
}

/* Through gemm_run, cut into tiles: many rows, and one. */
static void check_run(int64_t k, enum dtype dtype)
{
    struct exec x = {.device = &device_cpu, .layer_index = -1, .rows_alone = true};
    struct gemm g = product(M, MOST_N, k, dtype);
    fill(a, M * k, dtype, 1);
    fill(w, MOST_N * k, dtype, 2);
    gemm_run(&x, "test", &g, NULL, 0, NULL);
    EXPECT_OK(x.status);
    check_right(&g, "tiles");
    for (int64_t i = 0; i < M; i++) {
        struct gemm one = g;
        one.m = 1;
        one.c = alone;
        one.a = a + i * k * (int64_t)dtype_bytes(dtype);
        gemm_run(&x, "test", &one, NULL, 0, NULL);
        EXPECT(memcmp(alone, out + i * MOST_N, sizeof alone) == 0, "row %lld has other bits alone",
               (long long)i);
    }
}

int main(void)
{
    static const int64_t ks[] = {1, 15, 33, 64, 100, MOST_K};
    fill((char *)bias, MOST_N, DTYPE_F32, 3);
    for (enum cpu_isa isa = 0; isa < N_CPU_ISAS; isa++) {
        struct gemm_backend b;
        if (!cpu_isa_is_there(isa)) {
            printf("this processor lacks %s\n", cpu_isa_name(isa));
            continue;
        }
        fills[isa](&b);
        for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
            check_isa(&b, cpu_isa_name(isa), 50, ks[i], DTYPE_F32);
            check_isa(&b, cpu_isa_name(isa), 7, ks[i], DTYPE_BF16);
        }
        printf("%s: right, and alone as beside others\n", cpu_isa_name(isa));
    }
    check_run(MOST_K, DTYPE_F32);
    check_run(MOST_K, DTYPE_BF16);
    return 0;
}
