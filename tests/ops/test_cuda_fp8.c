/* Rounding to fp8: that of core/fp8 by the definition, and that of the cuda table like it: every number of
 * both formats and every tie with its neighbours, by rows and by columns, under several scales. */
#include "checkop_backend.h"
#include "core/fp8.h"
#include "gpu_tests.h"
#include "test.h"

enum { SIDE = 32, VALUES = SIDE * SIDE, SIGN = 0x80, AROUND = 4 };

/* Values of a tensor on the device, and what became of them. */
static struct {
    float values[VALUES], scale;
    uint8_t wanted[VALUES], rows[VALUES], columns[VALUES];
} of;

/* Codes without sign up to this are numbers. */
static int last_number(enum dtype format)
{
    return format == DTYPE_E4M3 ? 0x7e : 0x7b;
}

static bool is_nan(enum dtype format, uint8_t code)
{
    return format == DTYPE_E4M3 ? (code & ~SIGN) == 0x7f : (code & ~SIGN) > 0x7c;
}

/* The number of a code without sign: table 1 of arXiv:2209.05433. */
static float value_of(enum dtype format, int code)
{
    int bits = format == DTYPE_E4M3 ? 3 : 2, bias = format == DTYPE_E4M3 ? 7 : 15;
    int exponent = code >> bits, fraction = code & ((1 << bits) - 1);
    return exponent == 0 ? ldexpf((float)fraction, 1 - bias - bits)
                         : ldexpf((float)((1 << bits) + fraction), exponent - bias - bits);
}

/* Each number, and its tie with the next one, just below the tie and just above, in both signs; then
 * zeros. */
static void fill_values(enum dtype format, float scale)
{
    int n = 0, last = last_number(format);
    memset(&of, 0, sizeof of);
    for (int code = 0; code <= last; code++) {
        float value = value_of(format, code), tie = (value + value_of(format, code + (code < last))) / 2;
        const float around[AROUND] = {value, nextafterf(tie, 0), tie, nextafterf(tie, INFINITY)};
        const int rounded[AROUND] = {code, code, code + code % 2, code + 1};
        for (int i = 0; i < (code < last ? AROUND : 1); i++, n += 2) {
            of.values[n] = scale * around[i];
            of.values[n + 1] = -of.values[n];
            of.wanted[n] = (uint8_t)rounded[i];
            of.wanted[n + 1] = (uint8_t)(rounded[i] | SIGN);
        }
    }
    EXPECT(n <= VALUES, "%d values", n);
}

static void expect_codes(enum dtype format, const char *who)
{
    for (int i = 0; i < VALUES; i++) {
        uint8_t row = of.rows[i], column = of.columns[i % SIDE * SIDE + i / SIDE];
        bool same = is_nan(format, of.wanted[i]) ? is_nan(format, row) : row == of.wanted[i];
        EXPECT(same && row == column, "%.9g under %g is %02x in %s, but %02x, by columns %02x, by %s",
               (double)of.values[i], (double)of.scale, of.wanted[i], dtype_name(format), row, column, who);
    }
}

static void round_here(enum dtype format)
{
    float largest = 0;
    for (int i = 0; i < VALUES; i++) {
        largest = fabsf(of.values[i]) > largest || isnan(of.values[i]) ? fabsf(of.values[i]) : largest;
    }
    of.scale = fp8_scale(format, largest);
    for (int i = 0; i < VALUES; i++) {
        of.rows[i] = of.columns[i % SIDE * SIDE + i / SIDE] = fp8_from_f32(format, of.values[i] / of.scale);
    }
}

static void round_on(struct checkop_backend b, enum dtype format)
{
    void *in, *rows, *columns, *scale, *scratch;
    struct exec x = {
        .device = b.device, .ops = b.ops, .layer = "fp8", .layer_index = -1, .workspace_bytes = 1 << 16};
    EXPECT_OK(b.device->open(&x.context));
    EXPECT_OK(b.device->allocate(&in, sizeof of.values, "in"));
    EXPECT_OK(b.device->allocate(&rows, VALUES, "rows"));
    EXPECT_OK(b.device->allocate(&columns, VALUES, "columns"));
    EXPECT_OK(b.device->allocate(&scale, sizeof of.scale, "scale"));
    EXPECT_OK(b.device->allocate(&scratch, x.workspace_bytes, "scratch"));
    x.workspace = scratch;
    exec_copy_in(&x, in, of.values, sizeof of.values);
    tensor by_rows = tensor_2d(rows, format, SIDE, SIDE), by_columns = tensor_2d(columns, format, SIDE, SIDE);
    by_rows.scale = by_columns.scale = scale;
    b.ops->quantize(&x, by_rows, tensor_transpose(by_columns), tensor_1d(scale, DTYPE_F32, 1), NULL_TENSOR,
                    NULL_TENSOR, tensor_2d(in, DTYPE_F32, SIDE, SIDE), format);
    exec_copy_out(&x, of.rows, rows, VALUES);
    exec_copy_out(&x, of.columns, columns, VALUES);
    exec_copy_out(&x, &of.scale, scale, sizeof of.scale);
    EXPECT_OK(x.status);
    b.device->release(in, sizeof of.values);
    b.device->release(rows, VALUES);
    b.device->release(columns, VALUES);
    b.device->release(scale, sizeof of.scale);
    b.device->release(scratch, x.workspace_bytes);
    b.device->close(x.context);
}

static void expect_rounding(struct checkop_backend b, enum dtype format)
{
    const float scales[] = {1, 0x1p-40F, 0x1p+60F};
    for (int i = 0; i < 3; i++) {
        fill_values(format, scales[i]);
        round_here(format);
        expect_codes(format, "core/fp8");
        round_on(b, format);
        EXPECT(of.scale == scales[i], "a scale of %g, not %g", (double)of.scale, (double)scales[i]);
        expect_codes(format, b.device->name);
    }
    fill_values(format, 0);
    for (int i = 0; i < VALUES; i++) {
        of.wanted[i] = signbit(of.values[i]) ? SIGN : 0;
    }
    round_on(b, format);
    EXPECT(of.scale == 0x1p-100F, "the scale of zeros is %g", (double)of.scale);
    expect_codes(format, b.device->name);
    fill_values(format, 1);
    of.values[VALUES / 2] = -INFINITY;
    memset(of.wanted, 0x7f, sizeof of.wanted);
    round_on(b, format);
    EXPECT(isnan(of.scale), "the scale of an infinity is %g", (double)of.scale);
    expect_codes(format, b.device->name);
}

enum refusal { SMALL, MIXED, LAYOUT, MISALIGNED, BIAS, NO_DEVICE };

static struct status refuse(struct checkop_backend b, enum refusal refusal)
{
    struct device plain = *b.device;
    plain.computes_in_fp8 = false;
    struct exec x = {
        .device = refusal == NO_DEVICE ? &plain : b.device, .ops = b.ops, .layer = "fp8", .layer_index = -1};
    tensor in = tensor_2d(NULL, DTYPE_E4M3, SIDE, refusal == SMALL ? 24 : SIDE), w = in;
    w.dtype = refusal == MIXED ? DTYPE_BF16 : DTYPE_E4M3;
    w = refusal == LAYOUT ? tensor_transpose(w) : w;
    in.strides[0] += refusal == MISALIGNED ? 8 : 0;
    if (refusal == BIAS) {
        tensor dout = in;
        dout.dtype = DTYPE_E5M2;
        b.ops->linear_backward_weight(&x, tensor_2d(NULL, DTYPE_F32, SIDE, SIDE),
                                      tensor_1d(NULL, DTYPE_F32, SIDE), tensor_transpose(dout),
                                      tensor_transpose(in), true);
    } else {
        b.ops->linear(&x, tensor_2d(NULL, DTYPE_BF16, SIDE, SIDE), in, w, NULL_TENSOR);
    }
    return x.status;
}

int test_cuda_fp8(void)
{
    struct checkop_backend b = checkop_find_backend("cuda");
    if (!b.device->computes_in_fp8) {
        test_skip("fp8", "this GPU does not compute in fp8; one of compute capability 8.9 or higher does");
    }
    expect_rounding(b, DTYPE_E4M3);
    expect_rounding(b, DTYPE_E5M2);
    EXPECT_ERROR(refuse(b, SMALL), STATUS_USAGE, "multiples of 16, but are 32 x 24");
    EXPECT_ERROR(refuse(b, MIXED), STATUS_USAGE, "fp8 matrix 1 must be fp8 with 2 dims, but is bf16");
    EXPECT_ERROR(refuse(b, LAYOUT), STATUS_USAGE, "by columns where the product needs rows");
    EXPECT_ERROR(refuse(b, MISALIGNED), STATUS_USAGE, "must begin at multiples of 16 bytes");
    EXPECT_ERROR(refuse(b, BIAS), STATUS_USAGE, "quantize must sum the gradient of the bias");
    EXPECT_ERROR(refuse(b, NO_DEVICE), STATUS_USAGE, "does not compute in fp8");
    return 0;
}
