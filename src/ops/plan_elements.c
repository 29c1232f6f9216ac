/* plan_elements: the plan of the ops on elements and of products (ops/plan.c). */
#include "ops/plan_slots.h"

#include "core/fp8.h"
#include "ops/plan_wants.h"
#include "ops/workspace.h"

/* The dtype of the gradient to a factor, of the factor to a gradient, and of the result; only fp8
 * distinguishes them. */
static int of_gradient(enum dtype t)
{
    return (int)(t == DTYPE_E4M3 ? DTYPE_E5M2 : t);
}

static int of_factor(enum dtype gradient)
{
    return (int)(gradient == DTYPE_E5M2 ? DTYPE_E4M3 : gradient);
}

static int of_result(enum dtype factor)
{
    return dtype_is_fp8(factor) ? ANY : (int)factor;
}

static double product_flops(tensor w, int64_t rows)
{
    return 2.0 * count(w) * (double)rows;
}

void plan_fill(struct exec *x, tensor out, double value)
{
    (void)value;
    PLAN(x, "fill", 0, 0, {"out", out, ANY, tensor_rows(out), tensor_cols(out)});
}

void plan_cast(struct exec *x, tensor out, tensor in)
{
    PLAN(x, "cast", 0, 0, {"out", out, ANY, tensor_rows(in), tensor_cols(in)},
         {"in", in, ANY, tensor_rows(in), tensor_cols(in)});
}

void plan_quantize(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history, tensor dbias,
                   tensor in, enum dtype format)
{
    int64_t n = tensor_rows(in), cols = tensor_cols(in);
    if (format == DTYPE_I8) {
        PLAN(x, "quantize", 0, 0, {"rows", rows, DTYPE_I8, n, cols}, {"scale", scale, DTYPE_F32, 1, n},
             {"in", in, ANY, n, cols});
        return;
    }
    move(x, in.has_maxima || !tensor_is_null(history) ? 0 : 1, in);
    if (!tensor_is_null(history)) {
        PLAN(x, "quantize", 0, 0, {"history", history, DTYPE_F32, 1, 2});
    }
    PLAN(x, "quantize", 0, workspace_quantize(n, cols, !tensor_is_null(dbias)),
         {"rows", rows, (int)(dtype_is_fp8(rows.dtype) ? format : in.dtype), n, cols},
         {"scale", scale, DTYPE_F32, 1, 1}, {"in", in, ANY, n, cols});
    if (!tensor_is_null(columns)) {
        PLAN(x, "quantize", 0, 0, {"columns", columns, (int)format, n, cols});
    }
    if (!tensor_is_null(dbias)) {
        PLAN(x, "quantize", 0, 0, {"dbias", dbias, (int)dtype_of_vectors(in.dtype), 1, cols});
    }
}

void plan_add(struct exec *x, tensor out, tensor in)
{
    move(x, 1, out);
    PLAN(x, "add", count(out), 0, {"out", out, ANY, tensor_rows(out), tensor_cols(out)},
         {"in", in, (int)out.dtype, tensor_rows(out), tensor_cols(out)});
}

void plan_sum(struct exec *x, tensor total, tensor in)
{
    PLAN(x, "sum", count(in), 0, {"total", total, DTYPE_F64, 1, 1}, {"in", in, ANY, 1, tensor_cols(in)});
}

void plan_find_nonfinite(struct exec *x, tensor index, tensor in)
{
    PLAN(x, "find_nonfinite", 0, workspace_find_nonfinite(tensor_count(in)),
         {"index", index, DTYPE_I64, 1, 1}, {"in", in, ANY, tensor_rows(in), tensor_cols(in)});
}

void plan_linear(struct exec *x, tensor out, tensor in, tensor w, tensor bias)
{
    int64_t rows = tensor_rows(in), n_in = tensor_cols(in), n_out = tensor_rows(w);
    bool int8 = w.dtype == DTYPE_I8, packs = int8 || (x->rows_alone && w.dtype == DTYPE_BF16);
    size_t packed =
        int8 && x->int8_rows ? workspace_int8_rows(rows, n_out, n_in) : workspace_packed(rows, n_in);
    PLAN(x, "linear", product_flops(w, rows), packs ? packed : 0, {"out", out, ANY, rows, n_out},
         {"in", in, ANY, rows, n_in}, {"w", w, (int)(int8 ? DTYPE_I8 : in.dtype), n_out, n_in});
    if (!tensor_is_null(bias)) {
        bool rounded = bias.dtype == out.dtype; /* whether it is supported is checked by the device */
        PLAN(x, "linear", 0, 0,
             {"bias", bias, (int)(rounded ? out.dtype : dtype_of_vectors(in.dtype)), 1, n_out});
    }
}

void plan_linear_gelu(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias)
{
    plan_linear(x, tensor_is_null(pre) ? out : pre, in, w, bias);
    if (!tensor_is_null(pre)) {
        PLAN(x, "linear_gelu", 0, 0, {"out", out, (int)pre.dtype, tensor_rows(in), tensor_rows(w)});
    }
}

void plan_linear_backward_input(struct exec *x, tensor din, tensor dout, tensor w, bool accumulate)
{
    int64_t rows = tensor_rows(dout);
    move(x, accumulate ? 1 : 0, din);
    PLAN(x, "linear_backward_input", product_flops(w, rows),
         workspace_linear_backward_input(rows, tensor_cols(w), tensor_rows(w)),
         {"din", din, of_result(dout.dtype), rows, tensor_cols(w)}, {"dout", dout, ANY, rows, tensor_rows(w)},
         {"w", w, of_factor(dout.dtype), tensor_rows(w), tensor_cols(w)});
}

void plan_linear_backward_weight(struct exec *x, tensor dw, tensor dbias, tensor dout, tensor in,
                                 bool accumulate)
{
    int64_t rows = tensor_rows(in), n_in = tensor_cols(in), n_out = tensor_cols(dout);
    int vector = (int)dtype_of_vectors(in.dtype);
    move(x, accumulate ? 1 : 0, dw);
    PLAN(x, "linear_backward_weight", product_flops(dw, rows), workspace_column_sum(rows, n_out),
         {"dw", dw, vector, n_out, n_in}, {"dout", dout, of_gradient(in.dtype), rows, n_out},
         {"in", in, ANY, rows, n_in});
    if (!tensor_is_null(dbias)) {
        PLAN(x, "linear_backward_weight", 0, 0, {"dbias", dbias, vector, 1, n_out});
    }
}

void plan_gelu_backward(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre)
{
    int64_t rows = tensor_rows(pre), cols = tensor_cols(pre);
    PLAN(x, "gelu_backward", 0, workspace_column_sum(rows, cols), {"dpre", dpre, (int)pre.dtype, rows, cols},
         {"dbias", dbias, (int)dtype_of_vectors(pre.dtype), 1, cols},
         {"dout", dout, (int)pre.dtype, rows, cols}, {"pre", pre, ANY, rows, cols});
}

void plan_tanh(struct exec *x, tensor out, tensor in)
{
    PLAN(x, "tanh", 0, 0, {"out", out, (int)in.dtype, tensor_rows(in), tensor_cols(in)},
         {"in", in, ANY, tensor_rows(in), tensor_cols(in)});
}

void plan_tanh_backward(struct exec *x, tensor din, tensor dout, tensor out)
{
    int64_t rows = tensor_rows(out), cols = tensor_cols(out);
    PLAN(x, "tanh_backward", 0, 0, {"din", din, (int)out.dtype, rows, cols},
         {"dout", dout, (int)out.dtype, rows, cols}, {"out", out, ANY, rows, cols});
}

void plan_relu(struct exec *x, tensor out, tensor in)
{
    PLAN(x, "relu", 0, 0, {"out", out, (int)in.dtype, tensor_rows(in), tensor_cols(in)},
         {"in", in, ANY, tensor_rows(in), tensor_cols(in)});
}

void plan_relu_backward(struct exec *x, tensor din, tensor dout, tensor out)
{
    int64_t rows = tensor_rows(out), cols = tensor_cols(out);
    PLAN(x, "relu_backward", 0, 0, {"din", din, (int)out.dtype, rows, cols},
         {"dout", dout, (int)out.dtype, rows, cols}, {"out", out, ANY, rows, cols});
}

void plan_gelu_tanh(struct exec *x, tensor out, tensor pre)
{
    int64_t rows = tensor_rows(pre), cols = tensor_cols(pre);
    PLAN(x, "gelu_tanh", 0, 0, {"out", out, (int)pre.dtype, rows, cols}, {"pre", pre, ANY, rows, cols});
}

void plan_gelu_tanh_backward(struct exec *x, tensor dpre, tensor dout, tensor pre)
{
    int64_t rows = tensor_rows(pre), cols = tensor_cols(pre);
    PLAN(x, "gelu_tanh_backward", 0, 0, {"dpre", dpre, (int)pre.dtype, rows, cols},
         {"dout", dout, (int)pre.dtype, rows, cols}, {"pre", pre, ANY, rows, cols});
}

void plan_gated(struct exec *x, tensor out, tensor pre, enum gate_function f)
{
    int64_t rows = tensor_rows(out), cols = tensor_cols(out);
    (void)f;
    PLAN(x, "gated", 0, 0, {"out", out, (int)pre.dtype, rows, cols}, {"pre", pre, ANY, rows, 2 * cols});
}

void plan_gated_backward(struct exec *x, tensor dpre, tensor dout, tensor pre, enum gate_function f)
{
    int64_t rows = tensor_rows(dout), cols = tensor_cols(dout);
    (void)f;
    PLAN(x, "gated_backward", 0, 0, {"dpre", dpre, (int)pre.dtype, rows, 2 * cols},
         {"dout", dout, (int)pre.dtype, rows, cols}, {"pre", pre, ANY, rows, 2 * cols});
}

void plan_residual_add(struct exec *x, tensor out, tensor residual, tensor branch)
{
    int64_t rows = tensor_rows(out), cols = tensor_cols(out);
    PLAN(x, "residual_add", 0, 0, {"out", out, of_stream(branch.dtype, out), rows, cols},
         {"residual", residual, (int)out.dtype, rows, cols}, {"branch", branch, ANY, rows, cols});
}

void plan_dropout(struct exec *x, tensor out, tensor in, tensor row_keys, struct dropout drop)
{
    int64_t rows = tensor_rows(in), cols = tensor_cols(in);
    (void)drop;
    PLAN(x, "dropout", 0, 0, {"out", out, (int)in.dtype, rows, cols}, {"in", in, ANY, rows, cols},
         {"row_keys", row_keys, DTYPE_I32, rows, 2});
}
