/* An op takes as long as its FLOPs or its bytes, whichever is longer, and ops take their sum. */
#include "test.h"

#include "dev/exec.h"
#include "ops/machines.h"
#include "ops/roofline.h"

enum { M = 256, N = 128, K = 64 };

static void test_ops(void)
{
    static struct roofline r;
    struct exec x = {.device = &device_cpu, .ops = &r.watch.table, .layer_index = -1};
    tensor out = tensor_2d(NULL, DTYPE_BF16, M, N), in = tensor_2d(NULL, DTYPE_BF16, M, K),
           weight = tensor_2d(NULL, DTYPE_BF16, N, K);
    double flops = 2.0 * M * N * K, bytes = 2.0 * (M * N + M * K + N * K);
    roofline_init(&r, 1e9, 1e12);
    r.watch.table.linear(&x, out, in, weight, NULL_TENSOR);
    EXPECT_NEAR(roofline_seconds(&r), flops / 1e9, 1e-12);
    EXPECT_NEAR(r.product_seconds, roofline_seconds(&r), 0);
    roofline_init(&r, 1e12, 1e6);
    r.watch.table.linear(&x, out, in, weight, NULL_TENSOR);
    EXPECT_NEAR(roofline_seconds(&r), bytes / 1e6, 1e-12);
    EXPECT_NEAR(r.product_seconds, 0, 0);
    r.watch.table.fill(&x, out, 0);
    EXPECT_NEAR(roofline_seconds(&r), (bytes + 2.0 * M * N) / 1e6, 1e-12);
    EXPECT_OK(x.status);
    r.watch.table.linear(&x, out, weight, in, NULL_TENSOR);
    EXPECT(failed(x.status), "shapes that do not fit are not refused");
}

static void test_machines(void)
{
    const struct machine *m;
    EXPECT_ERROR(machine_find(&m, "abacus"), STATUS_USAGE, "only h200, h100, a100, gaudi1, cpu");
    EXPECT_OK(machine_find(&m, "cpu"));
    EXPECT(machine_device(m).is_host, "the cpu is not the host");
    EXPECT_OK(machine_find(&m, "gaudi1"));
    struct device d = machine_device(m);
    EXPECT(!d.is_host && !d.computes_in_f16 && !d.computes_in_fp8 && d.overhead_bytes > 0,
           "the Gaudi's abilities");
    EXPECT_OK(machine_find(&m, "h100"));
    double copy = m->rates.copy;
    EXPECT_OK(machine_find(&m, "h200"));
    EXPECT_NEAR(copy / m->rates.copy, 3.35 / 4.8, 1e-12);
    EXPECT_NEAR(machine_product_rate(&m->rates, (struct precision){.dtype = DTYPE_BF16, .fp8 = true}),
                m->rates.fp8, 0);
    EXPECT_NEAR(machine_product_rate(&m->rates, (struct precision){.dtype = DTYPE_F32, .allow_tf32 = true}),
                m->rates.tf32, 0);
}

int main(void)
{
    test_ops();
    test_machines();
    printf("test_roofline: ops take the longer of two times\n");
    return 0;
}
