/* Tensors that are rounded to fp8 where they are made (core/tensor.h, `rounded`): to the bit what quantize
 * makes of what the same op stores, with every history, of any shape, and nothing else is changed by it. */
#include "device_tensors.h"
#include "gpu_tests.h"

/* Of every factor, before it is made. */
static float history[2];

static struct fp8_factor factor(enum dtype format)
{
    struct fp8_factor f = {.rows = arena_carve_2d(&of.arena, format, of.rows, of.cols),
                           .columns = tensor_transpose(arena_carve_2d(&of.arena, format, of.cols, of.rows)),
                           .scale = arena_carve_1d(&of.arena, DTYPE_F32, 1),
                           .history = arena_carve_1d(&of.arena, DTYPE_F32, 2)};
    f.rows.scale = f.columns.scale = f.scale.data;
    exec_copy_in(&of.x, f.history.data, history, sizeof history);
    return f;
}

static void expect_same(tensor got, tensor wanted, const char *op, const char *what)
{
    size_t n = tensor_bytes(wanted);
    unsigned char *a = malloc(n + 1), *b = malloc(n + 1);
    exec_copy_out(&of.x, a, got.data, n);
    exec_copy_out(&of.x, b, wanted.data, n);
    EXPECT_OK(of.x.status);
    for (size_t i = 0; i < n; i++) {
        EXPECT(a[i] == b[i], "%s of %s [%lld, %lld], history %g, %g: byte %zu of %s is %02x, not %02x", op,
               dtype_name(of.dtype), (long long)of.rows, (long long)of.cols, (double)history[0],
               (double)history[1], i, what, a[i], b[i]);
    }
    free(a);
    free(b);
}

/* What quantize makes of what was stored. */
static void expect_rounded(const struct fp8_factor *f, tensor stored, enum dtype format, const char *op)
{
    struct fp8_factor w = factor(format);
    of.b.ops->quantize(&of.x, w.rows, w.columns, w.scale, w.history, NULL_TENSOR, stored, format);
    expect_same(f->scale, w.scale, op, "the scale");
    expect_same(f->history, w.history, op, "the history");
    expect_same(f->rows, w.rows, op, "rows");
    expect_same(f->columns, w.columns, op, "columns");
}

static tensor with_rounding(tensor t, const struct fp8_factor *f)
{
    t.rounded = f;
    return t;
}

/* Sums over rows are added in another order, so the two are alike, but not to the bit. */
static void expect_alike(tensor got, tensor wanted)
{
    size_t n = tensor_bytes(wanted);
    tensor a = got, b = wanted;
    a.data = malloc(n), b.data = malloc(n);
    exec_copy_out(&of.x, a.data, got.data, n);
    exec_copy_out(&of.x, b.data, wanted.data, n);
    for (int64_t i = 0; i < tensor_count(wanted); i++) {
        double x = tensor_get(a, i), y = tensor_get(b, i);
        EXPECT(x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= 1e-5 * (double)of.rows,
               "sum %lld is %g, not %g", (long long)i, x, y);
    }
    free(a.data);
    free(b.data);
}

/* Where it adds, it adds once, though a scale was outgrown. */
static void run_norm_backward(double one, bool adds, tensor sum, tensor mean, tensor rstd, tensor gamma,
                              tensor keys, struct dropout drop)
{
    const char *op = "bias_dropout_add_layernorm_backward";
    struct fp8_factor df = factor(DTYPE_E5M2);
    tensor dout = matrix(one), din[2], dresidual[2], sums[2][3];
    for (int i = 0; i < 2; i++) {
        of.seed = 7;
        din[i] = matrix(0), dresidual[i] = matrix(0);
        for (int k = 0; k < 3; k++) {
            sums[i][k] = vector(of.cols);
        }
        of.b.ops->bias_dropout_add_layernorm_backward(
            &of.x, dresidual[i], i == 0 ? din[i] : with_rounding(din[i], &df), sums[i][0], sums[i][1],
            sums[i][2], dout, sum, mean, rstd, gamma, keys, drop, adds);
    }
    expect_same(dresidual[1], dresidual[0], op, "dresidual");
    expect_rounded(&df, din[0], DTYPE_E5M2, op);
    for (int k = 0; k < 3; k++) {
        expect_alike(sums[1][k], sums[0][k]);
    }
}

static void run_norms(double one)
{
    const struct ops *o = of.b.ops;
    struct dropout drop = {.p = 0.1, .site = 3};
    struct fp8_factor f = factor(DTYPE_E4M3);
    int64_t n = of.rows, h = of.cols;
    tensor keys = filled(arena_carve_2d(&of.arena, DTYPE_I32, n, 2), 0), in = matrix(one),
           residual = matrix(0);
    tensor bias = vector(h), gamma = vector(h), beta = vector(h), out[2], sum[2], mean[2], rstd[2];
    for (int i = 0; i < 2; i++) {
        out[i] = matrix(0), sum[i] = matrix(0), mean[i] = vector(n), rstd[i] = vector(n);
        o->bias_dropout_add_layernorm(&of.x, i == 0 ? out[i] : with_rounding(out[i], &f), sum[i], mean[i],
                                      rstd[i], in, bias, residual, gamma, beta, 1e-12, keys, drop);
    }
    const char *op = "bias_dropout_add_layernorm";
    expect_same(out[1], out[0], op, "out");
    expect_same(sum[1], sum[0], op, "sum");
    expect_same(mean[1], mean[0], op, "mean");
    expect_same(rstd[1], rstd[0], op, "rstd");
    expect_rounded(&f, out[0], DTYPE_E4M3, op);
    for (int adds = 0; adds < 2; adds++) {
        run_norm_backward(one, adds != 0, sum[0], mean[0], rstd[0], gamma, keys, drop);
    }
}

static void run_gelu(double one)
{
    const struct ops *o = of.b.ops;
    struct fp8_factor f = factor(DTYPE_E4M3), df = factor(DTYPE_E5M2);
    tensor in = filled(arena_carve_2d(&of.arena, of.dtype, of.rows, 16), one);
    tensor w = filled(arena_carve_2d(&of.arena, of.dtype, of.cols, 16), 0);
    tensor out = matrix(0), pre[2];
    for (int i = 0; i < 2; i++) {
        pre[i] = matrix(0);
        o->linear_gelu(&of.x, i == 0 ? out : with_rounding(matrix(0), &f), pre[i], in, w,
                       NULL_TENSOR); /* which could be added before the product is rounded, or behind */
    }
    expect_same(pre[1], pre[0], "linear_gelu", "pre");
    expect_rounded(&f, out, DTYPE_E4M3, "linear_gelu");
    tensor dout = matrix(one), dpre = matrix(0), dbias[2];
    for (int i = 0; i < 2; i++) {
        of.seed = 7;
        dbias[i] = vector(of.cols);
        o->gelu_backward(&of.x, i == 0 ? dpre : with_rounding(dout, &df), dbias[i], dout, pre[0]);
    }
    expect_rounded(&df, dpre, DTYPE_E5M2, "gelu_backward");
    expect_alike(dbias[1], dbias[0]);
}

static void run_shape(double one)
{
    /* nothing known; room for it; outgrown; room for it, but not for what came before */
    static const float histories[][2] = {{0, 0}, {50, 1e-3F}, {0x1p-8F, 0}, {50, 1e5F}};
    for (int i = 0; i < 4; i++) {
        memcpy(history, histories[i], sizeof history);
        of.arena.used = 0;
        run_norms(one);
        of.arena.used = 0;
        run_gelu(one);
    }
}

int test_cuda_rounding(void)
{
    static const int64_t shapes[][2] = {{16, 16},   {48, 1024}, {80, 528},  {1040, 64},
                                        {32, 2048}, {48, 1296}, {16, 2560}, {32, 2576}};
    open_device("rounding");
    if (!of.b.device->computes_in_fp8) {
        test_skip("fp8", "this GPU does not compute in fp8; one of compute capability 8.9 or higher does");
    }
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof shapes[0]; i++) {
        of.dtype = i % 2 == 0 ? DTYPE_BF16 : DTYPE_F32;
        of.rows = shapes[i / 2][0], of.cols = shapes[i / 2][1];
        if (of.dtype == DTYPE_BF16 || of.rows * of.cols < BIG) {
            run_shape(0);
        }
        if (of.rows * of.cols < BIG / 4) {
            run_shape(NAN);
            run_shape(INFINITY);
        }
    }
    close_device();
    return 0;
}
