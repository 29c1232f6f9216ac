/* plan: computes nothing.  Each slot checks the shapes and dtypes that ops.h declares, and adds up what the
 * op costs: FLOPs, bytes moved (each tensor once, twice if it is updated, of a table only the rows that are
 * used) and scratch.  A model run over this table is validated and measured before anything is allocated. */
#include "core/fp8.h"
#include "ops/attention_bits.h"
#include "ops/ops.h"
#include "ops/workspace.h"

#include <stdio.h>

/* What one argument must be, seen as a matrix whose columns are its last dim; its bytes count as moved
 * once. */
struct want {
    const char *name;
    tensor t;
    int dtype; /* enum dtype, or ANY */
    int64_t rows, cols;
};

enum { ANY = -1 };

static void describe(char *text, size_t n, tensor t)
{
    int used = snprintf(text, n, "%s [", dtype_name(t.dtype));
    for (int i = 0; i < t.n_dims; i++) {
        used += snprintf(text + used, n - (size_t)used, "%s%lld", i == 0 ? "" : ", ", (long long)t.dims[i]);
    }
    snprintf(text + used, n - (size_t)used, "]");
}

static void plan(struct exec *x, const char *op, double flops, size_t scratch, const struct want *wants,
                 int n)
{
    if (failed(x->status)) {
        return;
    }
    for (int i = 0; i < n; i++) {
        const struct want *w = &wants[i];
        bool fits = w->t.n_dims > 0 && tensor_rows(w->t) == w->rows && tensor_cols(w->t) == w->cols;
        if (!fits || (w->dtype != ANY && (int)w->t.dtype != w->dtype)) {
            char found[160];
            describe(found, sizeof found, w->t);
            exec_fail(x, STATUS_INTERNAL, op, "%s must be %s of %lld rows and %lld columns, but is %s",
                      w->name, w->dtype == ANY ? "a tensor" : dtype_name((enum dtype)w->dtype),
                      (long long)w->rows, (long long)w->cols, found);
            return;
        }
        x->totals.bytes += (double)tensor_bytes(w->t);
    }
    x->totals.flops += flops;
    exec_scratch(x, scratch);
}

#define PLAN(x, op, flops, scratch, ...)                                                                     \
    plan(x, op, flops, scratch, (const struct want[]){__VA_ARGS__},                                          \
         (int)(sizeof((const struct want[]){__VA_ARGS__}) / sizeof(struct want)))

/* Counts the bytes of `t` as moved this many times more, or less. */
static void move(struct exec *x, double times, tensor t)
{
    x->totals.bytes += times * (double)tensor_bytes(t);
}

static double count(tensor t)
{
    return (double)tensor_count(t);
}

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

static void plan_fill(struct exec *x, tensor out, double value)
{
    (void)value;
    PLAN(x, "fill", 0, 0, {"out", out, ANY, tensor_rows(out), tensor_cols(out)});
}

static void plan_cast(struct exec *x, tensor out, tensor in)
{
    PLAN(x, "cast", 0, 0, {"out", out, ANY, tensor_rows(in), tensor_cols(in)},
         {"in", in, ANY, tensor_rows(in), tensor_cols(in)});
}

static void plan_quantize(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history,
                          tensor dbias, tensor in, enum dtype format)
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

static void plan_add(struct exec *x, tensor out, tensor in)
{
    move(x, 1, out);
    PLAN(x, "add", count(out), 0, {"out", out, ANY, tensor_rows(out), tensor_cols(out)},
         {"in", in, (int)out.dtype, tensor_rows(out), tensor_cols(out)});
}

static void plan_sum(struct exec *x, tensor total, tensor in)
{
    PLAN(x, "sum", count(in), 0, {"total", total, DTYPE_F64, 1, 1}, {"in", in, ANY, 1, tensor_cols(in)});
}

static void plan_find_nonfinite(struct exec *x, tensor index, tensor in)
{
    PLAN(x, "find_nonfinite", 0, workspace_find_nonfinite(tensor_count(in)),
         {"index", index, DTYPE_I64, 1, 1}, {"in", in, ANY, tensor_rows(in), tensor_cols(in)});
}

static void plan_linear(struct exec *x, tensor out, tensor in, tensor w, tensor bias)
{
    int64_t rows = tensor_rows(in), n_in = tensor_cols(in), n_out = tensor_rows(w);
    bool int8 = w.dtype == DTYPE_I8, packs = int8 || (x->rows_alone && w.dtype == DTYPE_BF16);
    PLAN(x, "linear", product_flops(w, rows), packs ? workspace_packed(rows, n_in) : 0,
         {"out", out, ANY, rows, n_out}, {"in", in, ANY, rows, n_in},
         {"w", w, (int)(int8 ? DTYPE_I8 : in.dtype), n_out, n_in});
    if (!tensor_is_null(bias)) {
        bool rounded = bias.dtype == out.dtype; /* whether it is supported is checked by the device */
        PLAN(x, "linear", 0, 0,
             {"bias", bias, (int)(rounded ? out.dtype : dtype_of_vectors(in.dtype)), 1, n_out});
    }
}

static void plan_linear_gelu(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias)
{
    plan_linear(x, tensor_is_null(pre) ? out : pre, in, w, bias);
    if (!tensor_is_null(pre)) {
        PLAN(x, "linear_gelu", 0, 0, {"out", out, (int)pre.dtype, tensor_rows(in), tensor_rows(w)});
    }
}

static void plan_linear_backward_input(struct exec *x, tensor din, tensor dout, tensor w, bool accumulate)
{
    int64_t rows = tensor_rows(dout);
    move(x, accumulate ? 1 : 0, din);
    PLAN(x, "linear_backward_input", product_flops(w, rows),
         workspace_linear_backward_input(rows, tensor_cols(w), tensor_rows(w)),
         {"din", din, of_result(dout.dtype), rows, tensor_cols(w)}, {"dout", dout, ANY, rows, tensor_rows(w)},
         {"w", w, of_factor(dout.dtype), tensor_rows(w), tensor_cols(w)});
}

static void plan_linear_backward_weight(struct exec *x, tensor dw, tensor dbias, tensor dout, tensor in,
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

static void plan_gelu_backward(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre)
{
    int64_t rows = tensor_rows(pre), cols = tensor_cols(pre);
    PLAN(x, "gelu_backward", 0, workspace_column_sum(rows, cols), {"dpre", dpre, (int)pre.dtype, rows, cols},
         {"dbias", dbias, (int)dtype_of_vectors(pre.dtype), 1, cols},
         {"dout", dout, (int)pre.dtype, rows, cols}, {"pre", pre, ANY, rows, cols});
}

static void plan_tanh(struct exec *x, tensor out, tensor in)
{
    PLAN(x, "tanh", 0, 0, {"out", out, (int)in.dtype, tensor_rows(in), tensor_cols(in)},
         {"in", in, ANY, tensor_rows(in), tensor_cols(in)});
}

static void plan_tanh_backward(struct exec *x, tensor din, tensor dout, tensor out)
{
    int64_t rows = tensor_rows(out), cols = tensor_cols(out);
    PLAN(x, "tanh_backward", 0, 0, {"din", din, (int)out.dtype, rows, cols},
         {"dout", dout, (int)out.dtype, rows, cols}, {"out", out, ANY, rows, cols});
}

static void plan_gelu_tanh(struct exec *x, tensor out, tensor pre)
{
    int64_t rows = tensor_rows(pre), cols = tensor_cols(pre);
    PLAN(x, "gelu_tanh", 0, 0, {"out", out, (int)pre.dtype, rows, cols}, {"pre", pre, ANY, rows, cols});
}

static void plan_gelu_tanh_backward(struct exec *x, tensor dpre, tensor dout, tensor pre)
{
    int64_t rows = tensor_rows(pre), cols = tensor_cols(pre);
    PLAN(x, "gelu_tanh_backward", 0, 0, {"dpre", dpre, (int)pre.dtype, rows, cols},
         {"dout", dout, (int)pre.dtype, rows, cols}, {"pre", pre, ANY, rows, cols});
}

/* The dtype that rows of a residual stream must have beside activations of this one. */
static int of_stream(enum dtype activations, tensor rows)
{
    enum dtype wide = dtype_of_vectors(activations);
    return (int)(rows.dtype == wide ? wide : activations);
}

static void plan_residual_add(struct exec *x, tensor out, tensor residual, tensor branch)
{
    int64_t rows = tensor_rows(out), cols = tensor_cols(out);
    PLAN(x, "residual_add", 0, 0, {"out", out, of_stream(branch.dtype, out), rows, cols},
         {"residual", residual, (int)out.dtype, rows, cols}, {"branch", branch, ANY, rows, cols});
}

/* A tensor for the backward, which may be null. */
static void plan_statistics(struct exec *x, const char *op, tensor mean, tensor rstd, int64_t rows,
                            int vector)
{
    if (!tensor_is_null(mean)) {
        PLAN(x, op, 0, 0, {"mean", mean, vector, 1, rows}, {"rstd", rstd, vector, 1, rows});
    }
}

/* What is normalized is computed here, as `sum`, which may be null. */
static void plan_normalized_sum(struct exec *x, const char *op, tensor out, tensor sum, int of_sum,
                                tensor mean, tensor rstd, tensor gamma, tensor beta)
{
    int64_t rows = tensor_rows(out), cols = tensor_cols(out);
    int vector = (int)dtype_of_vectors(out.dtype);
    PLAN(x, op, 0, 0, {"out", out, ANY, rows, cols}, {"gamma", gamma, vector, 1, cols},
         {"beta", beta, vector, 1, cols});
    plan_statistics(x, op, mean, rstd, rows, vector);
    if (!tensor_is_null(sum)) {
        PLAN(x, op, 0, 0, {"sum", sum, of_sum, rows, cols});
    }
}

static void plan_layernorm(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma,
                           tensor beta, double eps)
{
    (void)eps;
    int64_t rows = tensor_rows(in), cols = tensor_cols(in);
    int vector = (int)dtype_of_vectors(out.dtype);
    PLAN(x, "layernorm", 0, 0, {"out", out, ANY, rows, cols},
         {"in", in, of_stream(out.dtype, in), rows, cols}, {"gamma", gamma, vector, 1, cols},
         {"beta", beta, vector, 1, cols});
    plan_statistics(x, "layernorm", mean, rstd, rows, vector);
}

/* `of_din`: the dtype of din. */
static void plan_norm_backward(struct exec *x, tensor din, int of_din, tensor dgamma, tensor dbeta,
                               tensor dout, tensor in, tensor mean, tensor rstd, tensor gamma)
{
    int64_t rows = tensor_rows(in), cols = tensor_cols(in);
    int vector = (int)dtype_of_vectors(dout.dtype);
    PLAN(x, "layernorm_backward", 0, workspace_layernorm_backward(rows, cols),
         {"din", din, of_din, rows, cols}, {"dgamma", dgamma, vector, 1, cols},
         {"dbeta", dbeta, vector, 1, cols}, {"dout", dout, ANY, rows, cols},
         {"in", in, of_stream(dout.dtype, in), rows, cols}, {"mean", mean, vector, 1, rows},
         {"rstd", rstd, vector, 1, rows}, {"gamma", gamma, vector, 1, cols});
}

static void plan_layernorm_backward(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout,
                                    tensor in, tensor mean, tensor rstd, tensor gamma)
{
    plan_norm_backward(x, din, (int)dout.dtype, dgamma, dbeta, dout, in, mean, rstd, gamma);
}

static void plan_dropout(struct exec *x, tensor out, tensor in, tensor row_keys, struct dropout drop)
{
    int64_t rows = tensor_rows(in), cols = tensor_cols(in);
    (void)drop;
    PLAN(x, "dropout", 0, 0, {"out", out, (int)in.dtype, rows, cols}, {"in", in, ANY, rows, cols},
         {"row_keys", row_keys, DTYPE_I32, rows, 2});
}

static void plan_embed(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids,
                       tensor types, tensor positions, tensor word, tensor position, tensor type,
                       tensor gamma, tensor beta, double eps, tensor row_keys, struct dropout drop)
{
    (void)drop;
    (void)eps;
    int64_t rows = tensor_rows(out), cols = tensor_cols(out);
    int matrix = (int)out.dtype;
    plan_normalized_sum(x, "embed", out, sum, matrix, mean, rstd, gamma, beta);
    move(x, 1, out); /* the rows of word */
    move(x, -1, word);
    PLAN(x, "embed", 0, 0, {"ids", ids, DTYPE_I32, 1, rows}, {"types", types, DTYPE_I32, 1, rows},
         {"positions", positions, DTYPE_I32, 1, rows}, {"word", word, matrix, tensor_rows(word), cols},
         {"position", position, matrix, tensor_rows(position), cols},
         {"type", type, matrix, tensor_rows(type), cols}, {"row_keys", row_keys, DTYPE_I32, rows, 2});
}

static void plan_embed_backward(struct exec *x, tensor dsum, tensor dword, tensor dposition, tensor dtype,
                                tensor dgamma, tensor dbeta, tensor dout, tensor sum, tensor mean,
                                tensor rstd, tensor ids, tensor types, tensor positions, tensor gamma,
                                tensor row_keys, struct dropout drop)
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

static void plan_bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd,
                                            tensor in, tensor bias, tensor residual, tensor gamma,
                                            tensor beta, double eps, tensor row_keys, struct dropout drop)
{
    (void)drop;
    (void)eps;
    const char *op = "bias_dropout_add_layernorm";
    int64_t rows = tensor_rows(out), cols = tensor_cols(out);
    plan_normalized_sum(x, op, out, sum, (int)residual.dtype, mean, rstd, gamma, beta);
    PLAN(x, op, 0, 0, {"in", in, (int)out.dtype, rows, cols},
         {"bias", bias, (int)dtype_of_vectors(out.dtype), 1, cols},
         {"residual", residual, of_stream(out.dtype, residual), rows, cols},
         {"row_keys", row_keys, DTYPE_I32, rows, 2});
}

static void plan_bias_dropout_add_layernorm_backward(struct exec *x, tensor dresidual, tensor din,
                                                     tensor dbias, tensor dgamma, tensor dbeta, tensor dout,
                                                     tensor sum, tensor mean, tensor rstd, tensor gamma,
                                                     tensor row_keys, struct dropout drop, bool accumulate)
{
    (void)drop;
    int64_t rows = tensor_rows(sum), cols = tensor_cols(sum);
    move(x, accumulate ? 1 : 0, dresidual);
    plan_norm_backward(x, dresidual, (int)sum.dtype, dgamma, dbeta, dout, sum, mean, rstd, gamma);
    PLAN(x, "bias_dropout_add_layernorm_backward", 0, workspace_layernorm_backward(rows, cols),
         {"din", din, (int)dout.dtype, rows, cols},
         {"dbias", dbias, (int)dtype_of_vectors(dout.dtype), 1, cols},
         {"row_keys", row_keys, DTYPE_I32, rows, 2});
}

/* Scores of all queries and keys.  The bounds of the sequences are not read: they are in the device's memory,
 * or while planning do not exist. */
static double attention_pairs(const struct attention *a, int64_t rows)
{
    return a->n_pairs > 0 ? a->n_pairs : (double)rows * (double)a->max_seqlen_kv;
}

static void plan_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v,
                           struct attention a)
{
    int64_t rows = tensor_rows(q), kv_rows = tensor_rows(k), d = tensor_cols(q);
    double flops = 4.0 * attention_pairs(&a, q.dims[0]) * (double)(q.dims[1] * d) * (a.causal ? 0.5 : 1.0);
    PLAN(x, "attention", flops, workspace_attention(q.dims[1], d, a.max_seqlen_q, a.max_seqlen_kv),
         {"out", out, (int)q.dtype, rows, d},
         {"lse", lse, (int)dtype_of_vectors(q.dtype), q.dims[0], q.dims[1]}, {"q", q, ANY, rows, d},
         {"k", k, (int)q.dtype, kv_rows, d}, {"v", v, (int)q.dtype, kv_rows, d},
         {"cu_seqlens_kv", a.cu_seqlens_kv, DTYPE_I32, 1, tensor_cols(a.cu_seqlens_q)},
         {"row_keys", a.row_keys, DTYPE_I32, q.dims[0], 2});
    if (!tensor_is_null(a.bits)) {
        PLAN(x, "attention", 0, 0,
             {"bits", a.bits, DTYPE_I32, attention_bits_rows(q.dims[1], a.max_seqlen_kv),
              attention_bits_cols(q.dims[0], tensor_count(a.cu_seqlens_q) - 1)});
    }
}

static void plan_attention_backward(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias,
                                    tensor dout, tensor out, tensor lse, tensor q, tensor k, tensor v,
                                    struct attention a)
{
    int64_t rows = tensor_rows(q), kv_rows = tensor_rows(k), d = tensor_cols(q), sums = 3 * q.dims[1] * d;
    int matrix = (int)q.dtype;
    plan_attention(x, out, lse, q, k, v, a);
    /* four more products with the gradients, one of them a second time over the recomputed scores (counted as
     * useful work: twice the forward) */
    double flops = 8.0 * attention_pairs(&a, q.dims[0]) * (double)(q.dims[1] * d) * (a.causal ? 0.5 : 1.0);
    x->totals.flops -= flops / 2; /* the recomputed forward is not useful work */
    PLAN(x, "attention_backward", flops, 0, {"dq", dq, matrix, rows, d}, {"dk", dk, matrix, kv_rows, d},
         {"dv", dv, matrix, kv_rows, d}, {"dout", dout, matrix, rows, d});
    if (!tensor_is_null(dbias)) {
        size_t scratch = workspace_attention_sums(
            q.dims[0], k.dims[0], sums, tensor_count(a.cu_seqlens_q) - 1, a.max_seqlen_q, a.max_seqlen_kv);
        PLAN(x, "attention_backward", 0, scratch, {"dbias", dbias, (int)dtype_of_vectors(q.dtype), 1, sums});
    }
}

static void plan_append_rows(struct exec *x, tensor keys, tensor values, tensor k, tensor v, tensor slots)
{
    int64_t rows = tensor_rows(k), d = tensor_cols(k), page_rows = keys.dims[0];
    move(x, 1, k), move(x, 1, v); /* the slots that are written */
    move(x, -1, keys), move(x, -1, values);
    PLAN(x, "append_rows", 0, 0, {"k", k, ANY, rows, d}, {"v", v, (int)k.dtype, rows, d},
         {"keys", keys, (int)k.dtype, page_rows * d, OPS_CACHE_PAGE},
         {"values", values, (int)k.dtype, page_rows * OPS_CACHE_PAGE, d},
         {"slots", slots, DTYPE_I32, 1, k.dims[0]});
}

/* Keys and values are counted once for each sequence of the longest length. */
static void plan_attention_cached(struct exec *x, tensor out, tensor q, tensor keys, tensor values,
                                  struct attention a)
{
    int64_t rows = tensor_rows(q), d = tensor_cols(q), page_rows = keys.dims[0];
    int64_t n_sequences = tensor_cols(a.cu_seqlens_q) - 1;
    double flops = 4.0 * attention_pairs(&a, q.dims[0]) * (double)(q.dims[1] * d);
    size_t scratch =
        workspace_attention_cached(q.dims[0], n_sequences, q.dims[1], q.dims[2], a.max_seqlen_kv);
    int64_t cached = page_rows / q.dims[1] * OPS_CACHE_PAGE;
    double read = (double)(n_sequences * a.max_seqlen_kv) / (double)cached;
    move(x, read - 1, keys), move(x, read - 1, values);
    PLAN(x, "attention_cached", flops, scratch, {"out", out, (int)q.dtype, rows, d}, {"q", q, ANY, rows, d},
         {"keys", keys, (int)q.dtype, page_rows * d, OPS_CACHE_PAGE},
         {"values", values, (int)q.dtype, page_rows * OPS_CACHE_PAGE, d},
         {"cu_seqlens_kv", a.cu_seqlens_kv, DTYPE_I32, 1, n_sequences + 1},
         {"block_table", a.block_table, DTYPE_I32, n_sequences, tensor_cols(a.block_table)});
}

/* Rows that are not here are not moved, but how many those are is not known. */
static void plan_gather(struct exec *x, const char *op, tensor out, tensor in, tensor rows)
{
    move(x, 1, out); /* the rows of in */
    PLAN(x, op, 0, 0,
         {"out", out, in.dtype == DTYPE_I8 ? ANY : (int)in.dtype, tensor_cols(rows), tensor_cols(in)},
         {"rows", rows, DTYPE_I32, 1, tensor_cols(rows)});
}

static void plan_gather_rows(struct exec *x, tensor out, tensor in, tensor rows)
{
    plan_gather(x, "gather_rows", out, in, rows);
}

static void plan_scatter_add_rows(struct exec *x, tensor din, tensor dout, tensor rows)
{
    move(x, 2, dout); /* the rows of din */
    PLAN(x, "scatter_add_rows", 0, workspace_scatter_add(tensor_cols(rows), tensor_cols(din)),
         {"dout", dout, ANY, tensor_cols(rows), tensor_cols(din)},
         {"rows", rows, DTYPE_I32, 1, tensor_cols(rows)});
}

static void plan_gather_slice(struct exec *x, tensor out, tensor in, tensor rows, int64_t first,
                              int64_t n_rows)
{
    (void)first, (void)n_rows;
    plan_gather(x, "gather_slice", out, in, rows);
}

static void plan_scatter_add_slice(struct exec *x, tensor din, tensor dout, tensor rows, int64_t first,
                                   int64_t n_rows)
{
    (void)first, (void)n_rows;
    move(x, 2, dout);
    PLAN(x, "scatter_add_slice", 0, workspace_scatter_add(tensor_cols(rows), tensor_cols(din)),
         {"dout", dout, ANY, tensor_cols(rows), tensor_cols(din)},
         {"rows", rows, DTYPE_I32, 1, tensor_cols(rows)});
}

static void plan_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                               tensor labels, int64_t n_classes, tensor scale)
{
    int64_t rows = tensor_rows(logits), cols = tensor_cols(logits);
    if (n_classes < 1 || n_classes > cols) {
        exec_fail(x, STATUS_INTERNAL, "cross_entropy", "%lld classes of %lld columns", (long long)n_classes,
                  (long long)cols);
    }
    PLAN(x, "cross_entropy", 0, 0, {"loss", loss, ANY, 1, rows}, {"correct", correct, DTYPE_I32, 1, rows},
         {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, cols},
         {"labels", labels, DTYPE_I32, 1, rows}, {"scale", scale, DTYPE_F64, 1, 1});
    if (!tensor_is_null(dlogits)) {
        PLAN(x, "cross_entropy", 0, 0, {"dlogits", dlogits, ANY, rows, cols});
    }
}

static void plan_slice_maxima(struct exec *x, tensor maxima, tensor logits, int64_t first, int64_t n_classes)
{
    int64_t rows = tensor_rows(logits);
    (void)first, (void)n_classes;
    PLAN(x, "slice_maxima", 0, 0, {"maxima", maxima, (int)logits.dtype, 1, rows},
         {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, tensor_cols(logits)});
}

static void plan_slice_sums(struct exec *x, tensor sums, tensor logits, tensor maxima, tensor labels,
                            int64_t first, int64_t n_classes)
{
    int64_t rows = tensor_rows(logits);
    (void)first, (void)n_classes;
    PLAN(x, "slice_sums", 0, 0, {"sums", sums, DTYPE_F64, rows, 3},
         {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, tensor_cols(logits)},
         {"maxima", maxima, (int)logits.dtype, 1, rows}, {"labels", labels, DTYPE_I32, 1, rows});
}

static void plan_slice_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits,
                                     tensor logits, tensor maxima, tensor sums, tensor labels, int64_t first,
                                     int64_t n_classes, tensor scale)
{
    int64_t rows = tensor_rows(logits), cols = tensor_cols(logits);
    (void)first, (void)n_classes;
    PLAN(x, "slice_cross_entropy", 0, 0, {"loss", loss, ANY, 1, rows},
         {"correct", correct, DTYPE_I32, 1, rows}, {"maxima", maxima, (int)logits.dtype, 1, rows},
         {"sums", sums, DTYPE_F64, rows, 3}, {"labels", labels, DTYPE_I32, 1, rows},
         {"scale", scale, DTYPE_F64, 1, 1});
    if (!tensor_is_null(dlogits)) {
        PLAN(x, "slice_cross_entropy", 0, 0, {"dlogits", dlogits, ANY, rows, cols},
             {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, cols});
    }
}

static void plan_span_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits,
                                    tensor logits, tensor cu_seqlens, tensor labels, tensor scale)
{
    int64_t rows = tensor_rows(logits), n_sequences = tensor_rows(labels);
    if (tensor_count(cu_seqlens) <= n_sequences) {
        exec_fail(x, STATUS_INTERNAL, "span_cross_entropy", "labels of %lld sequences, but bounds of %lld",
                  (long long)n_sequences, (long long)tensor_count(cu_seqlens) - 1);
    }
    PLAN(x, "span_cross_entropy", 0, 0, {"loss", loss, (int)logits.dtype, n_sequences, 2},
         {"correct", correct, DTYPE_I32, n_sequences, 2},
         {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, 2},
         {"labels", labels, DTYPE_I32, n_sequences, 2},
         {"cu_seqlens", cu_seqlens, DTYPE_I32, 1, tensor_count(cu_seqlens)},
         {"scale", scale, DTYPE_F64, 1, 1});
    if (!tensor_is_null(dlogits)) {
        PLAN(x, "span_cross_entropy", 0, 0, {"dlogits", dlogits, ANY, rows, 2});
    }
}

static int64_t span_elements(const struct optim_span *spans, int64_t n_spans)
{
    int64_t n = 0;
    for (int64_t s = 0; s < n_spans; s++) {
        n += spans[s].n;
    }
    return n;
}

static void plan_pointwise(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                           tensor targets, enum pointwise_loss kind, tensor scale)
{
    int64_t rows = tensor_rows(logits), cols = tensor_cols(logits);
    (void)kind;
    PLAN(x, "pointwise", 0, 0, {"loss", loss, (int)logits.dtype, rows, cols},
         {"correct", correct, DTYPE_I32, rows, cols},
         {"logits", logits, (int)dtype_of_vectors(logits.dtype), rows, cols},
         {"targets", targets, DTYPE_F32, rows, cols}, {"scale", scale, DTYPE_F64, 1, 1});
    if (!tensor_is_null(dlogits)) {
        PLAN(x, "pointwise", 0, 0, {"dlogits", dlogits, ANY, rows, cols});
    }
}

static void plan_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans)
{
    PLAN(x, "clear", 0, 0, {"flat", flat, ANY, 1, tensor_cols(flat)});
    move(x, (double)span_elements(spans, n_spans) / count(flat) - 1, flat);
}

static void plan_squares(struct exec *x, tensor sums, tensor in, const struct optim_span *spans,
                         int64_t n_spans)
{
    PLAN(x, "squares", 2.0 * (double)span_elements(spans, n_spans), 0,
         {"sums", sums, DTYPE_F64, 1, optim_chunks(spans, n_spans)}, {"in", in, ANY, 1, tensor_cols(in)});
}

static void plan_zeros(struct exec *x, tensor sums, tensor in, const struct optim_span *spans,
                       int64_t n_spans)
{
    PLAN(x, "zeros", (double)span_elements(spans, n_spans), 0,
         {"sums", sums, DTYPE_F64, 1, optim_chunks(spans, n_spans)}, {"in", in, ANY, 1, tensor_cols(in)});
}

static void plan_norm_of(struct exec *x, tensor norm, tensor sums)
{
    PLAN(x, "norm_of", count(sums), workspace_norm_of(tensor_cols(sums)), {"norm", norm, DTYPE_F64, 1, 1},
         {"sums", sums, DTYPE_F64, 1, tensor_cols(sums)});
}

/* What every update reads. */
static void plan_update(struct exec *x, const char *op, struct optim_buffers b, tensor norm, tensor scalars)
{
    int64_t n = tensor_cols(b.master);
    PLAN(x, op, 0, 0, {"master", b.master, ANY, 1, n}, {"grad", b.grad, (int)b.master.dtype, 1, n},
         {"norm", norm, DTYPE_F64, 1, tensor_cols(norm)},
         {"scalars", scalars, DTYPE_F64, 1, OPTIM_N_SCALARS});
}

/* Reads and writes them. */
static void plan_moments(struct exec *x, const char *op, struct optim_buffers b)
{
    int64_t n = tensor_cols(b.master);
    int vector = (int)b.master.dtype;
    move(x, 1, b.exp_avg);
    move(x, 1, b.exp_avg_sq);
    PLAN(x, op, 0, 0, {"exp_avg", b.exp_avg, vector, 1, n}, {"exp_avg_sq", b.exp_avg_sq, vector, 1, n});
}

static void plan_new_weights(struct exec *x, const char *op, struct optim_buffers b)
{
    move(x, 1, b.master);
    if (!tensor_is_null(b.working)) {
        PLAN(x, op, 0, 0, {"working", b.working, ANY, 1, tensor_cols(b.master)});
    }
}

static void plan_lamb_direction(struct exec *x, tensor sums, struct optim_buffers b,
                                const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars)
{
    plan_update(x, "lamb_direction", b, norm, scalars);
    plan_moments(x, "lamb_direction", b);
    move(x, 1, b.grad);
    PLAN(x, "lamb_direction", 0, 0, {"sums", sums, DTYPE_F64, optim_chunks(spans, n_spans), 2});
}

static void plan_lamb_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                            int64_t n_spans, tensor sums, tensor norm, tensor scalars)
{
    (void)spans;
    plan_update(x, "lamb_apply", b, norm, scalars);
    plan_new_weights(x, "lamb_apply", b);
    PLAN(x, "lamb_apply", 0, workspace_lamb_apply(n_spans), {"sums", sums, DTYPE_F64, tensor_rows(sums), 2});
}

static void plan_lans_direction(struct exec *x, tensor sums, struct optim_buffers b,
                                const struct optim_span *spans, int64_t n_spans, tensor squares, tensor norm,
                                tensor scalars)
{
    plan_update(x, "lans_direction", b, norm, scalars);
    plan_moments(x, "lans_direction", b);
    move(x, 1, b.grad);
    PLAN(x, "lans_direction", 0, workspace_lans_direction(n_spans),
         {"sums", sums, DTYPE_F64, optim_chunks(spans, n_spans), 3},
         {"squares", squares, DTYPE_F64, 1, tensor_cols(squares)});
}

/* Reads the moments once more. */
static void plan_lans_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                            int64_t n_spans, tensor sums, tensor norm, tensor scalars)
{
    (void)spans;
    int64_t n = tensor_cols(b.master);
    int vector = (int)b.master.dtype;
    plan_update(x, "lans_apply", b, norm, scalars);
    plan_new_weights(x, "lans_apply", b);
    PLAN(x, "lans_apply", 0, workspace_lans_apply(n_spans), {"sums", sums, DTYPE_F64, tensor_rows(sums), 3},
         {"exp_avg", b.exp_avg, vector, 1, n}, {"exp_avg_sq", b.exp_avg_sq, vector, 1, n});
}

static void plan_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                       int64_t n_spans, tensor norm, tensor scalars)
{
    double left_out = (double)span_elements(spans, n_spans) / count(b.master) - 1; /* what Muon takes */
    plan_update(x, "adamw", b, norm, scalars);
    plan_moments(x, "adamw", b);
    plan_new_weights(x, "adamw", b);
    move(x, 2 * left_out, b.master);
    move(x, left_out, b.grad);
    move(x, 2 * left_out, b.exp_avg);
    move(x, 2 * left_out, b.exp_avg_sq);
    if (!tensor_is_null(b.working)) {
        move(x, left_out, b.working);
    }
}

static void plan_nesterov(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                          int64_t n_spans, tensor norm, tensor scalars)
{
    double n = (double)span_elements(spans, n_spans), all = count(b.master);
    PLAN(x, "nesterov", 0, 0, {"sums", sums, DTYPE_F64, optim_chunks(spans, n_spans), 1},
         {"norm", norm, DTYPE_F64, 1, tensor_cols(norm)},
         {"scalars", scalars, DTYPE_F64, 1, OPTIM_N_SCALARS});
    move(x, 2 * n / all, b.grad);
    move(x, 2 * n / all, b.exp_avg);
}

static void plan_unit(struct exec *x, tensor out, tensor in, tensor sums)
{
    PLAN(x, "unit", 0, workspace_unit(tensor_rows(sums)), {"out", out, ANY, tensor_rows(in), tensor_cols(in)},
         {"in", in, ANY, tensor_rows(in), tensor_cols(in)}, {"sums", sums, DTYPE_F64, tensor_rows(sums), 1});
}

static void plan_matrix_polynomial(struct exec *x, tensor out, tensor in, tensor square, double a, double b,
                                   double c)
{
    int64_t n = tensor_cols(in);
    int dtype = (int)out.dtype;
    (void)a, (void)b, (void)c;
    PLAN(x, "matrix_polynomial", 0, 0, {"out", out, dtype, n, n}, {"in", in, dtype, n, n},
         {"square", square, dtype, n, n});
}

static void plan_descend(struct exec *x, struct optim_buffers b, const struct optim_span *span, tensor in,
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

const struct ops ops_plan = {
    .name = "plan",
    .fill = plan_fill,
    .cast = plan_cast,
    .quantize = plan_quantize,
    .add = plan_add,
    .sum = plan_sum,
    .find_nonfinite = plan_find_nonfinite,
    .linear = plan_linear,
    .linear_gelu = plan_linear_gelu,
    .linear_backward_input = plan_linear_backward_input,
    .linear_backward_weight = plan_linear_backward_weight,
    .gelu_backward = plan_gelu_backward,
    .tanh = plan_tanh,
    .tanh_backward = plan_tanh_backward,
    .gelu_tanh = plan_gelu_tanh,
    .gelu_tanh_backward = plan_gelu_tanh_backward,
    .residual_add = plan_residual_add,
    .dropout = plan_dropout,
    .embed = plan_embed,
    .embed_backward = plan_embed_backward,
    .layernorm = plan_layernorm,
    .layernorm_backward = plan_layernorm_backward,
    .bias_dropout_add_layernorm = plan_bias_dropout_add_layernorm,
    .bias_dropout_add_layernorm_backward = plan_bias_dropout_add_layernorm_backward,
    .attention = plan_attention,
    .attention_backward = plan_attention_backward,
    .append_rows = plan_append_rows,
    .attention_cached = plan_attention_cached,
    .gather_rows = plan_gather_rows,
    .scatter_add_rows = plan_scatter_add_rows,
    .gather_slice = plan_gather_slice,
    .scatter_add_slice = plan_scatter_add_slice,
    .cross_entropy = plan_cross_entropy,
    .slice_maxima = plan_slice_maxima,
    .slice_sums = plan_slice_sums,
    .slice_cross_entropy = plan_slice_cross_entropy,
    .span_cross_entropy = plan_span_cross_entropy,
    .pointwise = plan_pointwise,
    .clear = plan_clear,
    .squares = plan_squares,
    .zeros = plan_zeros,
    .norm_of = plan_norm_of,
    .lamb_direction = plan_lamb_direction,
    .lamb_apply = plan_lamb_apply,
    .lans_direction = plan_lans_direction,
    .lans_apply = plan_lans_apply,
    .adamw = plan_adamw,
    .nesterov = plan_nesterov,
    .unit = plan_unit,
    .matrix_polynomial = plan_matrix_polynomial,
    .descend = plan_descend,
};
