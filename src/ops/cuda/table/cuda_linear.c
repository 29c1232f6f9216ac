#include "ops/cuda/table/cuda_slots.h"

#include "core/fp8.h"
#include "ops/accept.h"
#include "ops/cuda/table/cuda_context.h"
#include "ops/cuda/table/cuda_products.h"
#include "ops/cuda/table/cuda_rounding.h"
#include "ops/cuda/kernels/launch.h"
#include "ops/cuda/choice/product_forms.h"

/* A product may also launch kernels of ours before and after it. */
static void run(struct exec *x, const char *op, const struct cuda_product *p)
{
    cuda_product_run(x, op, p);
    const char *error = cuda_launch_error();
    if (error != NULL) {
        exec_fail(x, STATUS_INTERNAL, op, "the kernel was not launched: %s", error);
    }
}

static int64_t row_stride(tensor t)
{
    return t.n_dims > 1 ? t.strides[t.n_dims - 2] : tensor_cols(t);
}

/* A matrix stored by columns, as its transpose stored by rows. */
static tensor stored(tensor t, bool by_columns)
{
    return by_columns ? tensor_transpose(t) : t;
}

/* c = a b of matrices as they are stored, a [m, k] or [k, m] and b [k, n] or [n, k]. */
static struct cuda_product product_of(const struct exec *x, tensor c, tensor a, bool a_transposed, tensor b,
                                      bool b_transposed)
{
    return (struct cuda_product){.m = a_transposed ? tensor_cols(a) : tensor_rows(a),
                                 .n = b_transposed ? tensor_rows(b) : tensor_cols(b),
                                 .k = a_transposed ? tensor_rows(a) : tensor_cols(a),
                                 .c = c.data,
                                 .a = a.data,
                                 .b = b.data,
                                 .c_stride = row_stride(c),
                                 .a_stride = row_stride(a),
                                 .b_stride = row_stride(b),
                                 .c_dtype = c.dtype,
                                 .a_dtype = a.dtype,
                                 .b_dtype = b.dtype,
                                 .a_scale = a.scale,
                                 .b_scale = b.scale,
                                 .a_transposed = a_transposed,
                                 .b_transposed = b_transposed,
                                 .tf32 = x->allow_tf32};
}

/* Accepts a bias in fp32 or in the dtype of the result. */
static bool accept_bias(struct exec *x, const char *op, tensor out, tensor bias)
{
    return bias.dtype == out.dtype ? accept_tensors(x, op, ACCEPT_LIST(out, bias), NULL, 0)
                                   : accept_tensors(x, op, ACCEPT_LIST(out), ACCEPT_LIST(bias));
}

void cuda_linear(struct exec *x, tensor out, tensor in, tensor w, tensor bias)
{
    bool accepted = dtype_is_fp8(in.dtype) ? accept_fp8(x, "linear", ACCEPT_LIST(in, w))
                                           : accept_tensors(x, "linear", ACCEPT_LIST(in, w), NULL, 0);
    if (accepted && accept_bias(x, "linear", out, bias)) {
        struct cuda_product p = product_of(x, out, in, false, w, true);
        p.bias = bias.data;
        p.bias_dtype = bias.dtype;
        run(x, "linear", &p);
    }
}

static void round_gelu(struct exec *x, const struct launch_rounding *to, tensor pre)
{
    struct launch l = ((struct cuda_context *)x->context)->launch;
    cuda_launch_gelu_rounded(&l, to, pre.data, product_launch_type(pre.dtype), tensor_rows(pre),
                             tensor_cols(pre));
    const char *error = cuda_launch_error();
    if (error != NULL) {
        exec_fail(x, STATUS_INTERNAL, "linear_gelu", "the kernel was not launched: %s", error);
    }
}

void cuda_linear_gelu(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias)
{
    bool fp8 = dtype_is_fp8(in.dtype);
    const struct launch_rounding *to;
    struct launch_rounding storage;
    pre = tensor_is_null(pre) ? out : pre;
    if (accept_tensors(x, "linear_gelu", ACCEPT_LIST(out, pre, fp8 ? pre : in, fp8 ? pre : w), NULL, 0) &&
        accept_bias(x, "linear_gelu", pre, bias) &&
        (!fp8 || accept_fp8(x, "linear_gelu", ACCEPT_LIST(in, w))) &&
        cuda_rounding_of_result(&to, &storage, x, "linear_gelu", out, ACCEPT_LIST(pre), DTYPE_E4M3)) {
        struct cuda_product p = product_of(x, pre, in, false, w, true);
        p.bias = bias.data;
        p.bias_dtype = bias.dtype;
        p.gelu = to == NULL ? out.data : NULL;
        p.gelu_maxima = tensor_maxima(out);
        run(x, "linear_gelu", &p);
        if (to != NULL && !failed(x->status)) {
            round_gelu(x, to, pre);
        }
    }
}

void cuda_linear_backward_input(struct exec *x, tensor din, tensor dout, tensor w, bool accumulate)
{
    const char *op = "linear_backward_input";
    bool fp8 = dtype_is_fp8(dout.dtype);
    tensor factor = stored(w, fp8);
    if (fp8 ? accept_fp8(x, op, ACCEPT_LIST(dout, factor)) && accept_tensors(x, op, ACCEPT_LIST(din), NULL, 0)
            : accept_tensors(x, op, ACCEPT_LIST(din, dout, w), NULL, 0)) {
        struct cuda_product p = product_of(x, din, dout, false, factor, fp8);
        p.accumulate = accumulate;
        run(x, op, &p);
    }
}

void cuda_linear_backward_weight(struct exec *x, tensor dw, tensor dbias, tensor dout, tensor in,
                                 bool accumulate)
{
    const char *op = "linear_backward_weight";
    bool fp8 = dtype_is_fp8(dout.dtype);
    tensor a = stored(dout, fp8), b = stored(in, fp8);
    if (fp8 && !tensor_is_null(dbias)) {
        exec_fail(x, STATUS_USAGE, op, "quantize must sum the gradient of the bias before it rounds");
    }
    if (!(fp8 ? accept_fp8(x, op, ACCEPT_LIST(a, b)) && accept_tensors(x, op, ACCEPT_LIST(dw), NULL, 0)
              : accept_tensors(x, op, ACCEPT_LIST(dout, in), ACCEPT_LIST(dw, dbias)))) {
        return;
    }
    if (tensor_rows(dout) == 0) {
        if (!accumulate) {
            x->ops->fill(x, dw, 0);
        }
        return;
    }
    struct cuda_product p = product_of(x, dw, a, !fp8, b, fp8);
    p.accumulate = accumulate;
    p.bias_gradient = dbias.data;
    run(x, op, &p);
}
