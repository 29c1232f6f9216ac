/* Predictions: a tabulated product has the rate of the table, others are in its neighbourhood; ops of a layer of BERT-Large
 * at 256 x 128 tokens take what was counted by hand from their kernels' code; what is small costs its launches. */
#include "test.h"

#include "ops/forecast.h"

#include <math.h>

static const struct gpu_chip *h200(void)
{
    const struct gpu_chip *chip;
    EXPECT_OK(gpu_chip_find(&chip, "h200"));
    return chip;
}

static struct cuda_launch product(enum cuda_product_side side, int64_t m, int64_t n, int64_t k, bool fp8)
{
    return (struct cuda_launch){.kernel = "product",
                                .copy_share = 1,
                                .side = side,
                                .m = m,
                                .n = n,
                                .k = k,
                                .factor = fp8 ? DTYPE_E4M3 : DTYPE_BF16,
                                .flops = 2.0 * (double)m * (double)n * (double)k};
}

static void test_products(void)
{
    const struct gpu_chip *chip = h200();
    double best = 0;
    for (int i = 0; i < chip->n_products; i++) {
        const struct gpu_product *p = &chip->products[i];
        struct cuda_launch l = product(p->side, p->m, p->n, p->k, p->fp8);
        EXPECT_NEAR(gpu_chip_product_rate(chip, &l) / (1e12 * p->tflops), 1, 1e-9);
        best = p->fp8 ? best : fmax(best, p->tflops);
    }
    for (int64_t m = 1; m <= 1 << 17; m = 2 * m + 1) { /* never above the best, and always some */
        struct cuda_launch l = product(CUDA_FORWARD, m, 1024, 1024, false);
        double rate = gpu_chip_product_rate(chip, &l);
        EXPECT(rate > 0 && rate <= 1e12 * best, "%g FLOP/s of %lld rows", rate, (long long)m);
    }
    struct cuda_launch one = product(CUDA_FORWARD, 384, 1024, 1024, false);
    EXPECT(gpu_chip_product_rate(chip, &one) < 0.5e12 * best, "24 tiles fill 132 multiprocessors");
    struct status s = gpu_chip_find(&chip, "abacus");
    EXPECT(s.code == STATUS_USAGE && strstr(s.message, "only of h200") != NULL, "%s", s.message);
}

static void test_launches(void)
{
    const struct gpu_chip *chip = h200();
    struct cuda_launch copy = {.kernel = "memset", .bytes = chip->copy / 1000, .copy_share = 0.5};
    EXPECT_NEAR(gpu_chip_seconds(chip, &copy), 2e-3 + chip->gap_s, 1e-9);
    copy.bytes = 0;
    EXPECT_NEAR(gpu_chip_seconds(chip, &copy), chip->least_s + chip->gap_s, 1e-9);
    copy.waits = 10;
    EXPECT_NEAR(gpu_chip_seconds(chip, &copy), chip->least_s + chip->gap_s + 10 * chip->wait_s, 1e-9);
}

enum { T = 32768, H = 1024, F = 4096, HEADS = 16, B = 256, S = 128 };

static tensor matrix(int64_t rows, int64_t cols)
{
    return tensor_2d(NULL, DTYPE_BF16, rows, cols);
}

static tensor vector(int64_t n)
{
    return tensor_1d(NULL, DTYPE_F32, n);
}

static struct attention attention_of_128(void)
{
    return (struct attention){.cu_seqlens_q = tensor_1d(NULL, DTYPE_I32, B + 1),
                              .cu_seqlens_kv = tensor_1d(NULL, DTYPE_I32, B + 1),
                              .max_seqlen_q = S,
                              .max_seqlen_kv = S,
                              .scale = 0.125,
                              .row_keys = tensor_2d(NULL, DTYPE_I32, T, 2),
                              .dropout = {.p = 0.1}};
}

static void expect_ms(const struct forecast *f, const char *op, double ms)
{
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        if (strcmp(f->totals[i].op, op) == 0) {
            EXPECT(fabs(1e3 * f->seconds[i] - ms) < 0.06 * ms, "%s: %g ms, counted by hand %g", op,
                   1e3 * f->seconds[i], ms);
        }
    }
}

/* One layer, one call an op: milliseconds as they were counted by hand (docs/numbers.md), u_ms those of copying [T, H]
 * in bf16 once, at the share of that rate that a kernel comes to. */
static void test_layer(void)
{
    const double u_ms = 67.1e6 / 4.29e12 * 1e3;
    static struct forecast f;
    forecast_init(&f, h200());
    const struct ops *op = &f.watch.table;
    struct exec x = {.device = &device_cpu, .ops = op, .layer_index = -1};
    tensor u = matrix(T, H), v = matrix(T, H), w = matrix(T, H), z = matrix(T, H), stat = vector(T),
           h = vector(H), keys = tensor_2d(NULL, DTYPE_I32, T, 2);
    tensor ff = matrix(T, F), heads = tensor_split_heads(u, HEADS),
           lse = tensor_2d(NULL, DTYPE_F32, T, HEADS);
    struct dropout drop = {.p = 0.1};
    op->linear_gelu(&x, ff, ff, u, matrix(F, H), vector(F));
    op->bias_dropout_add_layernorm(&x, u, v, stat, stat, w, h, z, h, h, 1e-12, keys, drop);
    op->bias_dropout_add_layernorm_backward(&x, u, v, h, h, h, w, z, stat, stat, h, keys, drop);
    op->gelu_backward(&x, ff, vector(F), ff, ff);
    op->attention(&x, heads, lse, heads, heads, heads, attention_of_128());
    op->attention_backward(&x, heads, heads, heads, vector(3 * H), heads, heads, lse, heads, heads, heads,
                           attention_of_128());
    op->linear_backward_weight(&x, tensor_2d(NULL, DTYPE_F32, 3 * H, H), NULL_TENSOR, matrix(T, 3 * H), u,
                               true);
    EXPECT(!failed(x.status), "%s", x.status.message);
    expect_ms(&f, "linear_gelu", .431 + 8 * u_ms / .86);
    expect_ms(&f, "bias_dropout_add_layernorm", 4 * u_ms / .88);
    expect_ms(&f, "bias_dropout_add_layernorm_backward", 4 * u_ms / .86 + .004);
    expect_ms(&f, "gelu_backward", 12 * u_ms / .88);
    expect_ms(&f, "attention", .11);
    expect_ms(&f, "attention_backward", .22);
    expect_ms(&f, "linear_backward_weight", 206.2 / 768);
    double ops_s = 0, kernels_s = 0;
    for (int i = 0; i < f.n_kernels; i++) {
        kernels_s += f.kernels[i].seconds;
    }
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        ops_s += f.seconds[i];
    }
    EXPECT_NEAR(ops_s, kernels_s, 1e-12);
    EXPECT(forecast_hot_seconds(&f, ops_s) > ops_s, "a hot chip is as fast");
    EXPECT(f.n_launches == 3 + 1 + 2 + 2 + 1 + 2 + 1, "%lld launches", (long long)f.n_launches);
}

int main(void)
{
    test_products();
    test_launches();
    test_layer();
    printf("test_forecast: a layer takes what was counted by hand\n");
    return 0;
}
