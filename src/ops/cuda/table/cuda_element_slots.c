/* cuda_element_slots: slots on a CUDA device that compute each element for itself, a number of all of
 * them, or a factor in fp8. */
#include "ops/cuda/table/cuda_slots.h"

#include "core/fp8.h"
#include "ops/accept.h"
#include "ops/cuda/table/cuda_rounding.h"
#include "ops/cuda/table/cuda_slot.h"
#include "ops/workspace.h"

_Static_assert((int)LAUNCH_MOST_MAXIMA == (int)TENSOR_MAXIMA, "maxima are those of tensors");

void cuda_fill(struct exec *x, tensor out, double value)
{
    if (cuda_slot_accepts(x, "fill", out)) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_fill(&l, cuda_slot_rows(out), cuda_slot_type(out), tensor_rows(out), tensor_cols(out),
                         value);
        cuda_slot_finish(x, "fill");
    }
}

void cuda_cast(struct exec *x, tensor out, tensor in)
{
    if (cuda_slot_accepts(x, "cast", out) && cuda_slot_accepts(x, "cast", in)) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_cast(&l, cuda_slot_rows(out), cuda_slot_type(out), cuda_slot_rows(in), cuda_slot_type(in),
                         tensor_rows(out), tensor_cols(out));
        cuda_slot_finish(x, "cast");
    }
}

void cuda_add(struct exec *x, tensor out, tensor in)
{
    if (accept_tensors(x, "add", ACCEPT_LIST(out), ACCEPT_LIST(out, in))) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_add(&l, out.data, in.data, tensor_count(out));
        cuda_slot_finish(x, "add");
    }
}

void cuda_sum(struct exec *x, tensor total, tensor in)
{
    if (cuda_slot_accepts(x, "sum", in)) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_sum(&l, total.data, in.data, cuda_slot_type(in), tensor_count(in));
        cuda_slot_finish(x, "sum");
    }
}

void cuda_find_nonfinite(struct exec *x, tensor index, tensor in)
{
    if (cuda_slot_accepts(x, "find_nonfinite", in)) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_find_nonfinite(&l, index.data, cuda_slot_rows(in), cuda_slot_type(in), tensor_rows(in),
                                   tensor_cols(in));
        cuda_slot_finish(x, "find_nonfinite");
    }
}

/* Keeps the result in bf16 or fp32, for devices without products in fp8. */
static bool accept_held(struct launch_rounding *to, struct exec *x, const struct fp8_factor *f, tensor in,
                        enum dtype format)
{
    *to = (struct launch_rounding){.rows = cuda_slot_rows(f->rows),
                                   .format = format == DTYPE_E4M3 ? LAUNCH_E4M3 : LAUNCH_E5M2,
                                   .scale = f->scale.data,
                                   .history = f->history.data};
    return accept_tensors(x, "quantize", ACCEPT_LIST(f->rows, in), ACCEPT_LIST(f->scale, f->history));
}

void cuda_quantize(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history, tensor dbias,
                   tensor in, enum dtype format)
{
    struct fp8_factor f = {rows, columns, scale, history};
    struct launch_quantize q = {.held = !dtype_is_fp8(rows.dtype) && tensor_is_null(columns)};
    if (!(q.held ? accept_held(&q.to, x, &f, in, format)
                 : cuda_rounding_accept(&q.to, x, "quantize", &f, in, format)) ||
        !accept_tensors(x, "quantize", ACCEPT_LIST(in), ACCEPT_LIST(dbias))) {
        return;
    }
    q.in = cuda_slot_rows(in);
    q.maxima = tensor_maxima(in);
    q.type = cuda_slot_type(in);
    q.n_rows = tensor_rows(in), q.n_cols = tensor_cols(in);
    q.dbias = dbias.data;
    q.runs = workspace_runs(q.n_rows, q.n_cols);
    struct launch l = cuda_slot_launch(x, workspace_quantize(q.n_rows, q.n_cols, !tensor_is_null(dbias)));
    cuda_launch_quantize(&l, &q);
    cuda_slot_finish(x, "quantize");
}

void cuda_gelu_backward(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre)
{
    const struct launch_rounding *to;
    struct launch_rounding storage;
    if (accept_tensors(x, "gelu_backward", ACCEPT_LIST(dpre, dout, pre), ACCEPT_LIST(dbias)) &&
        cuda_rounding_of_result(&to, &storage, x, "gelu_backward", dpre, ACCEPT_LIST(dout, pre),
                                DTYPE_E5M2)) {
        int64_t rows = tensor_rows(pre), cols = tensor_cols(pre), runs = workspace_runs(rows, cols);
        struct launch l = cuda_slot_launch(x, workspace_column_sum(rows, cols));
        if (to != NULL) {
            cuda_launch_gelu_backward_rounded(&l, to, dbias.data, dout.data, pre.data, cuda_slot_type(pre),
                                              rows, cols, runs);
        } else {
            cuda_launch_gelu_backward(&l, dpre.data, dbias.data, dout.data, pre.data, cuda_slot_type(pre),
                                      rows, cols, runs, tensor_maxima(dpre));
        }
        cuda_slot_finish(x, "gelu_backward");
    }
}

void cuda_dropout(struct exec *x, tensor out, tensor in, tensor row_keys, struct dropout drop)
{
    if (accept_tensors(x, "dropout", ACCEPT_LIST(out, in), NULL, 0)) {
        struct launch l = cuda_slot_launch(x, 0);
        struct launch_dropout d = cuda_slot_dropout(drop, row_keys);
        cuda_launch_dropout(&l, out.data, in.data, cuda_slot_type(in), tensor_rows(in), tensor_cols(in), &d);
        cuda_slot_finish(x, "dropout");
    }
}

/* An activation whose gradient needs its output alone. */
#define ACTIVATION(op)                                                                                       \
    void cuda_##op(struct exec *x, tensor out, tensor in)                                                    \
    {                                                                                                        \
        if (accept_tensors(x, #op, ACCEPT_LIST(out, in), NULL, 0)) {                                         \
            struct launch l = cuda_slot_launch(x, 0);                                                        \
            cuda_launch_##op(&l, out.data, in.data, cuda_slot_type(in), tensor_count(in));                   \
            cuda_slot_finish(x, #op);                                                                        \
        }                                                                                                    \
    }                                                                                                        \
    void cuda_##op##_backward(struct exec *x, tensor din, tensor dout, tensor out)                           \
    {                                                                                                        \
        if (accept_tensors(x, #op "_backward", ACCEPT_LIST(din, dout, out), NULL, 0)) {                      \
            struct launch l = cuda_slot_launch(x, 0);                                                        \
            cuda_launch_##op##_backward(&l, din.data, dout.data, out.data, cuda_slot_type(out),              \
                                        tensor_count(out));                                                  \
            cuda_slot_finish(x, #op "_backward");                                                            \
        }                                                                                                    \
    }

ACTIVATION(tanh)
ACTIVATION(relu)

void cuda_gelu_tanh(struct exec *x, tensor out, tensor pre)
{
    if (accept_tensors(x, "gelu_tanh", ACCEPT_LIST(out, pre), NULL, 0)) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_gelu_tanh(&l, out.data, pre.data, cuda_slot_type(pre), tensor_count(pre));
        cuda_slot_finish(x, "gelu_tanh");
    }
}

void cuda_gelu_tanh_backward(struct exec *x, tensor dpre, tensor dout, tensor pre)
{
    if (accept_tensors(x, "gelu_tanh_backward", ACCEPT_LIST(dpre, dout, pre), NULL, 0)) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_gelu_tanh_backward(&l, dpre.data, dout.data, pre.data, cuda_slot_type(pre),
                                       tensor_count(pre));
        cuda_slot_finish(x, "gelu_tanh_backward");
    }
}

_Static_assert((int)LAUNCH_SILU == (int)GATE_SILU && (int)LAUNCH_GELU == (int)GATE_GELU &&
                   (int)LAUNCH_GELU_TANH == (int)GATE_GELU_TANH,
               "one list of gates");

/* A gate, or with dout its gradient. */
static void run_gate(struct exec *x, const char *op, tensor out, tensor dout, tensor pre,
                     enum gate_function f)
{
    if (accept_tensors(x, op, ACCEPT_LIST(out, dout, pre), NULL, 0)) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_gated(&l, out.data, dout.data, pre.data, cuda_slot_type(pre),
                          (enum launch_gate_function)f, tensor_rows(pre), tensor_cols(pre) / 2);
        cuda_slot_finish(x, op);
    }
}

void cuda_gated(struct exec *x, tensor out, tensor pre, enum gate_function f)
{
    run_gate(x, "gated", out, NULL_TENSOR, pre, f);
}

void cuda_gated_backward(struct exec *x, tensor dpre, tensor dout, tensor pre, enum gate_function f)
{
    run_gate(x, "gated_backward", dpre, dout, pre, f);
}

void cuda_rotate(struct exec *x, tensor heads, tensor turns, tensor positions, bool back)
{
    if (accept_tensors(x, "rotate", ACCEPT_LIST(heads), ACCEPT_LIST(turns))) {
        struct launch l = cuda_slot_launch(x, 0);
        struct launch_rotation r = {.rows = heads.dims[0],
                                    .n_heads = heads.dims[1],
                                    .row_stride = heads.strides[0],
                                    .head_stride = heads.strides[1],
                                    .half = tensor_cols(turns) / 2,
                                    .turns = turns.data,
                                    .positions = positions.data,
                                    .n_positions = tensor_rows(turns),
                                    .back = back};
        cuda_launch_rotate(&l, heads.data, cuda_slot_type(heads), &r);
        cuda_slot_finish(x, "rotate");
    }
}

void cuda_residual_add(struct exec *x, tensor out, tensor residual, tensor branch)
{
    if (accept_tensors(x, "residual_add", ACCEPT_LIST(branch), NULL, 0) &&
        accept_stream(x, "residual_add", branch.dtype, ACCEPT_LIST(out, residual))) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_residual_add(&l, out.data, residual.data, cuda_slot_type(out), branch.data,
                                 cuda_slot_type(branch), tensor_count(out));
        cuda_slot_finish(x, "residual_add");
    }
}
