/* Predictions: a tabulated product has the rate of the table, others are in its neighbourhood; ops of a layer of BERT-Large
 * at 256 x 128 tokens take what was counted by hand from their kernels' code; what is small costs its launches; work beside
 * takes what the rest leaves idle, and no more. */
#include "test.h"

#include "dev/queue.h"
#include "ops/attention_bits.h"
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
    EXPECT(s.code == STATUS_USAGE && strstr(s.message, "only for h200") != NULL, "%s", s.message);
}

/* Of the own kernel for few rows: every tile has a price, which no multiprocessor beats and more instructions raise; parts of
 * a long sum are worth what they cost, those of a short one are not. */
static void test_own_products(void)
{
    static const int64_t tiles[][2] = {{64, 64}, {64, 128}, {64, 192}, {128, 128}};
    const struct gpu_chip *chip = h200();
    for (int i = 0; i < 4; i++) {
        for (int64_t m = 1; m <= 1024; m = 2 * m + 1) {
            struct cuda_launch l = product(CUDA_FORWARD, m, 1024, 1024, false);
            l.tile_rows = tiles[i][0], l.tile_cols = tiles[i][1], l.parts = 1, l.issue_share = 1;
            double plain = gpu_chip_seconds(chip, &l);
            EXPECT(plain > chip->gap_s + chip->least_s && plain > l.flops / 807e12, "%g s of %lld rows",
                   plain, (long long)m);
            l.instructions = 12 * (double)(m * 1024);
            EXPECT(gpu_chip_seconds(chip, &l) > plain, "GELU costs nothing");
        }
    }
    struct cuda_launch l = product(CUDA_FORWARD, 384, 1024, 4096, false);
    l.tile_rows = l.tile_cols = 128, l.parts = 1, l.issue_share = 1;
    double whole = gpu_chip_seconds(chip, &l);
    l.parts = 4;
    EXPECT(gpu_chip_seconds(chip, &l) < 0.5 * whole, "96 blocks are as slow as 24");
    l.k = 64, l.flops /= 64;
    double in_parts = gpu_chip_seconds(chip, &l);
    l.parts = 1;
    EXPECT(gpu_chip_seconds(chip, &l) < in_parts, "sums are sent for nothing");
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

static void expect_phases(const struct gpu_chip *chip, const struct cuda_launch *l, struct gpu_phases by_hand)
{
    struct gpu_phases p = gpu_chip_phases(chip, l);
    EXPECT_NEAR(p.idle_s, by_hand.idle_s, 1e-9);
    EXPECT_NEAR(p.all_s, by_hand.all_s, 1e-9);
    EXPECT_NEAR(p.last_s, by_hand.last_s, 1e-9);
    EXPECT_NEAR(p.last, by_hand.last, 1e-9);
    EXPECT_NEAR(gpu_chip_seconds(chip, l), p.idle_s + p.all_s + p.last_s, 1e-12);
}

/* What blocks bring before they compute is waited for once, by as many as there are at a time; what they bring later takes
 * no time beside instructions, or all of it. */
static void test_first_bytes(void)
{
    const struct gpu_chip *chip = h200();
    struct cuda_launch l = {.kernel = "some",
                            .bytes = 1e8,
                            .copy_share = .9,
                            .instructions = 1e9,
                            .issue_share = .5,
                            .blocks = 4096};
    double computing = gpu_chip_seconds(chip, &l);
    l.first_bytes = 50e3;
    double waited = gpu_chip_seconds(chip, &l) - computing, few = 100 * 50e3 / chip->copy;
    EXPECT(fabs(waited - 264 * 50e3 / chip->copy) < 1e-9, "%g us for the first rows", 1e6 * waited);
    l.blocks = 100;
    waited = gpu_chip_seconds(chip, &l);
    l.first_bytes = 0;
    waited -= gpu_chip_seconds(chip, &l);
    EXPECT(fabs(waited - few) < 1e-9, "%g us for those of 100 blocks", 1e6 * waited);
    l.bytes = 1e10;
    double moving = gpu_chip_seconds(chip, &l);
    l.first_bytes = 50e3;
    EXPECT(gpu_chip_seconds(chip, &l) == moving, "they are counted among all bytes");
}

/* A chip of four multiprocessors on which 128 x 256 x 1,024 take one of them a second. */
enum { FOUR = 4, TILE_M = 128, TILE_N = 256, DEPTH = 1024 };

static struct gpu_chip four_multiprocessors(const struct gpu_product *p)
{
    return (struct gpu_chip){.name = "four",
                             .multiprocessors = FOUR,
                             .clock_hz = 1e9,
                             .copy = 1e8,
                             .hot = 1,
                             .gap_s = 0.25,
                             .least_s = 0.5,
                             .wait_s = 0.125,
                             .edge_s = 1,
                             .products = p,
                             .n_products = 1};
}

static void test_phases(void)
{
    /* Seven tiles on four are two waves, the last of three: two seconds, so the measured rate is of seven in two. */
    const double tile_flops = 2.0 * TILE_M * TILE_N * DEPTH;
    struct gpu_product seven = {CUDA_FORWARD, false, 7 * TILE_M, TILE_N, DEPTH, 1e-12 * 7 * tile_flops / 2};
    struct gpu_chip chip = four_multiprocessors(&seven);
    struct cuda_launch l = product(CUDA_FORWARD, seven.m, seven.n, seven.k, false);
    expect_phases(&chip, &l, (struct gpu_phases){0.25, 1, 1, 3});
    l.bytes = 3e8; /* memory is slower: nothing is left to others */
    expect_phases(&chip, &l, (struct gpu_phases){0.25, 3, 0, FOUR});

    /* 800 tiles of 128 x 256 are 6.06 waves of 102.4 us; 1,600 with sums over half of k are 12.1 of 51.2 us, and 99.3 us for
     * adding: hardly slower, and they leave less idle. */
    struct cuda_launch wide = product(CUDA_WEIGHT_GRADIENT, 5120, 5120, 8192, false);
    struct gpu_phases p = gpu_chip_phases(h200(), &wide);
    EXPECT_NEAR(p.last, 16, 1e-9);
    EXPECT_NEAR(p.last_s / (p.all_s + p.last_s), (1 - 99.3 / (13 * 51.2 + 99.3)) / 13, 1e-5);

    struct cuda_launch copy = {.kernel = "copy", .bytes = 2e8, .copy_share = 1};
    expect_phases(&chip, &copy, (struct gpu_phases){0.25, 2, 0, FOUR});
    copy.bytes = 1e7; /* moves for 0.1 s of the least half second, and waits twice */
    copy.waits = 2;
    expect_phases(&chip, &copy, (struct gpu_phases){0.25 + 0.4 + 0.25, 0.1, 0, FOUR});

    /* Two blocks at once on each, 512e9 instructions a second: ten blocks are two waves, and the last two blocks are on two
     * multiprocessors; the last four are on all. */
    struct cuda_launch issued = {
        .kernel = "issued", .instructions = 2 * 512e9, .issue_share = 1, .copy_share = 1, .blocks = 10};
    expect_phases(&chip, &issued, (struct gpu_phases){0.25, 1, 1, 2});
    issued.blocks = 12;
    expect_phases(&chip, &issued, (struct gpu_phases){0.25, 1, 1, 4});
}

static const struct gpu_phases four_and_two = {0, 4, 2, 2}, three = {0, 3, 0, FOUR},
                               two_late = {1, 2, 0, FOUR};

/* `three` beside `four_and_two`: it is ready after the edge, at 1, and at 4 has two of four for two seconds. */
static struct forecast_streams beside_four_and_two(void)
{
    struct gpu_chip chip = four_multiprocessors(NULL);
    struct forecast_streams s;
    forecast_streams_init(&s, &chip);
    forecast_streams_fork(&s);
    forecast_streams_launch(&s, three, true);
    forecast_streams_launch(&s, four_and_two, false);
    EXPECT_NEAR(s.now_s, 6, 1e-12);
    EXPECT_NEAR(forecast_streams_seconds(&s), 8, 1e-12);
    return s;
}

static void test_streams(void)
{
    /* The next of the main stream: from 7 on it wants all, but what was ready before it has them until 8. */
    struct forecast_streams s = beside_four_and_two();
    forecast_streams_launch(&s, two_late, false);
    EXPECT_NEAR(s.now_s, 10, 1e-12);
    EXPECT(s.n_ended == 1, "%lld launches beside have ended", (long long)s.n_ended);

    /* Behind a join it begins at 8, a gap and an edge later. */
    s = beside_four_and_two();
    forecast_streams_join(&s, 0);
    forecast_streams_join(&s, 0); /* nothing is left to wait for */
    forecast_streams_launch(&s, two_late, false);
    EXPECT_NEAR(forecast_streams_seconds(&s), 8 + 2 + 2, 1e-12);

    /* A join that leaves the only piece waits for nothing, and one that leaves the last of two waits for the first. */
    s = beside_four_and_two();
    forecast_streams_join(&s, 1);
    EXPECT_NEAR(s.now_s, 6, 1e-12);
    forecast_streams_fork(&s);
    forecast_streams_launch(&s, three, true);
    forecast_streams_join(&s, 1);
    EXPECT_NEAR(s.now_s, 8, 1e-12);
    EXPECT_NEAR(forecast_streams_seconds(&s), 8 + 1 + 3, 1e-12);

    /* What memory bounds and what multiplies share nothing: together they take what they take in turn. */
    struct gpu_chip chip = four_multiprocessors(NULL);
    forecast_streams_init(&s, &chip);
    forecast_streams_fork(&s);
    forecast_streams_launch(&s, three, true);
    forecast_streams_launch(&s, three, false);
    EXPECT_NEAR(s.now_s, 3, 1e-12);
    EXPECT_NEAR(forecast_streams_seconds(&s), 6, 1e-12);
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
    op->bias_dropout_add_layernorm_backward(&x, u, v, h, h, h, w, z, stat, stat, h, keys, drop, false);
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
    expect_ms(&f, "attention", 1e3 * 1350 * 256 * 4096 / (.53 * 132 * 128 * 1.755e9) + .003);
    expect_ms(&f, "attention_backward", 1e3 * 2910 * 256 * 4096 / (.50 * 132 * 128 * 1.755e9) + .005 + .003);
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

/* The gradients of FF1: that of the weight, 128 tiles in one wave of 340.6 us, beside that of the input, 1,024 tiles in eight
 * waves of 50.45 us of which the last has 100.  From 354.2 to 404.6 us the first has 32 of the 128 it wants, then all. */
static void test_beside(bool recording)
{
    static struct forecast f;
    forecast_init(&f, h200());
    struct device device = forecast_device(h200()->name, h200()->computes_in_fp8);
    const struct ops *op = &f.watch.table;
    struct exec x = {.device = &device, .context = &f, .ops = op, .recording = recording, .layer_index = -1};
    queue_beside(&x);
    op->linear_backward_weight(&x, tensor_2d(NULL, DTYPE_F32, F, H), NULL_TENSOR, matrix(T, F), matrix(T, H),
                               false);
    queue_back(&x);
    op->linear_backward_input(&x, matrix(T, H), matrix(T, F), matrix(F, H), false);
    queue_join(&x, 0);
    EXPECT(!failed(x.status), "%s", x.status.message);
    double in_order = forecast_seconds(&f), hot = forecast_hot_seconds(&f, in_order);
    EXPECT_NEAR(1e6 * in_order, 1 + 340.6 + 1 + 403.6, 0.2);
    EXPECT_NEAR(1e6 * forecast_streams_seconds(&f.cool), recording ? 404.6 + 328.0 : 1e6 * in_order, 0.2);
    EXPECT_NEAR(1e6 * (hot - forecast_streams_seconds(&f.hot)), recording ? 13.5 / .948 : 0, 0.2);
}

/* A gradient of attention over 64 sequences of 512, by a kernel or any, in milliseconds; *moved is what the forward moves. */
static double long_gradient_ms(int kernel, tensor bits, double *moved)
{
    enum { LONG = 512, SEQUENCES = T / LONG };
    static struct forecast f;
    forecast_init(&f, h200());
    f.traffic.attention = kernel;
    const struct ops *op = &f.watch.table;
    struct exec x = {.device = &device_cpu, .ops = op, .layer_index = -1};
    struct attention a = attention_of_128();
    tensor heads = tensor_split_heads(matrix(T, H), HEADS), lse = tensor_2d(NULL, DTYPE_F32, T, HEADS);
    a.cu_seqlens_q = a.cu_seqlens_kv = tensor_1d(NULL, DTYPE_I32, SEQUENCES + 1);
    a.max_seqlen_q = a.max_seqlen_kv = LONG;
    a.bits = bits;
    op->attention(&x, heads, lse, heads, heads, heads, a);
    *moved = f.kernels[0].bytes;
    double before = forecast_seconds(&f);
    op->attention_backward(&x, heads, heads, heads, NULL_TENSOR, heads, heads, lse, heads, heads, heads, a);
    EXPECT(!failed(x.status), "%s", x.status.message);
    return 1e3 * (forecast_seconds(&f) - before);
}

/* Of 49 instructions a score with dropout in two passes and 34 in one, 15 and 7 draw it (docs/numbers.md); one pass is taken,
 * as the cheaper one.  The forward writes an eighth of a byte a score. */
static void test_bits(void)
{
    double drawn_moved, moved;
    tensor bits = tensor_2d(NULL, DTYPE_I32, attention_bits_rows(HEADS, 512), attention_bits_cols(T, 64));
    double drawn = long_gradient_ms(LAUNCH_ATTENTION_WGMMA, NULL_TENSOR, &drawn_moved),
           read = long_gradient_ms(LAUNCH_ATTENTION_WGMMA, bits, &moved);
    EXPECT(fabs(read / drawn - 34.2 / 48.9) < .02, "%g ms by bits, %g drawn", read, drawn);
    double drawn_once = long_gradient_ms(CUDA_TRAFFIC_ANY, NULL_TENSOR, &drawn_moved),
           read_once = long_gradient_ms(CUDA_TRAFFIC_ANY, bits, &moved);
    EXPECT(fabs(read_once / drawn_once - 26.4 / 33.7) < .02, "%g ms by bits, %g drawn", read_once,
           drawn_once);
    EXPECT(fabs(read_once / read - 26.4 / 34.2) < .02, "%g ms in one pass, %g in two", read_once, read);
    EXPECT_NEAR(moved - drawn_moved, (double)T * 512 * HEADS / 8, 1);
    bits.dims[0]--;
    struct exec x = {.device = &device_cpu, .ops = &ops_plan, .layer_index = -1};
    struct attention a = attention_of_128();
    tensor heads = tensor_split_heads(matrix(T, H), HEADS);
    a.bits = bits;
    ops_plan.attention(&x, heads, tensor_2d(NULL, DTYPE_F32, T, HEADS), heads, heads, heads, a);
    EXPECT(failed(x.status) && strstr(x.status.message, "bits must be") != NULL, "%s", x.status.message);
}

int main(void)
{
    test_phases();
    test_streams();
    test_beside(true);
    test_beside(false);
    test_products();
    test_own_products();
    test_launches();
    test_first_bytes();
    test_layer();
    test_bits();
    printf("test_forecast: a layer takes what was counted by hand\n");
    return 0;
}
