/* What --autocast, --fp16, --fp8 and --tf32 come to, alone and together, on the cpu and on a device that
 * knows fp16. */
#include "test.h"

#include "dev/precision.h"

static const struct device host = {.name = "cpu", .is_host = true};
static const struct device gpu = {.name = "gpu", .computes_in_f16 = true};

static const struct device hopper = {.name = "gpu", .computes_in_f16 = true, .computes_in_fp8 = true};

static void expect_named(const char *name, struct precision_flags flags, const struct device *device)
{
    struct precision p;
    EXPECT_OK(precision_find(&p, &flags, device));
    EXPECT(strcmp(precision_name(p), name) == 0, "%s, not %s", precision_name(p), name);
    EXPECT(!p.allow_tf32 || p.dtype == DTYPE_F32, "only products of fp32 matrices are rounded");
}

int main(void)
{
    struct precision p;
    const struct precision_flags fp16 = {.fp16 = true}, both = {.fp16 = true, .autocast = true};
    expect_named("fp32", (struct precision_flags){0}, &host);
    expect_named("fp32", (struct precision_flags){.tf32 = true}, &host);
    expect_named("bf16", (struct precision_flags){.autocast = true, .tf32 = true}, &host);
    expect_named("fp32", (struct precision_flags){0}, &gpu);
    expect_named("tf32", (struct precision_flags){.tf32 = true}, &gpu);
    expect_named("bf16", (struct precision_flags){.autocast = true, .tf32 = true}, &gpu);
    expect_named("fp16", fp16, &gpu);
    expect_named("fp16", both, &gpu);
    expect_named("fp8", (struct precision_flags){.fp8 = true, .tf32 = true}, &gpu);
    expect_named("fp8", (struct precision_flags){.fp8 = true, .autocast = true}, &host);
    EXPECT_OK(precision_find(&p, &(struct precision_flags){.fp8 = true}, &host));
    EXPECT(p.dtype == DTYPE_BF16 && precision_factor(p, &host) == DTYPE_BF16, "the cpu keeps fp8 in bf16");
    EXPECT(precision_factor(p, &hopper) == DTYPE_E4M3, "products in fp8");
    EXPECT_ERROR(precision_find(&p, &(struct precision_flags){.fp8 = true, .fp16 = true}, &gpu), STATUS_USAGE,
                 "--fp8 cannot be combined with --fp16");
    EXPECT_ERROR(precision_find(&p, &both, &host), STATUS_USAGE, "--autocast without it computes in bf16");
    return 0;
}
