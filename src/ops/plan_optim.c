/* plan_optim: the plan of sums over gradients, and of updates (ops/plan.c). */
#include "ops/plan_slots.h"

#include "ops/plan_wants.h"
#include "ops/workspace.h"

static int64_t span_elements(const struct optim_span *spans, int64_t n_spans)
{
    int64_t n = 0;
    for (int64_t s = 0; s < n_spans; s++) {
        n += spans[s].n;
    }
    return n;
}

void plan_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans)
{
    PLAN(x, "clear", 0, 0, {"flat", flat, ANY, 1, tensor_cols(flat)});
    move(x, (double)span_elements(spans, n_spans) / count(flat) - 1, flat);
}

void plan_squares(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans)
{
    PLAN(x, "squares", 2.0 * (double)span_elements(spans, n_spans), 0,
         {"sums", sums, DTYPE_F64, 1, optim_chunks(spans, n_spans)}, {"in", in, ANY, 1, tensor_cols(in)});
}

void plan_zeros(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans)
{
    PLAN(x, "zeros", (double)span_elements(spans, n_spans), 0,
         {"sums", sums, DTYPE_F64, 1, optim_chunks(spans, n_spans)}, {"in", in, ANY, 1, tensor_cols(in)});
}

void plan_norm_of(struct exec *x, tensor norm, tensor sums)
{
    PLAN(x, "norm_of", count(sums), workspace_norm_of(tensor_cols(sums)), {"norm", norm, DTYPE_F64, 1, 1},
         {"sums", sums, DTYPE_F64, 1, tensor_cols(sums)});
}

/* Adds the tensors that every update reads. */
static void add_update(struct exec *x, const char *op, struct optim_buffers b, tensor norm, tensor scalars)
{
    int64_t n = tensor_cols(b.master);
    PLAN(x, op, 0, 0, {"master", b.master, ANY, 1, n}, {"grad", b.grad, (int)b.master.dtype, 1, n},
         {"norm", norm, DTYPE_F64, 1, tensor_cols(norm)},
         {"scalars", scalars, DTYPE_F64, 1, OPTIM_N_SCALARS});
}

/* Adds the moments, which are read and written. */
static void add_moments(struct exec *x, const char *op, struct optim_buffers b)
{
    int64_t n = tensor_cols(b.master);
    int vector = (int)b.master.dtype;
    move(x, 1, b.exp_avg);
    move(x, 1, b.exp_avg_sq);
    PLAN(x, op, 0, 0, {"exp_avg", b.exp_avg, vector, 1, n}, {"exp_avg_sq", b.exp_avg_sq, vector, 1, n});
}

static void add_new_weights(struct exec *x, const char *op, struct optim_buffers b)
{
    move(x, 1, b.master);
    if (!tensor_is_null(b.working)) {
        PLAN(x, op, 0, 0, {"working", b.working, ANY, 1, tensor_cols(b.master)});
    }
}

void plan_lamb_direction(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                         int64_t n_spans, tensor norm, tensor scalars)
{
    add_update(x, "lamb_direction", b, norm, scalars);
    add_moments(x, "lamb_direction", b);
    move(x, 1, b.grad);
    PLAN(x, "lamb_direction", 0, 0, {"sums", sums, DTYPE_F64, optim_chunks(spans, n_spans), 2});
}

void plan_lamb_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                     tensor sums, tensor norm, tensor scalars)
{
    (void)spans;
    add_update(x, "lamb_apply", b, norm, scalars);
    add_new_weights(x, "lamb_apply", b);
    PLAN(x, "lamb_apply", 0, workspace_lamb_apply(n_spans), {"sums", sums, DTYPE_F64, tensor_rows(sums), 2});
}

void plan_lans_direction(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                         int64_t n_spans, tensor squares, tensor norm, tensor scalars)
{
    add_update(x, "lans_direction", b, norm, scalars);
    add_moments(x, "lans_direction", b);
    move(x, 1, b.grad);
    PLAN(x, "lans_direction", 0, workspace_lans_direction(n_spans),
         {"sums", sums, DTYPE_F64, optim_chunks(spans, n_spans), 3},
         {"squares", squares, DTYPE_F64, 1, tensor_cols(squares)});
}

/* Reads the moments once more. */
void plan_lans_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                     tensor sums, tensor norm, tensor scalars)
{
    (void)spans;
    int64_t n = tensor_cols(b.master);
    int vector = (int)b.master.dtype;
    add_update(x, "lans_apply", b, norm, scalars);
    add_new_weights(x, "lans_apply", b);
    PLAN(x, "lans_apply", 0, workspace_lans_apply(n_spans), {"sums", sums, DTYPE_F64, tensor_rows(sums), 3},
         {"exp_avg", b.exp_avg, vector, 1, n}, {"exp_avg_sq", b.exp_avg_sq, vector, 1, n});
}

void plan_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                tensor norm, tensor scalars)
{
    double n = count(b.master); /* 0 of a rank whose shard is empty */
    double left_out = n > 0 ? (double)span_elements(spans, n_spans) / n - 1 : 0; /* minus Muon's share */
    add_update(x, "adamw", b, norm, scalars);
    add_moments(x, "adamw", b);
    add_new_weights(x, "adamw", b);
    move(x, 2 * left_out, b.master);
    move(x, left_out, b.grad);
    move(x, 2 * left_out, b.exp_avg);
    move(x, 2 * left_out, b.exp_avg_sq);
    if (!tensor_is_null(b.working)) {
        move(x, left_out, b.working);
    }
}

void plan_nesterov(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                   int64_t n_spans, tensor norm, tensor scalars)
{
    double n = (double)span_elements(spans, n_spans), all = count(b.master);
    PLAN(x, "nesterov", 0, 0, {"sums", sums, DTYPE_F64, optim_chunks(spans, n_spans), 1},
         {"norm", norm, DTYPE_F64, 1, tensor_cols(norm)},
         {"scalars", scalars, DTYPE_F64, 1, OPTIM_N_SCALARS});
    move(x, 2 * n / all, b.grad);
    move(x, 2 * n / all, b.exp_avg);
}

void plan_unit(struct exec *x, tensor out, tensor in, tensor sums)
{
    PLAN(x, "unit", 0, workspace_unit(tensor_rows(sums)), {"out", out, ANY, tensor_rows(in), tensor_cols(in)},
         {"in", in, ANY, tensor_rows(in), tensor_cols(in)}, {"sums", sums, DTYPE_F64, tensor_rows(sums), 1});
}

void plan_matrix_polynomial(struct exec *x, tensor out, tensor in, tensor square, double a, double b,
                            double c)
{
    int64_t n = tensor_cols(in);
    int dtype = (int)out.dtype;
    (void)a, (void)b, (void)c;
    PLAN(x, "matrix_polynomial", 0, 0, {"out", out, dtype, n, n}, {"in", in, dtype, n, n},
         {"square", square, dtype, n, n});
}

void plan_descend(struct exec *x, struct optim_buffers b, const struct optim_span *span, tensor in,
                  tensor norm, tensor scalars)
{
    PLAN(x, "descend", 0, 0, {"in", in, ANY, span->rows, span->n / span->rows},
         {"norm", norm, DTYPE_F64, 1, tensor_cols(norm)},
         {"scalars", scalars, DTYPE_F64, 1, OPTIM_N_SCALARS});
    move(x, 2 * (double)span->n / count(b.master), b.master);
    if (!tensor_is_null(b.working)) {
        move(x, (double)span->n / count(b.master), b.working);
    }
}
