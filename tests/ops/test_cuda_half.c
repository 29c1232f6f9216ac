/* Conversions between fp32 and fp16: those of core/dtype by the definition, and those of the cuda table like
 * them: every pattern of fp16, and every tie with its neighbours. */
#include "checkop_backend.h"
#include "gpu_tests.h"
#include "test.h"

enum { PATTERNS = 1 << 16, SIGN = 0x8000, INFINITE = 0x7c00, AROUND = 4, VALUES = 2 * AROUND * INFINITE + 3 };

static bool is_nan(uint16_t bits)
{
    return (bits & ~SIGN) > INFINITE;
}

/* The value of a finite pattern without sign; of INFINITE, what it would be with one more exponent. */
static float value_of(int bits)
{
    int exponent = bits >> 10, fraction = bits & 0x3ff;
    return (float)(exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25));
}

/* Each finite value and its tie with the next one, just below the tie and just above, in both signs; then
 * what is not finite. */
static void fill_values(float *values, uint16_t *wanted)
{
    int n = 0;
    for (int bits = 0; bits < INFINITE; bits++) {
        float tie = (value_of(bits) + value_of(bits + 1)) / 2;
        const float around[AROUND] = {value_of(bits), nextafterf(tie, 0), tie, nextafterf(tie, INFINITY)};
        const int rounded[AROUND] = {bits, bits, bits + bits % 2, bits + 1};
        for (int i = 0; i < 2 * AROUND; i++, n++) {
            values[n] = i < AROUND ? around[i] : -around[i - AROUND];
            wanted[n] = (uint16_t)(i < AROUND ? rounded[i] : rounded[i - AROUND] | SIGN);
        }
    }
    const float others[] = {INFINITY, -INFINITY, NAN};
    const uint16_t patterns[] = {INFINITE, INFINITE | SIGN, INFINITE | 1};
    memcpy(values + n, others, sizeof others);
    memcpy(wanted + n, patterns, sizeof patterns);
}

static void expect_patterns(const uint16_t *got, const uint16_t *wanted, const float *values, const char *who)
{
    for (int i = 0; i < VALUES; i++) {
        EXPECT(got[i] == wanted[i] || (is_nan(got[i]) && is_nan(wanted[i])),
               "%.9g is %04x in fp16, but %04x by %s", (double)values[i], wanted[i], got[i], who);
    }
}

static void expect_values(const float *got, const char *who)
{
    for (int bits = 0; bits < PATTERNS; bits++) {
        float magnitude = (bits & ~SIGN) == INFINITE ? INFINITY : value_of(bits & ~SIGN);
        float wanted = (bits & SIGN) != 0 ? -magnitude : magnitude;
        bool same = is_nan((uint16_t)bits) ? isnan(got[bits])
                                           : got[bits] == wanted && signbit(got[bits]) == signbit(wanted);
        EXPECT(same, "%04x is %.9g, but %.9g by %s", bits, (double)wanted, (double)got[bits], who);
    }
}

/* `out` = `in` on a device, both 1-D in host memory. */
static void cast_on(struct checkop_backend b, tensor out, tensor in)
{
    struct exec x = {.device = b.device, .ops = b.ops, .layer = "half", .layer_index = -1};
    tensor out_there = out, in_there = in;
    EXPECT_OK(b.device->open(&x.context));
    EXPECT_OK(b.device->allocate(&out_there.data, tensor_bytes(out), "out"));
    EXPECT_OK(b.device->allocate(&in_there.data, tensor_bytes(in), "in"));
    exec_copy_in(&x, in_there.data, in.data, tensor_bytes(in));
    b.ops->cast(&x, out_there, in_there);
    exec_copy_out(&x, out.data, out_there.data, tensor_bytes(out));
    EXPECT_OK(x.status);
    b.device->release(out_there.data, tensor_bytes(out));
    b.device->release(in_there.data, tensor_bytes(in));
    b.device->close(x.context);
}

static float values[VALUES], widened[PATTERNS];
static uint16_t wanted[VALUES], rounded[VALUES], patterns[PATTERNS];

int test_cuda_half(void)
{
    fill_values(values, wanted);
    for (int i = 0; i < VALUES; i++) {
        rounded[i] = f16_from_f32(values[i]);
    }
    for (int bits = 0; bits < PATTERNS; bits++) {
        patterns[bits] = (uint16_t)bits;
        widened[bits] = f16_to_f32((uint16_t)bits);
    }
    expect_patterns(rounded, wanted, values, "core/dtype");
    expect_values(widened, "core/dtype");

    struct checkop_backend b = checkop_find_backend("cuda");
    memset(rounded, 0, sizeof rounded);
    memset(widened, 0, sizeof widened);
    cast_on(b, tensor_1d(rounded, DTYPE_F16, VALUES), tensor_1d(values, DTYPE_F32, VALUES));
    cast_on(b, tensor_1d(widened, DTYPE_F32, PATTERNS), tensor_1d(patterns, DTYPE_F16, PATTERNS));
    expect_patterns(rounded, wanted, values, b.device->name);
    expect_values(widened, b.device->name);
    return 0;
}
