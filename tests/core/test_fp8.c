/* The two formats of fp8: every code against the table of the paper (arXiv:2209.05433, table 1), rounding
 * against a search for the nearest code, and scales at the edges of what fits. */
#include "test.h"

#include "core/fp8.h"
#include "core/rng.h"
#include "core/tensor.h"

static const enum dtype formats[] = {DTYPE_E4M3, DTYPE_E5M2};

static void test_published_codes(void)
{
    static const struct {
        enum dtype format;
        uint8_t code;
        double value;
    } codes[] = {
        {DTYPE_E4M3, 0x7e, 448},      {DTYPE_E4M3, 0x08, 0x1p-6},  {DTYPE_E4M3, 0x07, 0x1.cp-7},
        {DTYPE_E4M3, 0x01, 0x1p-9},   {DTYPE_E4M3, 0x38, 1},       {DTYPE_E4M3, 0xbc, -1.5},
        {DTYPE_E5M2, 0x7b, 57344},    {DTYPE_E5M2, 0x04, 0x1p-14}, {DTYPE_E5M2, 0x03, 0x1.8p-15},
        {DTYPE_E5M2, 0x01, 0x1p-16},  {DTYPE_E5M2, 0x3c, 1},       {DTYPE_E5M2, 0xbe, -1.5},
        {DTYPE_E5M2, 0x7c, INFINITY}, {DTYPE_E4M3, 0x00, 0},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        float value = fp8_to_f32(codes[i].format, codes[i].code);
        EXPECT((double)value == codes[i].value, "%s code %02x is %g, not %g", dtype_name(codes[i].format),
               codes[i].code, (double)value, codes[i].value);
    }
    EXPECT(isnan(fp8_to_f32(DTYPE_E4M3, 0x7f)) && isnan(fp8_to_f32(DTYPE_E4M3, 0xff)), "the NaNs of e4m3");
    for (int code = 0x7d; code <= 0x7f; code++) {
        EXPECT(isnan(fp8_to_f32(DTYPE_E5M2, (uint8_t)code)), "the NaNs of e5m2");
    }
}

/* Every finite code is what its value becomes. */
static void test_codes_return(enum dtype format)
{
    for (int code = 0; code < 256; code++) {
        float value = fp8_to_f32(format, (uint8_t)code);
        EXPECT(!isfinite(value) || fp8_from_f32(format, value) == code, "%s code %02x comes back as %02x",
               dtype_name(format), (unsigned)code, fp8_from_f32(format, value));
    }
    EXPECT(isnan(fp8_to_f32(format, fp8_from_f32(format, NAN))) && isnan(fp8_round(format, NAN)),
           "a NaN stays one");
}

/* The nearest code of the sign of v, the even one of two. */
static uint8_t nearest(enum dtype format, float v)
{
    int best = 0;
    for (int code = 0; code < 0x80; code++) {
        double distance = fabs((double)fabsf(v) - (double)fp8_to_f32(format, (uint8_t)code));
        double least = fabs((double)fabsf(v) - (double)fp8_to_f32(format, (uint8_t)best));
        best = distance < least || (distance == least && code % 2 == 0) ? code : best;
    }
    return (uint8_t)(best | (signbit(v) ? 0x80 : 0));
}

static void expect_nearest(enum dtype format, float v)
{
    uint8_t code = nearest(format, v);
    EXPECT(fp8_from_f32(format, v) == code, "%g becomes code %02x of %s, not %02x", (double)v,
           fp8_from_f32(format, v), dtype_name(format), code);
    EXPECT(fp8_round(format, v) == fp8_to_f32(format, code), "%g is rounded to %g in %s, not to %g",
           (double)v, (double)fp8_round(format, v), dtype_name(format), (double)fp8_to_f32(format, code));
}

static void test_rounding(enum dtype format)
{
    for (int code = 0; code < 0x7b; code++) { /* codes, the middles between them, and just beside those */
        float a = fp8_to_f32(format, (uint8_t)code), b = fp8_to_f32(format, (uint8_t)(code + 1));
        float middle = 0.5F * (a + b);
        const float values[] = {a, -a, middle, -middle, nextafterf(middle, a), nextafterf(middle, b)};
        for (int i = 0; i < 6; i++) {
            expect_nearest(format, values[i]);
        }
    }
    for (uint64_t i = 0; i < 20000; i++) {
        double z = rng_normal(7, i);
        expect_nearest(format, (float)ldexp(z, (int)(i % 30) - 20));
    }
    float largest = 1.75F * (float)(1 << fp8_format_of(format).margin);
    EXPECT(fp8_round(format, 3 * largest) == largest && fp8_round(format, -INFINITY) == -largest,
           "saturation");
}

static void test_scales(enum dtype format)
{
    float largest = 1.75F * (float)(1 << fp8_format_of(format).margin);
    EXPECT(fp8_scale(format, largest) == 1, "the largest number needs no scale");
    EXPECT(fp8_scale(format, nextafterf(largest, INFINITY)) == 2, "more than the largest is halved");
    EXPECT(fp8_scale(format, largest / 2) == 0.5F, "half of it is doubled");
    EXPECT(fp8_scale(format, 0) == 0x1p-100F && fp8_scale(format, 0x1p-140F) == 0x1p-100F, "the least scale");
    EXPECT(isnan(fp8_scale(format, INFINITY)) && isnan(fp8_scale(format, NAN)),
           "what is not finite has none");
    for (uint64_t i = 0; i < 1000; i++) {
        float v = (float)ldexp(0.5 + 0.5 * rng_uniform_at(3, i), (int)(i % 150) - 75),
              s = fp8_scale(format, v);
        EXPECT(v <= s * largest && v > 0.5F * s * largest, "%g has the scale %g", (double)v, (double)s);
    }
}

/* Under the scale of the step before, with room for twice its largest, as long as that holds what there is
 * now. */
static void test_scales_after(enum dtype format)
{
    float largest = 1.75F * (float)(1 << fp8_format_of(format).margin);
    for (int e = -60; e <= 60; e += 20) {
        float before = ldexpf(largest, e), most = 2 * before, more = nextafterf(most, INFINITY);
        EXPECT(fp8_scale_after(format, before, before) == ldexpf(2, e), "room for as much");
        EXPECT(fp8_scale_after(format, before, 0x1p-90F) == ldexpf(2, e), "room for little");
        EXPECT(fp8_scale_after(format, before, most) == ldexpf(2, e), "room for twice as much");
        EXPECT(fp8_scale_after(format, before, more) == fp8_scale(format, more), "no room for more");
    }
    const float nothing[] = {0, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        EXPECT(fp8_scale_after(format, nothing[i], 3) == fp8_scale(format, 3), "nothing is known of %g",
               (double)nothing[i]);
    }
    EXPECT(isnan(fp8_scale_after(format, 1, NAN)) && isnan(fp8_scale_after(format, 1, INFINITY)) &&
               isnan(fp8_scale_after(format, 0x1.fp127F, INFINITY)),
           "what is not finite has none");
    EXPECT(fp8_scale_after(format, 0x1.fp127F, 0x1.fp127F) == 2 * fp8_scale(format, 0x1.fp127F), "all fits");
}

/* A tensor of fp8 is read and written under its scale. */
static void test_tensor(void)
{
    uint8_t codes[6] = {0};
    float scale = 0.25F;
    tensor t = tensor_transpose(tensor_2d(codes, DTYPE_E4M3, 3, 2));
    t.scale = &scale;
    tensor_set(t, 1, -3.0); /* row 0, column 1: behind the two elements of column 0 */
    EXPECT(codes[2] == fp8_from_f32(DTYPE_E4M3, -12) && tensor_get(t, 1) == -3.0, "a scaled element");
    EXPECT(t.dims[0] == 2 && t.dims[1] == 3 && tensor_bytes(t) == 6, "a transposed matrix");
}

int main(void)
{
    test_published_codes();
    for (int i = 0; i < 2; i++) {
        test_codes_return(formats[i]);
        test_rounding(formats[i]);
        test_scales(formats[i]);
        test_scales_after(formats[i]);
    }
    test_tensor();
    return 0;
}
