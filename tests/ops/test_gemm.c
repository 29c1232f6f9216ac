/* Every compiled-in backend of ops/cpu/gemm.h on every form of tile, against sums in fp64; then whole
 * products, whose edges do not fit their tiles. */
#include "core/rng.h"
#include "ops/cpu/gemm_backend.h"
#include "test.h"

enum { PAD = 3 }; /* unused elements after each row */

struct matrix {
    int64_t rows, cols, stride;
    enum dtype dtype;
    void *data;
};

static double get(const struct matrix *m, int64_t i, int64_t j)
{
    int64_t at = i * m->stride + j;
    return m->dtype == DTYPE_F32 ? (double)((float *)m->data)[at]
                                 : (double)bf16_to_f32(((uint16_t *)m->data)[at]);
}

static struct matrix matrix_random(int64_t rows, int64_t cols, enum dtype dtype, uint64_t key)
{
    struct matrix m = {rows, cols, cols + PAD, dtype, NULL};
    m.data = malloc((size_t)(rows * m.stride) * dtype_bytes(dtype));
    EXPECT(m.data != NULL, "no memory");
    for (int64_t i = 0; i < rows * m.stride; i++) {
        float v = (float)rng_normal(key, (uint64_t)i);
        if (dtype == DTYPE_F32) {
            ((float *)m.data)[i] = v;
        } else {
            ((uint16_t *)m.data)[i] = bf16_from_f32(v);
        }
    }
    return m;
}

/* A product and what it should give. */
struct product {
    struct gemm g;
    struct matrix a, b, c;
    float *bias;
    double *want; /* [m, n] */
};

static struct product product_make(int64_t m, int64_t n, int64_t k, int flags, enum dtype ab,
                                   enum dtype c_dtype)
{
    struct product p = {.g = {.m = m, .n = n, .k = k, .ab_dtype = ab, .c_dtype = c_dtype}};
    p.g.a_transposed = flags & 1;
    p.g.b_transposed = flags & 2;
    p.g.accumulate = flags & 4;
    p.a = p.g.a_transposed ? matrix_random(k, m, ab, 1) : matrix_random(m, k, ab, 1);
    p.b = p.g.b_transposed ? matrix_random(n, k, ab, 2) : matrix_random(k, n, ab, 2);
    p.c = matrix_random(m, n, c_dtype, 3);
    p.bias = malloc((size_t)n * sizeof(float));
    p.want = malloc((size_t)(m * n) * sizeof(double));
    EXPECT(p.bias != NULL && p.want != NULL, "no memory");
    for (int64_t j = 0; j < n; j++) {
        p.bias[j] = (float)rng_normal(4, (uint64_t)j);
    }
    p.g.bias = !p.g.accumulate && flags & 8 ? p.bias : NULL;
    p.g.a = p.a.data;
    p.g.b = p.b.data;
    p.g.c = p.c.data;
    p.g.a_stride = p.a.stride;
    p.g.b_stride = p.b.stride;
    p.g.c_stride = p.c.stride;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = p.g.accumulate ? get(&p.c, i, j) : p.g.bias != NULL ? (double)p.bias[j] : 0;
            for (int64_t l = 0; l < k; l++) {
                sum += (p.g.a_transposed ? get(&p.a, l, i) : get(&p.a, i, l)) *
                       (p.g.b_transposed ? get(&p.b, j, l) : get(&p.b, l, j));
            }
            p.want[i * n + j] = sum;
        }
    }
    return p;
}

static void product_check(const struct product *p, const char *backend)
{
    double bound = p->g.c_dtype == DTYPE_BF16 ? 4e-3 : 1e-6, largest = 0, error = 0;
    for (int64_t i = 0; i < p->g.m * p->g.n; i++) {
        largest = fmax(largest, fabs(p->want[i]));
        error = fmax(error, fabs(get(&p->c, i / p->g.n, i % p->g.n) - p->want[i]));
    }
    EXPECT(error <= bound * largest, "%s: [%lld, %lld, %lld] is off by %g of %g", backend, (long long)p->g.m,
           (long long)p->g.n, (long long)p->g.k, error, largest);
}

static void product_free(struct product *p)
{
    free(p->a.data);
    free(p->b.data);
    free(p->c.data);
    free(p->bias);
    free(p->want);
}

static void check_tile(const struct gemm_backend *b, struct product p)
{
    size_t bytes = 0;
    const void *handle = b->prepare(&p.g, &bytes);
    EXPECT(handle != NULL, "%s has no code for a form that it can do", b->name);
    void *lane = aligned_alloc(64, (bytes / 64 + 1) * 64);
    EXPECT(lane != NULL && b->tile(handle, &p.g, lane), "%s failed", b->name);
    product_check(&p, b->name);
    free(lane);
    product_free(&p);
}

static const enum dtype combinations[][2] = {
    {DTYPE_F32, DTYPE_F32}, {DTYPE_BF16, DTYPE_BF16}, {DTYPE_BF16, DTYPE_F32}};

static void check_backend(const struct gemm_backend *b)
{
    for (int d = 0; d < 3; d++) {
        if (!b->can(combinations[d][0], combinations[d][1])) {
            printf("%s has no fast code for %s\n", b->name, dtype_name(combinations[d][0]));
            continue;
        }
        for (int flags = 0; flags < 16; flags++) {
            check_tile(b, product_make(37, 70, 300, flags, combinations[d][0], combinations[d][1]));
            check_tile(b, product_make(1, 1, 1, flags, combinations[d][0], combinations[d][1]));
        }
    }
    printf("%s: right\n", b->name);
}

static void run(const struct gemm *g)
{
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    gemm_run(&x, "test", g, NULL, 0, NULL);
    EXPECT(!failed(x.status), "%s", x.status.message);
}

/* C += A B adds a finished sum: the bits of A B that was made apart, and then added
 * (docs/decisions/0039_ranks.md). */
static void check_finished_sum(int64_t m, int64_t n, int64_t k, enum dtype ab)
{
    struct product added = product_make(m, n, k, 1 | 4, ab, DTYPE_F32);
    struct product apart = product_make(m, n, k, 1, ab, DTYPE_F32);
    struct matrix begin = matrix_random(m, n, DTYPE_F32, 3); /* as in `added` */
    run(&added.g);
    run(&apart.g);
    for (int64_t i = 0; i < m * n; i++) {
        int64_t row = i / n, col = i % n;
        float want = (float)get(&begin, row, col) + (float)get(&apart.c, row, col);
        EXPECT((float)get(&added.c, row, col) == want,
               "[%lld, %lld, %lld] in %s: element %lld is another sum", (long long)m, (long long)n,
               (long long)k, dtype_name(ab), (long long)i);
    }
    free(begin.data);
    product_free(&added);
    product_free(&apart);
}

static void check_finished_sums(void)
{
    static const int64_t sizes[][3] = {
        {64, 48, 64}, {64, 48, 80}, {128, 16, 16}, {192, 256, 300}, {96, 128, 1000}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_finished_sum(sizes[i][0], sizes[i][1], sizes[i][2], DTYPE_F32);
        check_finished_sum(sizes[i][0], sizes[i][1], sizes[i][2], DTYPE_BF16);
    }
}

/* More forms than the cache of primitives holds, twice. */
static void check_many_forms(void)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t m = 1; m <= 1200; m++) {
            struct product p = product_make(m, 2, 1, 0, DTYPE_F32, DTYPE_F32);
            run(&p.g);
            product_check(&p, "gemm_run");
            product_free(&p);
        }
    }
}

int main(void)
{
    for (int i = 0; gemm_backend_line(i) != NULL; i++) {
        puts(gemm_backend_line(i)); /* the first call opens them all */
        EXPECT(strstr(gemm_backend_line(i), ": off") == NULL, "a backend does not open");
    }
    printf("fp32 by %s, bf16 by %s\n", gemm_backend_name(DTYPE_F32), gemm_backend_name(DTYPE_BF16));
    check_backend(gemm_plain());
#if KILN_HAVE_BLAS
    check_backend(&gemm_blas);
#endif
#if KILN_HAVE_ONEDNN
    check_backend(&gemm_onednn);
#endif
    for (int flags = 0; flags < 16; flags++) {
        struct product p = product_make(300, 1100, 9, flags, DTYPE_F32, DTYPE_F32);
        run(&p.g);
        product_check(&p, "gemm_run");
        product_free(&p);
    }
    check_finished_sums();
    check_many_forms();
    return 0;
}
