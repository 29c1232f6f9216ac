/* What the cpu table refuses, and the corners of conversions that checkop's random numbers never meet. */
#include "ops/ops.h"
#include "test.h"

static struct exec exec_new(void)
{
    return (struct exec){.device = &device_cpu, .ops = ops_cpu(), .layer = "layer", .layer_index = 3};
}

static void test_dtypes(void)
{
    double v[4] = {1, 2, 3, 4};
    tensor t = tensor_2d(v, DTYPE_F64, 2, 2);
    struct exec x = exec_new();
    ops_cpu()->linear(&x, t, t, t, NULL_TENSOR);
    EXPECT_ERROR(x.status, STATUS_USAGE,
                 "linear in layer 3 on cpu: the device computes in fp32 and bf16, not in fp64");
    x = exec_new();
    uint16_t h[4] = {0};
    ops_cpu()->tanh(&x, tensor_2d(h, DTYPE_F16, 2, 2), tensor_2d(h, DTYPE_F16, 2, 2));
    EXPECT_ERROR(x.status, STATUS_USAGE, "fp16");
    x = exec_new();
    float f[4] = {0};
    ops_cpu()->tanh(&x, tensor_2d(f, DTYPE_F32, 2, 2), tensor_2d(h, DTYPE_BF16, 2, 2));
    EXPECT_ERROR(x.status, STATUS_USAGE, "matrix 1 must be fp32");
}

static void test_indices(void)
{
    float in[6] = {1, 2, 3, 4, 5, 6}, out[4] = {0};
    int32_t rows[2] = {2, 3};
    struct exec x = exec_new();
    ops_cpu()->gather_rows(&x, tensor_2d(out, DTYPE_F32, 2, 2), tensor_2d(in, DTYPE_F32, 3, 2),
                           tensor_1d(rows, DTYPE_I32, 2));
    EXPECT_ERROR(x.status, STATUS_DATA, "row 3 at row 1 is outside of [0, 3)");
    EXPECT(out[0] == 0, "a refused op wrote");
    rows[1] = 0; /* now right, but the failure sticks */
    ops_cpu()->gather_rows(&x, tensor_2d(out, DTYPE_F32, 2, 2), tensor_2d(in, DTYPE_F32, 3, 2),
                           tensor_1d(rows, DTYPE_I32, 2));
    EXPECT(out[0] == 0, "an op ran after a failure");
    rows[0] = 1, rows[1] = 12; /* of a table of 12 rows, of which 3 are here */
    x = exec_new();
    ops_cpu()->gather_slice(&x, tensor_2d(out, DTYPE_F32, 2, 2), tensor_2d(in, DTYPE_F32, 3, 2),
                            tensor_1d(rows, DTYPE_I32, 2), 4, 12);
    EXPECT_ERROR(x.status, STATUS_DATA, "row 12 at row 1 is outside of [0, 12)");
    x = exec_new();
    ops_cpu()->scatter_add_slice(&x, tensor_2d(in, DTYPE_F32, 3, 2), tensor_2d(out, DTYPE_F32, 2, 2),
                                 tensor_1d(rows, DTYPE_I32, 2), 4, 12);
    EXPECT_ERROR(x.status, STATUS_DATA, "row 12 at row 1 is outside of [0, 12)");
    float logits[4] = {0}, loss[1];
    double scale = 1;
    int32_t correct[1], label = 2;
    x = exec_new();
    ops_cpu()->cross_entropy(&x, tensor_1d(loss, DTYPE_F32, 1), tensor_1d(correct, DTYPE_I32, 1), NULL_TENSOR,
                             tensor_2d(logits, DTYPE_F32, 1, 4), tensor_1d(&label, DTYPE_I32, 1), 2,
                             tensor_1d(&scale, DTYPE_F64, 1));
    EXPECT_ERROR(x.status, STATUS_DATA, "label 2");
    double sums[3];
    label = 12;
    x = exec_new();
    ops_cpu()->slice_sums(&x, tensor_2d(sums, DTYPE_F64, 1, 3), tensor_2d(logits, DTYPE_F32, 1, 4),
                          tensor_1d(loss, DTYPE_F32, 1), tensor_1d(&label, DTYPE_I32, 1), 4, 12);
    EXPECT_ERROR(x.status, STATUS_DATA, "label 12 at row 0 is outside of [-1, 12)");
}

static struct status run_attention(int32_t q_end, int32_t middle, double scale, bool paged)
{
    float q[8] = {0}, out[8], lse[2];
    int32_t cu_q[3] = {0, middle, q_end}, cu_kv[3] = {0, 1, 2}, keys[4] = {0}, table[1] = {0};
    struct attention a = {.cu_seqlens_q = tensor_1d(cu_q, DTYPE_I32, 3),
                          .cu_seqlens_kv = tensor_1d(cu_kv, DTYPE_I32, 3),
                          .max_seqlen_q = 1,
                          .max_seqlen_kv = 1,
                          .scale = scale,
                          .row_keys = tensor_2d(keys, DTYPE_I32, 2, 2)};
    a.block_table = paged ? tensor_1d(table, DTYPE_I32, 1) : NULL_TENSOR;
    tensor t = tensor_3d(q, DTYPE_F32, 2, 1, 4);
    struct exec x = exec_new();
    ops_cpu()->attention(&x, tensor_3d(out, DTYPE_F32, 2, 1, 4), tensor_2d(lse, DTYPE_F32, 2, 1), t, t, t, a);
    return x.status;
}

static void test_attention(void)
{
    EXPECT_OK(run_attention(2, 1, 0.5, false));
    EXPECT_ERROR(run_attention(3, 1, 0.5, false), STATUS_DATA, "query boundary 3");
    EXPECT_ERROR(run_attention(1, 2, 0.5, false), STATUS_DATA, "sequence 1 ends before it begins");
    EXPECT_ERROR(run_attention(2, 1, 0.0, false), STATUS_USAGE, "scale");
    EXPECT_ERROR(run_attention(2, 1, 0.5, true), STATUS_USAGE, "block table");
}

/* Bit for bit what bf16_from_f32 gives: ties, overflow to infinity, NaN, subnormals. */
static void test_cast(void)
{
    float in[12] = {1.0f, 1.00390625f, 1.01171875f, -1.00390625f, 3.4028235e38f, INFINITY,
                    NAN,  1e-40f,      -0.0f,       0x1p-133f,    65504.0f,      -INFINITY};
    uint16_t out[12];
    float back[12];
    struct exec x = exec_new();
    ops_cpu()->cast(&x, tensor_1d(out, DTYPE_BF16, 12), tensor_1d(in, DTYPE_F32, 12));
    ops_cpu()->cast(&x, tensor_1d(back, DTYPE_F32, 12), tensor_1d(out, DTYPE_BF16, 12));
    EXPECT_OK(x.status);
    for (int i = 0; i < 12; i++) {
        EXPECT(out[i] == bf16_from_f32(in[i]), "%g became %04x", (double)in[i], out[i]);
        EXPECT(isnan(back[i]) ? isnan(in[i]) : back[i] == bf16_to_f32(out[i]), "%04x became %g", out[i],
               (double)back[i]);
    }
    EXPECT(isinf(back[4]) && isnan(back[6]) && back[1] == 1.0f && back[2] == 1.015625f, "rounded wrongly");
}

/* A tensor longer than one item of work; the first hole counts, whichever thread finds another one
 * earlier. */
static void test_find_nonfinite(void)
{
    enum { N = 50000 };
    float *v = calloc(N, sizeof *v);
    EXPECT(v != NULL, "no memory");
    int64_t index = 7;
    struct exec x = exec_new();
    ops_cpu()->find_nonfinite(&x, tensor_1d(&index, DTYPE_I64, 1), tensor_2d(v, DTYPE_F32, 50, 1000));
    EXPECT(index == -1, "found %lld in zeros", (long long)index);
    v[49999] = NAN;
    v[30001] = -INFINITY;
    v[30002] = NAN;
    ops_cpu()->find_nonfinite(&x, tensor_1d(&index, DTYPE_I64, 1), tensor_2d(v, DTYPE_F32, 50, 1000));
    EXPECT(index == 30001, "found %lld", (long long)index);
    EXPECT_OK(x.status);
    free(v);
}

int main(void)
{
    test_dtypes();
    test_indices();
    test_attention();
    test_cast();
    test_find_nonfinite();
    return 0;
}
