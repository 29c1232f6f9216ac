/* plan_rows: the plan of LayerNorms, embeddings, and rows of tables (ops/plan.c). */
#include "ops/plan_slots.h"

#include "ops/plan_wants.h"
#include "ops/workspace.h"

/* A vector that may be null. */
static void add_vector(struct exec *x, const char *op, const char *name, tensor t, int64_t n, int vector)
{
    if (!tensor_is_null(t)) {
        PLAN(x, op, 0, 0, {name, t, vector, 1, n});
    }
}

static void add_statistics(struct exec *x, const char *op, tensor mean, tensor rstd, int64_t rows, int vector)
{
    add_vector(x, op, "mean", mean, rows, vector);
    add_vector(x, op, "rstd", rstd, rows, vector);
}

/* Adds a layer norm whose input is computed here, as `sum`, which may be null. */
static void add_normalized_sum(struct exec *x, const char *op, tensor out, tensor sum, int of_sum,
                               tensor mean, tensor rstd, tensor gamma, tensor beta)
{
    int64_t rows = tensor_rows(out), cols = tensor_cols(out);
    int vector = (int)dtype_of_vectors(out.dtype);
    PLAN(x, op, 0, 0, {"out", out, ANY, rows, cols}, {"gamma", gamma, vector, 1, cols});
    add_vector(x, op, "beta", beta, cols, vector);
    add_statistics(x, op, mean, rstd, rows, vector);
    if (!tensor_is_null(sum)) {
        PLAN(x, op, 0, 0, {"sum", sum, of_sum, rows, cols});
    }
}

void plan_layernorm(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma,
                    tensor beta, double eps)
{
    (void)eps;
    int64_t rows = tensor_rows(in), cols = tensor_cols(in);
    int vector = (int)dtype_of_vectors(out.dtype);
    PLAN(x, "layernorm", 0, 0, {"out", out, ANY, rows, cols},
         {"in", in, of_stream(out.dtype, in), rows, cols}, {"gamma", gamma, vector, 1, cols});
    add_vector(x, "layernorm", "beta", beta, cols, vector);
    add_statistics(x, "layernorm", mean, rstd, rows, vector);
}

/* `of_din`: the dtype of din. */
static void add_norm_backward(struct exec *x, tensor din, int of_din, tensor dgamma, tensor dbeta,
                              tensor dout, tensor in, tensor mean, tensor rstd, tensor gamma)
{
    int64_t rows = tensor_rows(in), cols = tensor_cols(in);
    int vector = (int)dtype_of_vectors(dout.dtype);
    PLAN(x, "layernorm_backward", 0, workspace_layernorm_backward(rows, cols),
         {"din", din, of_din, rows, cols}, {"dgamma", dgamma, vector, 1, cols},
         {"dout", dout, ANY, rows, cols}, {"in", in, of_stream(dout.dtype, in), rows, cols},
         {"rstd", rstd, vector, 1, rows}, {"gamma", gamma, vector, 1, cols});
    add_vector(x, "layernorm_backward", "dbeta", dbeta, cols, vector);
    add_vector(x, "layernorm_backward", "mean", mean, rows, vector);
}

void plan_layernorm_backward(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout, tensor in,
                             tensor mean, tensor rstd, tensor gamma)
{
    add_norm_backward(x, din, (int)dout.dtype, dgamma, dbeta, dout, in, mean, rstd, gamma);
}

void plan_embed(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids, tensor types,
                tensor positions, tensor word, tensor position, tensor type, tensor gamma, tensor beta,
                double eps, tensor row_keys, struct dropout drop)
{
    (void)drop;
    (void)eps;
    int64_t rows = tensor_rows(out), cols = tensor_cols(out);
    int matrix = (int)out.dtype;
    add_normalized_sum(x, "embed", out, sum, matrix, mean, rstd, gamma, beta);
    move(x, 1, out); /* the rows of word */
    move(x, -1, word);
    PLAN(x, "embed", 0, 0, {"ids", ids, DTYPE_I32, 1, rows}, {"types", types, DTYPE_I32, 1, rows},
         {"positions", positions, DTYPE_I32, 1, rows}, {"word", word, matrix, tensor_rows(word), cols},
         {"position", position, matrix, tensor_rows(position), cols},
         {"type", type, matrix, tensor_rows(type), cols}, {"row_keys", row_keys, DTYPE_I32, rows, 2});
}

void plan_embed_backward(struct exec *x, tensor dsum, tensor dword, tensor dposition, tensor dtype,
                         tensor dgamma, tensor dbeta, tensor dout, tensor sum, tensor mean, tensor rstd,
                         tensor ids, tensor types, tensor positions, tensor gamma, tensor row_keys,
                         struct dropout drop)
{
    (void)drop;
    int64_t rows = tensor_rows(sum), cols = tensor_cols(sum);
    int vector = (int)dtype_of_vectors(sum.dtype);
    plan_layernorm_backward(x, dsum, dgamma, dbeta, dout, sum, mean, rstd, gamma);
    move(x, 2.0 * (double)dtype_bytes(dword.dtype) / (double)dtype_bytes(sum.dtype), sum); /* rows of dword */
    move(x, -1, dword);
    PLAN(x, "embed_backward", 0, workspace_embed_backward(rows, cols), {"ids", ids, DTYPE_I32, 1, rows},
         {"types", types, DTYPE_I32, 1, rows}, {"positions", positions, DTYPE_I32, 1, rows},
         {"dword", dword, vector, tensor_rows(dword), cols},
         {"dposition", dposition, vector, tensor_rows(dposition), cols},
         {"dtype", dtype, vector, tensor_rows(dtype), cols}, {"row_keys", row_keys, DTYPE_I32, rows, 2});
}

void plan_bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd,
                                     tensor in, tensor bias, tensor residual, tensor gamma, tensor beta,
                                     double eps, tensor row_keys, struct dropout drop)
{
    (void)drop;
    (void)eps;
    const char *op = "bias_dropout_add_layernorm";
    int64_t rows = tensor_rows(out), cols = tensor_cols(out);
    add_normalized_sum(x, op, out, sum, (int)residual.dtype, mean, rstd, gamma, beta);
    add_vector(x, op, "bias", bias, cols, (int)dtype_of_vectors(out.dtype));
    PLAN(x, op, 0, 0, {"in", in, (int)out.dtype, rows, cols},
         {"residual", residual, of_stream(out.dtype, residual), rows, cols},
         {"row_keys", row_keys, DTYPE_I32, rows, 2});
}

void plan_bias_dropout_add_layernorm_backward(struct exec *x, tensor dresidual, tensor din, tensor dbias,
                                              tensor dgamma, tensor dbeta, tensor dout, tensor sum,
                                              tensor mean, tensor rstd, tensor gamma, tensor row_keys,
                                              struct dropout drop, bool accumulate)
{
    (void)drop;
    int64_t rows = tensor_rows(sum), cols = tensor_cols(sum);
    move(x, accumulate ? 1 : 0, dresidual);
    add_norm_backward(x, dresidual, (int)sum.dtype, dgamma, dbeta, dout, sum, mean, rstd, gamma);
    const char *op = "bias_dropout_add_layernorm_backward";
    add_vector(x, op, "dbias", dbias, cols, (int)dtype_of_vectors(dout.dtype));
    PLAN(x, op, 0, workspace_layernorm_backward(rows, cols), {"din", din, (int)dout.dtype, rows, cols},
         {"row_keys", row_keys, DTYPE_I32, rows, 2});
}

/* The heads are read and written. */
void plan_rotate(struct exec *x, tensor heads, tensor turns, tensor positions, bool back)
{
    (void)back;
    move(x, 1, heads);
    PLAN(x, "rotate", 0, 0, {"heads", heads, ANY, tensor_rows(heads), tensor_cols(heads)},
         {"turns", turns, DTYPE_F32, tensor_rows(turns), tensor_cols(turns)},
         {"positions", positions, DTYPE_I32, 1, heads.dims[0]});
}

/* Rows that are not here are not moved, but how many those are is not known. */
static void add_gather(struct exec *x, const char *op, tensor out, tensor in, tensor rows)
{
    move(x, 1, out); /* the rows of in */
    PLAN(x, op, 0, 0,
         {"out", out, in.dtype == DTYPE_I8 ? ANY : (int)in.dtype, tensor_cols(rows), tensor_cols(in)},
         {"rows", rows, DTYPE_I32, 1, tensor_cols(rows)});
}

void plan_gather_rows(struct exec *x, tensor out, tensor in, tensor rows)
{
    add_gather(x, "gather_rows", out, in, rows);
}

void plan_scatter_add_rows(struct exec *x, tensor din, tensor dout, tensor rows)
{
    move(x, 2, dout); /* the rows of din */
    PLAN(x, "scatter_add_rows", 0, workspace_scatter_add(tensor_cols(rows), tensor_cols(din)),
         {"dout", dout, ANY, tensor_cols(rows), tensor_cols(din)},
         {"rows", rows, DTYPE_I32, 1, tensor_cols(rows)});
}

void plan_gather_slice(struct exec *x, tensor out, tensor in, tensor rows, int64_t first, int64_t n_rows)
{
    (void)first, (void)n_rows;
    add_gather(x, "gather_slice", out, in, rows);
}

void plan_scatter_add_slice(struct exec *x, tensor din, tensor dout, tensor rows, int64_t first,
                            int64_t n_rows)
{
    (void)first, (void)n_rows;
    move(x, 2, dout);
    PLAN(x, "scatter_add_slice", 0, workspace_scatter_add(tensor_cols(rows), tensor_cols(din)),
         {"dout", dout, ANY, tensor_cols(rows), tensor_cols(din)},
         {"rows", rows, DTYPE_I32, 1, tensor_cols(rows)});
}
