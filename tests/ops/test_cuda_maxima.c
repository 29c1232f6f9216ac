/* Maxima of tensors (core/tensor.h): every slot that notes them notes the largest magnitude that it stores,
 * of any shape, a NaN above all; and quantize rounds by them as it does by those that it finds. */
#include "core/fp8.h"
#include "device_tensors.h"
#include "gpu_tests.h"

/* With maxima that say nothing yet. */
static tensor result(void)
{
    uint32_t nothing[TENSOR_MAXIMA];
    tensor t = arena_carve_2d_maxima(&of.arena, of.dtype, of.rows, of.cols);
    memset(nothing, 0xee, sizeof nothing);
    exec_copy_in(&of.x, tensor_maxima(t), nothing, sizeof nothing);
    return t;
}

static uint32_t bits_of(float v)
{
    uint32_t u;
    v = fabsf(v);
    memcpy(&u, &v, sizeof u);
    return u;
}

static void expect_maxima(tensor t, const char *op)
{
    uint32_t maxima[TENSOR_MAXIMA], noted = 0, stored = 0;
    tensor host = t;
    host.data = malloc(tensor_bytes(t));
    exec_copy_out(&of.x, maxima, tensor_maxima(t), sizeof maxima);
    exec_copy_out(&of.x, host.data, t.data, tensor_bytes(t));
    EXPECT_OK(of.x.status);
    for (int i = 0; i < TENSOR_MAXIMA; i++) {
        noted = maxima[i] > noted ? maxima[i] : noted;
    }
    for (int64_t i = 0; i < tensor_count(t); i++) {
        uint32_t bits = bits_of((float)tensor_get(host, i));
        stored = bits > stored ? bits : stored;
    }
    bool is_nan = stored > 0x7f800000U;
    EXPECT(is_nan ? noted > 0x7f800000U : noted == stored,
           "%s of %s [%lld, %lld] notes the maximum %08x, and stores %08x", op, dtype_name(t.dtype),
           (long long)of.rows, (long long)of.cols, (unsigned)noted, (unsigned)stored);
    free(host.data);
}

static void run_norms(double one)
{
    const struct ops *o = of.b.ops;
    struct dropout drop = {.p = 0.1, .site = 3};
    int64_t n = of.rows, h = of.cols;
    tensor mean = vector(n), rstd = vector(n), gamma = vector(h), out = result(), sum = matrix(0);
    tensor keys = filled(arena_carve_2d(&of.arena, DTYPE_I32, n, 2), 0);
    o->bias_dropout_add_layernorm(&of.x, out, sum, mean, rstd, matrix(one), vector(h), matrix(0), gamma,
                                  vector(h), 1e-12, keys, drop);
    expect_maxima(out, "bias_dropout_add_layernorm");
    tensor din = result();
    o->bias_dropout_add_layernorm_backward(&of.x, matrix(0), din, vector(h), vector(h), vector(h),
                                           matrix(one), sum, mean, rstd, gamma, keys, drop, false);
    expect_maxima(din, "bias_dropout_add_layernorm_backward");
    tensor ids = filled(arena_carve_1d(&of.arena, DTYPE_I32, n), 0), embedded = result();
    o->embed(&of.x, embedded, sum, mean, rstd, ids, ids, ids, matrix(0), matrix(0), matrix(0), gamma,
             vector(h), 1e-12, keys, drop);
    expect_maxima(embedded, "embed");
}

static void run_gelu(double one)
{
    const struct ops *o = of.b.ops;
    tensor out = result(), pre = matrix(0), dpre = result();
    tensor in = filled(arena_carve_2d(&of.arena, of.dtype, of.rows, 16), one);
    tensor w = filled(arena_carve_2d(&of.arena, of.dtype, of.cols, 16), 0);
    o->linear_gelu(&of.x, out, pre, in, w, vector(of.cols));
    expect_maxima(out, "linear_gelu");
    o->linear_gelu(&of.x, out, pre, in, w, NULL_TENSOR);
    expect_maxima(out, "linear_gelu without a bias");
    o->gelu_backward(&of.x, dpre, vector(of.cols), matrix(one), pre);
    expect_maxima(dpre, "gelu_backward");
}

/* The bytes of rounded rows, then the scale, on the host. */
static uint8_t *rounded(tensor in, tensor dbias, enum dtype format, bool in_fp8)
{
    tensor scale = arena_carve_1d(&of.arena, DTYPE_F32, 1), columns = NULL_TENSOR;
    tensor rows = arena_carve_2d(&of.arena, in_fp8 ? format : of.dtype, of.rows, of.cols);
    size_t bytes = tensor_bytes(rows);
    uint8_t *host = malloc(bytes + sizeof(float));
    if (in_fp8) {
        columns = tensor_transpose(arena_carve_2d(&of.arena, format, of.cols, of.rows));
        rows.scale = columns.scale = scale.data;
    }
    of.b.ops->quantize(&of.x, rows, columns, scale, NULL_TENSOR, dbias, in, format);
    exec_copy_out(&of.x, host, rows.data, bytes);
    exec_copy_out(&of.x, host + bytes, scale.data, sizeof(float));
    EXPECT_OK(of.x.status);
    return host;
}

/* By its maxima a tensor is rounded as by those that are found, with and without sums of its columns. */
static void run_quantize(enum dtype format, bool in_fp8)
{
    struct dropout none = {0};
    tensor in = result(), mean = vector(of.rows), sums[2];
    tensor plain = in, keys = filled(arena_carve_2d(&of.arena, DTYPE_I32, of.rows, 2), 0);
    size_t bytes = (size_t)(of.rows * of.cols) * dtype_bytes(in_fp8 ? format : of.dtype) + sizeof(float);
    of.b.ops->bias_dropout_add_layernorm(&of.x, in, matrix(0), mean, mean, matrix(0), vector(of.cols),
                                         matrix(0), vector(of.cols), vector(of.cols), 1e-12, keys, none);
    plain.has_maxima = false;
    for (int i = 0; i < 2; i++) {
        of.seed = 1;
        sums[i] = vector(of.cols);
    }
    uint8_t *found = rounded(plain, NULL_TENSOR, format, in_fp8),
            *noted = rounded(in, NULL_TENSOR, format, in_fp8),
            *found_and_summed = rounded(plain, sums[0], format, in_fp8),
            *noted_and_summed = rounded(in, sums[1], format, in_fp8);
    EXPECT(memcmp(noted, found, bytes) == 0, "noted maxima round otherwise than found ones");
    EXPECT(memcmp(found_and_summed, found, bytes) == 0, "maxima found with sums round otherwise");
    EXPECT(memcmp(noted_and_summed, found, bytes) == 0, "noted maxima with sums round otherwise");
    float *totals[2];
    for (int i = 0; i < 2; i++) {
        totals[i] = malloc(tensor_bytes(sums[i]));
        exec_copy_out(&of.x, totals[i], sums[i].data, tensor_bytes(sums[i]));
    }
    EXPECT(memcmp(totals[0], totals[1], tensor_bytes(sums[0])) == 0, "the sums of columns differ");
    uint32_t large = bits_of(1000);
    exec_copy_in(&of.x, tensor_maxima(in) + TENSOR_MAXIMA - 1, &large, sizeof large);
    uint8_t *under_large = rounded(in, NULL_TENSOR, format, in_fp8);
    float scale, wanted = fp8_scale(format, 1000);
    memcpy(&scale, under_large + bytes - sizeof scale, sizeof scale);
    EXPECT(scale == wanted, "under a noted 1000 the scale is %g, not %g", (double)scale, (double)wanted);
    uint8_t *all[] = {found, noted, found_and_summed, noted_and_summed, under_large};
    for (int i = 0; i < 5; i++) {
        free(all[i]);
    }
    free(totals[0]);
    free(totals[1]);
}

int test_cuda_maxima(void)
{
    static const int64_t shapes[][2] = {{1, 1},    {37, 1030}, {9, 1024}, {264, 1000},
                                        {32, 512}, {3, 2048},  {5, 4096}, {130, 8}};
    open_device("maxima");
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof shapes[0]; i++) {
        of.arena.used = 0;
        of.dtype = i % 2 == 0 ? DTYPE_BF16 : DTYPE_F32;
        of.rows = shapes[i / 2][0], of.cols = shapes[i / 2][1];
        run_norms(0);
        run_gelu(0);
        of.arena.used = 0;
        if (of.rows * of.cols < BIG) {
            run_norms(NAN);
            run_gelu(NAN);
            of.arena.used = 0;
        }
        run_quantize(DTYPE_E4M3, false);
        if (of.b.device->computes_in_fp8 && of.rows % 16 == 0 && of.cols % 16 == 0) {
            run_quantize(DTYPE_E5M2, true);
        }
    }
    close_device();
    return 0;
}
