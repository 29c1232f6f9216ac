/* Products by rows alone (exec.rows_alone), of every instruction set that the processor has, AMX included:
 * right against sums in fp64, or exact in int8, and each row with the bits that it gets alone, in any block,
 * tile or number of rows. */
#include "core/rng.h"
#include "ops/cpu/cpu_isa.h"
#include "ops/cpu/gemm_backend.h"
#include "ops/workspace.h"
#include "test.h"

#define DECLARE(isa) void gemm_rows_kernels_fill_##isa(struct gemm_backend *t);
#define FILL(isa)    gemm_rows_kernels_fill_##isa,
CPU_ISAS(DECLARE)
static void (*const fills[])(struct gemm_backend *t) = {CPU_ISAS(FILL)};

enum { M = 13, MOST_N = 200, MOST_K = 1030 };

static float bias[MOST_N], out[M * MOST_N];
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

/* As one tile, in a lane of the bytes that it asks for. */
static void run_tile(const struct gemm_backend *b, const struct gemm *g, const char *isa)
{
    size_t bytes;
    const void *handle = b->prepare(g, &bytes);
    EXPECT(handle != NULL, "%s: no tile of %lld rows", isa, (long long)g->m);
    void *lane = malloc(bytes + 1);
    EXPECT(lane != NULL && b->tile(handle, g, lane), "%s", isa);
    free(lane);
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
    run_tile(b, &one, isa);
    EXPECT(memcmp(some, out + row * g->n, (size_t)(n * g->n) * sizeof *some) == 0,
           "%s: %lld rows from %lld have other bits alone, k %lld", isa, (long long)n, (long long)row,
           (long long)g->k);
}

static void check_isa(const struct gemm_backend *b, const char *isa, int64_t n, int64_t k, enum dtype dtype)
{
    struct gemm g = product(M, n, k, dtype);
    fill(a, M * k, dtype, 1);
    fill(w, n * k, dtype, 2);
    run_tile(b, &g, isa);
    check_right(&g, isa);
    for (int64_t i = 0; i < M; i++) {
        check_alone(b, &g, i, 1, isa);
    }
    check_alone(b, &g, 1, 2, isa);
    check_alone(b, &g, 2, 3, isa);
    check_alone(b, &g, 5, 7, isa);
}

/* ---- through gemm_run: packed where the processor has AMX, cut into tiles ---- */

enum { MANY = 300 };

static char many[MANY * MOST_K * 4];
static float out_many[MANY * MOST_N];
static char workspace[MANY * (MOST_K + 64) * 4];

static void run_with(const struct gemm *g, bool int8_rows)
{
    struct exec x = {.device = &device_cpu,
                     .layer_index = -1,
                     .rows_alone = !int8_rows,
                     .int8_rows = int8_rows,
                     .workspace = workspace,
                     .workspace_bytes = workspace_int8_rows(g->m, g->n, g->k)};
    gemm_run(&x, "test", g, NULL, 0, NULL);
    EXPECT_OK(x.status);
}

static void run(const struct gemm *g)
{
    run_with(g, false);
}

/* Rows [row, row + n) of g, which was run, have the same bits without the others. */
static void check_run_alone(const struct gemm *g, int64_t row, int64_t n)
{
    static float some[MANY * MOST_N];
    struct gemm one = *g;
    one.m = n;
    one.c = some;
    one.a = many + row * g->k * (int64_t)dtype_bytes(g->ab_dtype);
    run(&one);
    EXPECT(memcmp(some, out_many + row * g->n, (size_t)(n * g->n) * sizeof *some) == 0,
           "%lld rows from %lld of %lld have other bits alone, n %lld, k %lld, %s%s", (long long)n,
           (long long)row, (long long)g->m, (long long)g->n, (long long)g->k, dtype_name(g->ab_dtype),
           g->b_scales != NULL ? ", int8" : "");
}

static void check_run(int64_t m, int64_t n, int64_t k, enum dtype dtype, const float *scales)
{
    struct gemm g = product(m, n, k, dtype);
    g.a = many;
    g.c = out_many;
    g.b_scales = scales;
    run(&g);
    for (int64_t i = 0; i < m; i += 1 + m / 20) {
        check_run_alone(&g, i, 1);
    }
    check_run_alone(&g, m / 3, m / 2);
    check_run_alone(&g, m - m / 4, m / 4);
}

/* Products of whole numbers with int8 are those of sums that cannot be rounded. */
static void check_whole(int64_t m, int64_t n, int64_t k, const float *scales, bool int8_rows)
{
    static int16_t rows[MANY * (MOST_K + 64)];
    static uint8_t bytes[MOST_K];
    int32_t zero = 0;
    static float a_scales[MANY], want[MANY * MOST_N];
    struct gemm g = product(m, n, k, DTYPE_F32);
    g.a = many;
    g.c = out_many;
    g.b_scales = scales;
    run_with(&g, int8_rows);
    for (int64_t i = 0; i < m; i++) {
        const float *row = (const float *)many + i * k;
        a_scales[i] = int8_rows ? gemm_convert()->to_bytes(bytes, &zero, row, k)
                                : gemm_convert()->to_int16(rows + i * k, k, row, k);
        for (int64_t l = 0; l < k && int8_rows; l++) {
            rows[i * k + l] = (int16_t)(bytes[l] - zero);
        }
        for (int64_t j = 0; j < n; j++) {
            int64_t sum = 0;
            for (int64_t l = 0; l < k; l++) {
                sum += rows[i * k + l] * ((const int8_t *)w)[j * k + l];
            }
            want[i * n + j] = fmaf((float)sum, a_scales[i] * scales[j], bias[j]);
        }
    }
    EXPECT(memcmp(want, out_many, (size_t)(m * n) * sizeof *want) == 0,
           "int8 of %lld rows%s, n %lld, k %lld is not exact", (long long)m, int8_rows ? " in int8" : "",
           (long long)n, (long long)k);
}

static void check_runs(int64_t m, int64_t n, int64_t k)
{
    static float scales[MOST_N];
    for (enum dtype dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) {
        fill(many, m * k, dtype, 1);
        fill(w, n * k, dtype, 2);
        check_run(m, n, k, dtype, NULL);
        if (m == M) {
            memcpy(a, many, sizeof a);
            memcpy(out, out_many, sizeof out);
            struct gemm g = product(m, n, k, dtype);
            check_right(&g, "gemm_run");
        }
    }
    for (int64_t i = 0; i < n * k; i++) {
        ((int8_t *)w)[i] = (int8_t)((int)(rng_uniform_at(5, (uint64_t)i) * 255) - 127);
    }
    for (int64_t i = 0; i < n; i++) {
        scales[i] = 0.01f * (float)(1 + i % 7);
    }
    check_run(m, n, k, DTYPE_BF16, scales);
    fill(many, m * k, DTYPE_F32, 1);
    check_run(m, n, k, DTYPE_F32, scales);
    check_whole(m, n, k, scales, false);
    check_whole(m, n, k, scales, true);
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
    puts(gemm_amx_open() ? "this processor has AMX: gemm_run packs bf16 and int8 for it"
                         : "this processor lacks AMX");
    puts(gemm_multiplies_int8() ? "a library multiplies int8 by int8" : "no library multiplies int8 by int8");
    check_runs(M, MOST_N, MOST_K);
    check_runs(M, 7, 15);
    check_runs(33, 50, 100);
    check_runs(47, 48, 64);
    check_runs(MANY, 90, 1024);
    return 0;
}
