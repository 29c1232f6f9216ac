/* cuda_norm_slots: slots on a CUDA device that compute rows: LayerNorms with what surrounds them,
 * embeddings, and rows that are gathered, or added to a table. */
#include "ops/cuda/table/cuda_slots.h"

#include "ops/accept.h"
#include "ops/cuda/table/cuda_rounding.h"
#include "ops/cuda/table/cuda_slot.h"
#include "ops/workspace.h"

static struct launch_places places_of(tensor t)
{
    return (struct launch_places){t.n_dims == 3 ? (uint32_t)t.dims[1] : 1, t.strides[0]};
}

/* `out`: the output, or its gradient. */
static struct launch_norm norm_of(tensor out, tensor in, tensor mean, tensor rstd, tensor gamma, tensor beta,
                                  double eps)
{
    return (struct launch_norm){.rows = tensor_rows(in),
                                .cols = tensor_cols(in),
                                .in = places_of(in),
                                .out = places_of(out),
                                .gamma = gamma.data,
                                .beta = beta.data,
                                .mean = mean.data,
                                .rstd = rstd.data,
                                .eps = (float)eps};
}

void cuda_layernorm(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma,
                    tensor beta, double eps)
{
    if (accept_tensors(x, "layernorm", ACCEPT_LIST(out), ACCEPT_LIST(mean, rstd, gamma, beta)) &&
        accept_stream(x, "layernorm", out.dtype, ACCEPT_LIST(in))) {
        struct launch l = cuda_slot_launch(x, 0);
        struct launch_norm n = norm_of(out, in, mean, rstd, gamma, beta, eps);
        cuda_launch_layernorm(&l, &n, out.data, cuda_slot_type(out), in.data, cuda_slot_type(in));
        cuda_slot_finish(x, "layernorm");
    }
}

/* b without its din, dout and in. */
static void norm_backward(struct exec *x, const char *op, const struct launch_norm *n,
                          struct launch_norm_backward *b, tensor din, tensor dout, tensor in)
{
    if (n->cols > LAUNCH_MOST_NORM_COLS) {
        exec_fail(x, STATUS_USAGE, op, "rows have %lld columns, but the limit is %d", (long long)n->cols,
                  LAUNCH_MOST_NORM_COLS);
        return;
    }
    struct launch l = cuda_slot_launch(x, workspace_layernorm_backward(n->rows, n->cols));
    b->runs = workspace_at_most(n->rows, WORKSPACE_NORM_RUNS);
    b->din = din.data, b->din_places = places_of(din), b->din_type = cuda_slot_type(din);
    b->in = in.data, b->stream_type = cuda_slot_type(in);
    b->dout = dout.data;
    cuda_launch_layernorm_backward(&l, n, b, cuda_slot_type(dout));
    cuda_slot_finish(x, op);
}

void cuda_layernorm_backward(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout, tensor in,
                             tensor mean, tensor rstd, tensor gamma)
{
    if (accept_tensors(x, "layernorm_backward", ACCEPT_LIST(din, dout),
                       ACCEPT_LIST(dgamma, dbeta, mean, rstd, gamma)) &&
        accept_stream(x, "layernorm_backward", dout.dtype, ACCEPT_LIST(in))) {
        struct launch_norm n = norm_of(dout, in, mean, rstd, gamma, NULL_TENSOR, 0);
        struct launch_norm_backward b = {.dgamma = dgamma.data, .dbeta = dbeta.data};
        norm_backward(x, "layernorm_backward", &n, &b, din, dout, in);
    }
}

void cuda_bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd,
                                     tensor in, tensor bias, tensor residual, tensor gamma, tensor beta,
                                     double eps, tensor row_keys, struct dropout drop)
{
    const char *op = "bias_dropout_add_layernorm";
    const struct launch_rounding *to;
    struct launch_rounding storage;
    if (accept_tensors(x, op, ACCEPT_LIST(out, in), ACCEPT_LIST(mean, rstd, bias, gamma, beta)) &&
        accept_stream(x, op, out.dtype, ACCEPT_LIST(sum, residual)) &&
        cuda_rounding_of_result(&to, &storage, x, op, out, ACCEPT_LIST(out), DTYPE_E4M3)) {
        struct launch l = cuda_slot_launch(x, 0);
        struct launch_norm n = norm_of(out, in, mean, rstd, gamma, beta, eps);
        struct launch_dropout d = cuda_slot_dropout(drop, row_keys);
        n.maxima = tensor_maxima(out);
        cuda_launch_bias_dropout_add_layernorm(&l, &n, to, out.data, sum.data, in.data, bias.data,
                                               residual.data, cuda_slot_type(in), cuda_slot_type(residual),
                                               &d);
        cuda_slot_finish(x, op);
    }
}

void cuda_bias_dropout_add_layernorm_backward(struct exec *x, tensor dresidual, tensor din, tensor dbias,
                                              tensor dgamma, tensor dbeta, tensor dout, tensor sum,
                                              tensor mean, tensor rstd, tensor gamma, tensor row_keys,
                                              struct dropout drop, bool accumulate)
{
    const char *op = "bias_dropout_add_layernorm_backward";
    const struct launch_rounding *to;
    struct launch_rounding storage;
    if (accept_tensors(x, op, ACCEPT_LIST(din, dout), ACCEPT_LIST(dbias, dgamma, dbeta, mean, rstd, gamma)) &&
        accept_stream(x, op, dout.dtype, ACCEPT_LIST(dresidual, sum)) &&
        cuda_rounding_of_result(&to, &storage, x, op, din, ACCEPT_LIST(din), DTYPE_E5M2)) {
        if (to != NULL && dresidual.data == dout.data) {
            exec_fail(x, STATUS_USAGE, op,
                      "dresidual must not alias dout, since rounding may compute the result twice");
            return;
        }
        struct launch_norm n = norm_of(dout, sum, mean, rstd, gamma, NULL_TENSOR, 0);
        struct launch_dropout d = cuda_slot_dropout(drop, row_keys);
        struct launch_norm_backward b = {.dropped = din.data,
                                         .dgamma = dgamma.data,
                                         .dbeta = dbeta.data,
                                         .dbias = dbias.data,
                                         .adds = accumulate,
                                         .after = &d,
                                         .maxima = tensor_maxima(din),
                                         .to = to};
        norm_backward(x, op, &n, &b, dresidual, dout, sum);
    }
}

void cuda_embed(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids, tensor types,
                tensor positions, tensor word, tensor position, tensor type, tensor gamma, tensor beta,
                double eps, tensor row_keys, struct dropout drop)
{
    if (accept_tensors(x, "embed", ACCEPT_LIST(out, sum, word, position, type),
                       ACCEPT_LIST(mean, rstd, gamma, beta))) {
        struct launch l = cuda_slot_launch(x, 0);
        struct launch_norm n = norm_of(out, out, mean, rstd, gamma, beta, eps);
        struct launch_dropout d = cuda_slot_dropout(drop, row_keys);
        struct launch_tables t = {ids.data,          types.data,        positions.data,
                                  tensor_rows(word), tensor_rows(type), tensor_rows(position)};
        n.maxima = tensor_maxima(out);
        cuda_launch_embed(&l, &n, &t, out.data, sum.data, word.data, position.data, type.data,
                          cuda_slot_type(out), &d);
        cuda_slot_finish(x, "embed");
    }
}

/* All rows of a table. */
static struct launch_slice all_rows(tensor table)
{
    return (struct launch_slice){.n = tensor_rows(table), .n_all = tensor_rows(table)};
}

/* Adds rows of `in` to the rows of a table that `index` names. */
static void scatter(struct exec *x, tensor table, struct launch_slice here, tensor in, tensor index)
{
    int64_t rows = tensor_count(index), cols = tensor_cols(in);
    struct launch l = cuda_slot_launch(x, workspace_scatter_add(rows, cols));
    cuda_launch_scatter_add(&l, cuda_slot_rows(table), cuda_slot_type(table), here, cuda_slot_rows(in),
                            cuda_slot_type(in), index.data, rows, cols);
}

void cuda_embed_backward(struct exec *x, tensor dsum, tensor dword, tensor dposition, tensor dtype,
                         tensor dgamma, tensor dbeta, tensor dout, tensor sum, tensor mean, tensor rstd,
                         tensor ids, tensor types, tensor positions, tensor gamma, tensor row_keys,
                         struct dropout drop)
{
    if (accept_tensors(x, "embed_backward", ACCEPT_LIST(dsum, dout, sum),
                       ACCEPT_LIST(dword, dposition, dtype, dgamma, dbeta, mean, rstd, gamma))) {
        struct launch_norm n = norm_of(dout, sum, mean, rstd, gamma, NULL_TENSOR, 0);
        struct launch_dropout d = cuda_slot_dropout(drop, row_keys);
        struct launch_norm_backward b = {.dgamma = dgamma.data, .dbeta = dbeta.data, .before = &d};
        norm_backward(x, "embed_backward", &n, &b, dsum, dout, sum);
        scatter(x, dword, all_rows(dword), dsum, ids);
        scatter(x, dposition, all_rows(dposition), dsum, positions);
        scatter(x, dtype, all_rows(dtype), dsum, types);
        cuda_slot_finish(x, "embed_backward");
    }
}

static void gather(struct exec *x, const char *op, tensor out, tensor in, tensor rows,
                   struct launch_slice here)
{
    if (accept_copied(x, op, out, in)) {
        struct launch l = cuda_slot_launch(x, 0);
        enum launch_type type = in.dtype == DTYPE_I32 ? LAUNCH_F32 : cuda_slot_type(in); /* copies bits */
        cuda_launch_gather(&l, cuda_slot_rows(out), cuda_slot_rows(in), type, rows.data, tensor_rows(out),
                           here, tensor_cols(in));
        cuda_slot_finish(x, op);
    }
}

void cuda_gather_rows(struct exec *x, tensor out, tensor in, tensor rows)
{
    gather(x, "gather_rows", out, in, rows, all_rows(in));
}

void cuda_gather_slice(struct exec *x, tensor out, tensor in, tensor rows, int64_t first, int64_t n_rows)
{
    gather(x, "gather_slice", out, in, rows, (struct launch_slice){first, tensor_rows(in), n_rows});
}

static void scatter_add(struct exec *x, const char *op, tensor din, tensor dout, tensor rows,
                        struct launch_slice here)
{
    if (accept_tensors(x, op, ACCEPT_LIST(dout), NULL, 0) &&
        accept_tensors(x, op, ACCEPT_LIST(din), NULL, 0)) {
        scatter(x, din, here, dout, rows);
        cuda_slot_finish(x, op);
    }
}

void cuda_scatter_add_rows(struct exec *x, tensor din, tensor dout, tensor rows)
{
    scatter_add(x, "scatter_add_rows", din, dout, rows, all_rows(din));
}

void cuda_scatter_add_slice(struct exec *x, tensor din, tensor dout, tensor rows, int64_t first,
                            int64_t n_rows)
{
    scatter_add(x, "scatter_add_slice", din, dout, rows,
                (struct launch_slice){first, tensor_rows(din), n_rows});
}
