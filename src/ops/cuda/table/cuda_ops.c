/* cuda_ops: the table of operations on a CUDA device.  Each slot checks dtypes and strides, takes the tensors
 * apart and launches kernels (launch.h) or products (cuda_linear.h); nothing waits for the device except the
 * timing of a new shape (cuda_products.h, cuda_attention_choice.h).  The kernels check indices and record a
 * wrong one; the next copy to the host reports it. */
#include "ops/cuda/table/cuda_ops.h"

#include "core/fp8.h"
#include "ops/accept.h"
#include "ops/cuda/choice/cuda_attention_choice.h"
#include "ops/cuda/table/cuda_context.h"
#include "ops/cuda/table/cuda_linear.h"
#include "ops/cuda/table/cuda_rounding.h"
#include "ops/workspace.h"

_Static_assert((int)LAUNCH_GRAD_SCALE == (int)OPTIM_GRAD_SCALE &&
                   (int)LAUNCH_RATIO_OF_ALL == (int)OPTIM_RATIO_OF_ALL &&
                   (int)LAUNCH_N_SCALARS == (int)OPTIM_N_SCALARS &&
                   (int)LAUNCH_CORRECTION2 == (int)OPTIM_CORRECTION2,
               "launch_scalar is optim_scalar");

_Static_assert((int)LAUNCH_CACHE_PAGE == (int)OPS_CACHE_PAGE, "one size of pages");

_Static_assert((int)LAUNCH_MOST_MAXIMA == (int)TENSOR_MAXIMA, "maxima are those of tensors");

/* The launch context of this op's kernels, with `scratch` bytes. */
static struct launch launch_of(struct exec *x, size_t scratch)
{
    struct launch l = ((struct cuda_context *)x->context)->launch;
    l.dropout_key = x->dropout_key;
    l.scratch = scratch > 0 ? exec_scratch(x, scratch) : NULL;
    return l;
}

/* Checks for errors after an op's launches. */
static void finish(struct exec *x, const char *op)
{
    const char *error = cuda_launch_error();
    exec_queued(x, op);
    if (error != NULL) {
        exec_fail(x, STATUS_INTERNAL, op, "the kernel was not launched: %s", error);
    }
}

static struct launch_rows rows_of(tensor t)
{
    return (struct launch_rows){t.data, t.n_dims > 1 ? t.strides[t.n_dims - 2] : tensor_cols(t)};
}

/* Rows of all heads side by side. */
static struct launch_rows heads_of(tensor t)
{
    return (struct launch_rows){t.data, t.strides[0]};
}

enum { UNKNOWN_TYPE = -1 };

static int known_type(enum dtype t)
{
    static const int types[] = {
        [DTYPE_F32] = LAUNCH_F32,  [DTYPE_BF16] = LAUNCH_BF16,  [DTYPE_F16] = LAUNCH_F16,
        [DTYPE_F64] = LAUNCH_F64,  [DTYPE_I32] = LAUNCH_I32,    [DTYPE_I64] = UNKNOWN_TYPE,
        [DTYPE_U8] = UNKNOWN_TYPE, [DTYPE_E4M3] = UNKNOWN_TYPE, [DTYPE_E5M2] = UNKNOWN_TYPE,
        [DTYPE_I8] = UNKNOWN_TYPE};
    return types[t];
}

/* The launch type of a tensor that was accepted. */
static enum launch_type type_of(tensor t)
{
    return (enum launch_type)known_type(t.dtype);
}

/* For ops that take every dtype that kernels support. */
static bool accept_type(struct exec *x, const char *op, tensor t)
{
    if (!failed(x->status) && known_type(t.dtype) == UNKNOWN_TYPE) {
        exec_fail(x, STATUS_USAGE, op, "the device does not compute in %s", dtype_name(t.dtype));
    }
    return !failed(x->status);
}

static struct launch_dropout dropout_of(struct dropout d, tensor row_keys)
{
    return (struct launch_dropout){dropout_threshold(d), d.site, (float)dropout_scale(d), row_keys.data};
}

static void cuda_fill(struct exec *x, tensor out, double value)
{
    if (accept_type(x, "fill", out)) {
        struct launch l = launch_of(x, 0);
        cuda_launch_fill(&l, rows_of(out), type_of(out), tensor_rows(out), tensor_cols(out), value);
        finish(x, "fill");
    }
}

static void cuda_cast(struct exec *x, tensor out, tensor in)
{
    if (accept_type(x, "cast", out) && accept_type(x, "cast", in)) {
        struct launch l = launch_of(x, 0);
        cuda_launch_cast(&l, rows_of(out), type_of(out), rows_of(in), type_of(in), tensor_rows(out),
                         tensor_cols(out));
        finish(x, "cast");
    }
}

static void cuda_add(struct exec *x, tensor out, tensor in)
{
    if (accept_tensors(x, "add", ACCEPT_LIST(out), ACCEPT_LIST(out, in))) {
        struct launch l = launch_of(x, 0);
        cuda_launch_add(&l, out.data, in.data, tensor_count(out));
        finish(x, "add");
    }
}

static void cuda_sum(struct exec *x, tensor total, tensor in)
{
    if (accept_type(x, "sum", in)) {
        struct launch l = launch_of(x, 0);
        cuda_launch_sum(&l, total.data, in.data, type_of(in), tensor_count(in));
        finish(x, "sum");
    }
}

static void cuda_find_nonfinite(struct exec *x, tensor index, tensor in)
{
    if (accept_type(x, "find_nonfinite", in)) {
        struct launch l = launch_of(x, 0);
        cuda_launch_find_nonfinite(&l, index.data, rows_of(in), type_of(in), tensor_rows(in),
                                   tensor_cols(in));
        finish(x, "find_nonfinite");
    }
}

/* Keeps the result in bf16 or fp32, for devices without products in fp8. */
static bool accept_held(struct launch_rounding *to, struct exec *x, const struct fp8_factor *f, tensor in,
                        enum dtype format)
{
    *to = (struct launch_rounding){.rows = rows_of(f->rows),
                                   .format = format == DTYPE_E4M3 ? LAUNCH_E4M3 : LAUNCH_E5M2,
                                   .scale = f->scale.data,
                                   .history = f->history.data};
    return accept_tensors(x, "quantize", ACCEPT_LIST(f->rows, in), ACCEPT_LIST(f->scale, f->history));
}

static void cuda_quantize(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history,
                          tensor dbias, tensor in, enum dtype format)
{
    struct fp8_factor f = {rows, columns, scale, history};
    struct launch_quantize q = {.held = !dtype_is_fp8(rows.dtype) && tensor_is_null(columns)};
    if (!(q.held ? accept_held(&q.to, x, &f, in, format)
                 : cuda_rounding_accept(&q.to, x, "quantize", &f, in, format)) ||
        !accept_tensors(x, "quantize", ACCEPT_LIST(in), ACCEPT_LIST(dbias))) {
        return;
    }
    q.in = rows_of(in);
    q.maxima = tensor_maxima(in);
    q.type = type_of(in);
    q.n_rows = tensor_rows(in), q.n_cols = tensor_cols(in);
    q.dbias = dbias.data;
    q.runs = workspace_runs(q.n_rows, q.n_cols);
    struct launch l = launch_of(x, workspace_quantize(q.n_rows, q.n_cols, !tensor_is_null(dbias)));
    cuda_launch_quantize(&l, &q);
    finish(x, "quantize");
}

static void cuda_gelu_backward(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre)
{
    const struct launch_rounding *to;
    struct launch_rounding storage;
    if (accept_tensors(x, "gelu_backward", ACCEPT_LIST(dpre, dout, pre), ACCEPT_LIST(dbias)) &&
        cuda_rounding_of_result(&to, &storage, x, "gelu_backward", dpre, ACCEPT_LIST(dout, pre),
                                DTYPE_E5M2)) {
        int64_t rows = tensor_rows(pre), cols = tensor_cols(pre), runs = workspace_runs(rows, cols);
        struct launch l = launch_of(x, workspace_column_sum(rows, cols));
        if (to != NULL) {
            cuda_launch_gelu_backward_rounded(&l, to, dbias.data, dout.data, pre.data, type_of(pre), rows,
                                              cols, runs);
        } else {
            cuda_launch_gelu_backward(&l, dpre.data, dbias.data, dout.data, pre.data, type_of(pre), rows,
                                      cols, runs, tensor_maxima(dpre));
        }
        finish(x, "gelu_backward");
    }
}

static void cuda_dropout(struct exec *x, tensor out, tensor in, tensor row_keys, struct dropout drop)
{
    if (accept_tensors(x, "dropout", ACCEPT_LIST(out, in), NULL, 0)) {
        struct launch l = launch_of(x, 0);
        struct launch_dropout d = dropout_of(drop, row_keys);
        cuda_launch_dropout(&l, out.data, in.data, type_of(in), tensor_rows(in), tensor_cols(in), &d);
        finish(x, "dropout");
    }
}

static void cuda_tanh(struct exec *x, tensor out, tensor in)
{
    if (accept_tensors(x, "tanh", ACCEPT_LIST(out, in), NULL, 0)) {
        struct launch l = launch_of(x, 0);
        cuda_launch_tanh(&l, out.data, in.data, type_of(in), tensor_count(in));
        finish(x, "tanh");
    }
}

static void cuda_tanh_backward(struct exec *x, tensor din, tensor dout, tensor out)
{
    if (accept_tensors(x, "tanh_backward", ACCEPT_LIST(din, dout, out), NULL, 0)) {
        struct launch l = launch_of(x, 0);
        cuda_launch_tanh_backward(&l, din.data, dout.data, out.data, type_of(out), tensor_count(out));
        finish(x, "tanh_backward");
    }
}

static void cuda_gelu_tanh(struct exec *x, tensor out, tensor pre)
{
    if (accept_tensors(x, "gelu_tanh", ACCEPT_LIST(out, pre), NULL, 0)) {
        struct launch l = launch_of(x, 0);
        cuda_launch_gelu_tanh(&l, out.data, pre.data, type_of(pre), tensor_count(pre));
        finish(x, "gelu_tanh");
    }
}

static void cuda_gelu_tanh_backward(struct exec *x, tensor dpre, tensor dout, tensor pre)
{
    if (accept_tensors(x, "gelu_tanh_backward", ACCEPT_LIST(dpre, dout, pre), NULL, 0)) {
        struct launch l = launch_of(x, 0);
        cuda_launch_gelu_tanh_backward(&l, dpre.data, dout.data, pre.data, type_of(pre), tensor_count(pre));
        finish(x, "gelu_tanh_backward");
    }
}

static void cuda_residual_add(struct exec *x, tensor out, tensor residual, tensor branch)
{
    if (accept_tensors(x, "residual_add", ACCEPT_LIST(branch), NULL, 0) &&
        accept_stream(x, "residual_add", branch.dtype, ACCEPT_LIST(out, residual))) {
        struct launch l = launch_of(x, 0);
        cuda_launch_residual_add(&l, out.data, residual.data, type_of(out), branch.data, type_of(branch),
                                 tensor_count(out));
        finish(x, "residual_add");
    }
}

static struct launch_norm norm_of(tensor in, tensor mean, tensor rstd, tensor gamma, tensor beta, double eps)
{
    return (struct launch_norm){tensor_rows(in), tensor_cols(in), gamma.data, beta.data,
                                mean.data,       rstd.data,       (float)eps, NULL};
}

static void cuda_layernorm(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma,
                           tensor beta, double eps)
{
    if (accept_tensors(x, "layernorm", ACCEPT_LIST(out), ACCEPT_LIST(mean, rstd, gamma, beta)) &&
        accept_stream(x, "layernorm", out.dtype, ACCEPT_LIST(in))) {
        struct launch l = launch_of(x, 0);
        struct launch_norm n = norm_of(in, mean, rstd, gamma, beta, eps);
        cuda_launch_layernorm(&l, &n, out.data, type_of(out), in.data, type_of(in));
        finish(x, "layernorm");
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
    struct launch l = launch_of(x, workspace_layernorm_backward(n->rows, n->cols));
    b->runs = workspace_at_most(n->rows, WORKSPACE_NORM_RUNS);
    b->din = din.data, b->din_type = type_of(din);
    b->in = in.data, b->stream_type = type_of(in);
    b->dout = dout.data;
    cuda_launch_layernorm_backward(&l, n, b, type_of(dout));
    finish(x, op);
}

static void cuda_layernorm_backward(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout,
                                    tensor in, tensor mean, tensor rstd, tensor gamma)
{
    if (accept_tensors(x, "layernorm_backward", ACCEPT_LIST(din, dout),
                       ACCEPT_LIST(dgamma, dbeta, mean, rstd, gamma)) &&
        accept_stream(x, "layernorm_backward", dout.dtype, ACCEPT_LIST(in))) {
        struct launch_norm n = norm_of(in, mean, rstd, gamma, NULL_TENSOR, 0);
        struct launch_norm_backward b = {.dgamma = dgamma.data, .dbeta = dbeta.data};
        norm_backward(x, "layernorm_backward", &n, &b, din, dout, in);
    }
}

static void cuda_bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd,
                                            tensor in, tensor bias, tensor residual, tensor gamma,
                                            tensor beta, double eps, tensor row_keys, struct dropout drop)
{
    const char *op = "bias_dropout_add_layernorm";
    const struct launch_rounding *to;
    struct launch_rounding storage;
    if (accept_tensors(x, op, ACCEPT_LIST(out, in), ACCEPT_LIST(mean, rstd, bias, gamma, beta)) &&
        accept_stream(x, op, out.dtype, ACCEPT_LIST(sum, residual)) &&
        cuda_rounding_of_result(&to, &storage, x, op, out, ACCEPT_LIST(out), DTYPE_E4M3)) {
        struct launch l = launch_of(x, 0);
        struct launch_norm n = norm_of(in, mean, rstd, gamma, beta, eps);
        struct launch_dropout d = dropout_of(drop, row_keys);
        n.maxima = tensor_maxima(out);
        cuda_launch_bias_dropout_add_layernorm(&l, &n, to, out.data, sum.data, in.data, bias.data,
                                               residual.data, type_of(in), type_of(residual), &d);
        finish(x, op);
    }
}

static void cuda_bias_dropout_add_layernorm_backward(struct exec *x, tensor dresidual, tensor din,
                                                     tensor dbias, tensor dgamma, tensor dbeta, tensor dout,
                                                     tensor sum, tensor mean, tensor rstd, tensor gamma,
                                                     tensor row_keys, struct dropout drop, bool accumulate)
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
        struct launch_norm n = norm_of(sum, mean, rstd, gamma, NULL_TENSOR, 0);
        struct launch_dropout d = dropout_of(drop, row_keys);
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

static void cuda_embed(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids,
                       tensor types, tensor positions, tensor word, tensor position, tensor type,
                       tensor gamma, tensor beta, double eps, tensor row_keys, struct dropout drop)
{
    if (accept_tensors(x, "embed", ACCEPT_LIST(out, sum, word, position, type),
                       ACCEPT_LIST(mean, rstd, gamma, beta))) {
        struct launch l = launch_of(x, 0);
        struct launch_norm n = norm_of(out, mean, rstd, gamma, beta, eps);
        struct launch_dropout d = dropout_of(drop, row_keys);
        struct launch_tables t = {ids.data,          types.data,        positions.data,
                                  tensor_rows(word), tensor_rows(type), tensor_rows(position)};
        n.maxima = tensor_maxima(out);
        cuda_launch_embed(&l, &n, &t, out.data, sum.data, word.data, position.data, type.data, type_of(out),
                          &d);
        finish(x, "embed");
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
    struct launch l = launch_of(x, workspace_scatter_add(rows, cols));
    cuda_launch_scatter_add(&l, rows_of(table), type_of(table), here, rows_of(in), type_of(in), index.data,
                            rows, cols);
}

static void cuda_embed_backward(struct exec *x, tensor dsum, tensor dword, tensor dposition, tensor dtype,
                                tensor dgamma, tensor dbeta, tensor dout, tensor sum, tensor mean,
                                tensor rstd, tensor ids, tensor types, tensor positions, tensor gamma,
                                tensor row_keys, struct dropout drop)
{
    if (accept_tensors(x, "embed_backward", ACCEPT_LIST(dsum, dout, sum),
                       ACCEPT_LIST(dword, dposition, dtype, dgamma, dbeta, mean, rstd, gamma))) {
        struct launch_norm n = norm_of(sum, mean, rstd, gamma, NULL_TENSOR, 0);
        struct launch_dropout d = dropout_of(drop, row_keys);
        struct launch_norm_backward b = {.dgamma = dgamma.data, .dbeta = dbeta.data, .before = &d};
        norm_backward(x, "embed_backward", &n, &b, dsum, dout, sum);
        scatter(x, dword, all_rows(dword), dsum, ids);
        scatter(x, dposition, all_rows(dposition), dsum, positions);
        scatter(x, dtype, all_rows(dtype), dsum, types);
        finish(x, "embed_backward");
    }
}

static struct launch_attention attention_of(const struct attention *a, tensor q, tensor k)
{
    return (struct launch_attention){.n_rows_q = q.dims[0],
                                     .n_rows_kv = k.dims[0],
                                     .n_sequences = tensor_count(a->cu_seqlens_q) - 1,
                                     .n_heads = q.dims[1],
                                     .head_size = q.dims[2],
                                     .max_seqlen_q = a->max_seqlen_q,
                                     .max_seqlen_kv = a->max_seqlen_kv,
                                     .cu_q = a->cu_seqlens_q.data,
                                     .cu_kv = a->cu_seqlens_kv.data,
                                     .slopes = a->alibi_slopes.data,
                                     .first_head = (int)a->first_head,
                                     .scale = (float)a->scale,
                                     .causal = a->causal,
                                     .dropout = dropout_of(a->dropout, a->row_keys),
                                     .bits = dropout_threshold(a->dropout) > 0 ? a->bits.data : NULL,
                                     .bit_cols = tensor_is_null(a->bits) ? 0 : tensor_cols(a->bits)};
}

static bool accept_sizes(struct exec *x, const char *op, const struct attention *a, tensor q)
{
    enum { MOST_HEAD_SIZE = 256, MOST_IN_GRID = 65535 };
    if (q.dims[2] > MOST_HEAD_SIZE || q.dims[1] > MOST_IN_GRID ||
        tensor_count(a->cu_seqlens_q) - 1 > MOST_IN_GRID) {
        exec_fail(x, STATUS_USAGE, op,
                  "attention takes at most %d sequences and %d heads of size %d, but there are %lld "
                  "sequences and %lld heads of size %lld",
                  MOST_IN_GRID, MOST_IN_GRID, MOST_HEAD_SIZE, (long long)tensor_count(a->cu_seqlens_q) - 1,
                  (long long)q.dims[1], (long long)q.dims[2]);
    }
    return !failed(x->status);
}

static bool accept_attention(struct exec *x, const char *op, const struct attention *a, tensor q)
{
    if (!tensor_is_null(a->block_table)) {
        exec_fail(x, STATUS_USAGE, op, "attention_cached reads pages, attention reads the stream");
    }
    return accept_sizes(x, op, a, q);
}

/* Runs the only kernel that competes, or the fastest. */
static void run_attention(struct exec *x, const char *op, const struct attention_call *call)
{
    const struct launch_attention *s = &call->sizes;
    int asked_for = ((struct cuda_context *)x->context)->attention_asked_for;
    struct launch l = launch_of(x, 0);
    struct attention_candidates a = attention_candidates_of(
        call->type, s->head_size, s->max_seqlen_q > s->max_seqlen_kv ? s->max_seqlen_q : s->max_seqlen_kv,
        attention_is_aligned(call), call->backward, asked_for);
    enum launch_attention_kernel kernel = a.kernels[0];
    bool has_work = s->n_sequences > 0 && s->max_seqlen_q > 0 && s->max_seqlen_kv > 0;
    if (a.n > 1 && has_work && !cuda_attention_choose(&kernel, x, op, &l, call, &a)) {
        return;
    }
    attention_launch(&l, kernel, call);
    x->served_by = attention_served_by(kernel);
    x->served_why = attention_served_why(call, kernel, asked_for);
    finish(x, op);
}

static void cuda_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v,
                           struct attention a)
{
    if (accept_tensors(x, "attention", ACCEPT_LIST(out, q, k, v), ACCEPT_LIST(lse)) &&
        accept_attention(x, "attention", &a, q)) {
        run_attention(x, "attention",
                      &(struct attention_call){.type = type_of(q),
                                               .sizes = attention_of(&a, q, k),
                                               .rows = {.q = heads_of(q),
                                                        .k = heads_of(k),
                                                        .v = heads_of(v),
                                                        .out = heads_of(out),
                                                        .lse = lse.data}});
    }
}

/* Scratch for sums of columns: first the totals of runs that are only timed. */
static void add_sums(struct exec *x, struct attention_call *call, tensor dbias)
{
    const struct launch_attention *s = &call->sizes;
    int64_t sums = 3 * s->n_heads * s->head_size;
    call->rows.dbias = dbias.data;
    call->rows.instead =
        exec_scratch(x, workspace_attention_sums(s->n_rows_q, s->n_rows_kv, sums, s->n_sequences,
                                                 s->max_seqlen_q, s->max_seqlen_kv));
    call->rows.partial_sums = call->rows.instead + sums;
    call->rows.runs_q = workspace_runs(s->n_rows_q, sums / 3);
    call->rows.runs_kv = workspace_runs(s->n_rows_kv, sums / 3);
}

static void cuda_attention_backward(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias,
                                    tensor dout, tensor out, tensor lse, tensor q, tensor k, tensor v,
                                    struct attention a)
{
    const char *op = "attention_backward";
    if (accept_tensors(x, op, ACCEPT_LIST(dq, dk, dv, dout, out, q, k, v), ACCEPT_LIST(lse, dbias)) &&
        accept_attention(x, op, &a, q)) {
        struct attention_call call = {
            .backward = true,
            .type = type_of(q),
            .sizes = attention_of(&a, q, k),
            .rows = {heads_of(q), heads_of(k), heads_of(v), heads_of(out), heads_of(dout), heads_of(dq),
                     heads_of(dk), heads_of(dv), lse.data,
                     .tiles = workspace_attention_tiles(a.max_seqlen_q, a.max_seqlen_kv)}};
        if (!tensor_is_null(dbias)) {
            add_sums(x, &call, dbias);
        }
        run_attention(x, op, &call);
    }
}

static struct launch_cached cached_of(tensor keys, tensor values, tensor like, tensor block_table)
{
    return (struct launch_cached){.keys = keys.data,
                                  .values = values.data,
                                  .n_pages = keys.dims[0] / like.dims[1],
                                  .n_heads = like.dims[1],
                                  .head_size = like.dims[2],
                                  .block_table = block_table.data,
                                  .table_width = tensor_is_null(block_table) ? 0 : tensor_cols(block_table)};
}

static void cuda_append_rows(struct exec *x, tensor keys, tensor values, tensor k, tensor v, tensor slots)
{
    const char *op = "append_rows";
    if (accept_tensors(x, op, ACCEPT_LIST(k, v, keys, values), NULL, 0) &&
        accept_pages(x, op, keys, values, k)) {
        struct launch l = launch_of(x, 0);
        struct launch_cached c = cached_of(keys, values, k, NULL_TENSOR);
        cuda_launch_append(&l, &c, heads_of(k), heads_of(v), type_of(k), slots.data, k.dims[0]);
        finish(x, op);
    }
}

static void cuda_attention_cached(struct exec *x, tensor out, tensor q, tensor keys, tensor values,
                                  struct attention a)
{
    const char *op = "attention_cached";
    if (accept_tensors(x, op, ACCEPT_LIST(out, q, keys, values), ACCEPT_LIST(a.alibi_slopes)) &&
        accept_pages(x, op, keys, values, q) && accept_sizes(x, op, &a, q)) {
        struct launch l = launch_of(x, 0);
        struct launch_attention sizes = attention_of(&a, q, keys);
        struct launch_cached c = cached_of(keys, values, q, a.block_table);
        cuda_launch_attention_cached(&l, &sizes, &c, heads_of(out), heads_of(q), type_of(q));
        finish(x, op);
    }
}

static void gather(struct exec *x, const char *op, tensor out, tensor in, tensor rows,
                   struct launch_slice here)
{
    if (accept_copied(x, op, out, in)) {
        struct launch l = launch_of(x, 0);
        enum launch_type type = in.dtype == DTYPE_I32 ? LAUNCH_F32 : type_of(in); /* copies bits */
        cuda_launch_gather(&l, rows_of(out), rows_of(in), type, rows.data, tensor_rows(out), here,
                           tensor_cols(in));
        finish(x, op);
    }
}

static void cuda_gather_rows(struct exec *x, tensor out, tensor in, tensor rows)
{
    gather(x, "gather_rows", out, in, rows, all_rows(in));
}

static void cuda_gather_slice(struct exec *x, tensor out, tensor in, tensor rows, int64_t first,
                              int64_t n_rows)
{
    gather(x, "gather_slice", out, in, rows, (struct launch_slice){first, tensor_rows(in), n_rows});
}

static void scatter_add(struct exec *x, const char *op, tensor din, tensor dout, tensor rows,
                        struct launch_slice here)
{
    if (accept_tensors(x, op, ACCEPT_LIST(dout), NULL, 0) &&
        accept_tensors(x, op, ACCEPT_LIST(din), NULL, 0)) {
        scatter(x, din, here, dout, rows);
        finish(x, op);
    }
}

static void cuda_scatter_add_rows(struct exec *x, tensor din, tensor dout, tensor rows)
{
    scatter_add(x, "scatter_add_rows", din, dout, rows, all_rows(din));
}

static void cuda_scatter_add_slice(struct exec *x, tensor din, tensor dout, tensor rows, int64_t first,
                                   int64_t n_rows)
{
    scatter_add(x, "scatter_add_slice", din, dout, rows,
                (struct launch_slice){first, tensor_rows(din), n_rows});
}

static void cuda_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                               tensor labels, int64_t n_classes, tensor scale)
{
    if (accept_type(x, "cross_entropy", dlogits)) {
        struct launch l = launch_of(x, 0);
        cuda_launch_cross_entropy(&l, loss.data, correct.data,
                                  tensor_is_null(dlogits) ? (struct launch_rows){0} : rows_of(dlogits),
                                  type_of(dlogits), rows_of(logits), labels.data, tensor_rows(logits),
                                  tensor_cols(logits), n_classes, scale.data);
        finish(x, "cross_entropy");
    }
}

/* Logits from class `first` on; labels may be null. */
static struct launch_classes classes_of(tensor logits, tensor labels, int64_t first, int64_t n_classes)
{
    int64_t cols = tensor_cols(logits), n = n_classes - first;
    return (struct launch_classes){.logits = rows_of(logits),
                                   .labels = labels.data,
                                   .rows = tensor_rows(logits),
                                   .cols = cols,
                                   .here = n < 0      ? 0
                                           : n < cols ? n
                                                      : cols,
                                   .first = first,
                                   .n_classes = n_classes};
}

static void cuda_slice_maxima(struct exec *x, tensor maxima, tensor logits, int64_t first, int64_t n_classes)
{
    if (!failed(x->status)) {
        struct launch l = launch_of(x, 0);
        struct launch_classes c = classes_of(logits, NULL_TENSOR, first, n_classes);
        cuda_launch_slice_maxima(&l, maxima.data, &c);
        finish(x, "slice_maxima");
    }
}

static void cuda_slice_sums(struct exec *x, tensor sums, tensor logits, tensor maxima, tensor labels,
                            int64_t first, int64_t n_classes)
{
    if (!failed(x->status)) {
        struct launch l = launch_of(x, 0);
        struct launch_classes c = classes_of(logits, labels, first, n_classes);
        cuda_launch_slice_sums(&l, sums.data, maxima.data, &c);
        finish(x, "slice_sums");
    }
}

static void cuda_slice_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits,
                                     tensor logits, tensor maxima, tensor sums, tensor labels, int64_t first,
                                     int64_t n_classes, tensor scale)
{
    if (accept_type(x, "slice_cross_entropy", dlogits)) {
        struct launch l = launch_of(x, 0);
        struct launch_classes c = classes_of(logits, labels, first, n_classes);
        cuda_launch_slice_cross_entropy(&l, loss.data, correct.data,
                                        tensor_is_null(dlogits) ? (struct launch_rows){0} : rows_of(dlogits),
                                        type_of(dlogits), maxima.data, sums.data, &c, scale.data);
        finish(x, "slice_cross_entropy");
    }
}

static void cuda_span_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits,
                                    tensor logits, tensor cu_seqlens, tensor labels, tensor scale)
{
    if (!failed(x->status)) {
        struct launch l = launch_of(x, 0);
        cuda_launch_span_cross_entropy(&l, loss.data, correct.data, dlogits.data, type_of(dlogits),
                                       logits.data, cu_seqlens.data, labels.data, tensor_rows(labels),
                                       tensor_rows(logits), scale.data);
        finish(x, "span_cross_entropy");
    }
}

static void cuda_pointwise(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                           tensor targets, enum pointwise_loss kind, tensor scale)
{
    if (accept_type(x, "pointwise", dlogits)) {
        struct launch l = launch_of(x, 0);
        cuda_launch_pointwise(&l, loss.data, correct.data, dlogits.data, type_of(dlogits), logits.data,
                              targets.data, tensor_count(logits), kind == POINTWISE_SIGMOID, scale.data);
        finish(x, "pointwise");
    }
}

static void cuda_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans)
{
    if (accept_tensors(x, "clear", ACCEPT_LIST(flat), NULL, 0)) {
        const struct cuda_spans *s = cuda_spans_of(x, "clear", spans, n_spans);
        if (s != NULL) {
            struct launch l = launch_of(x, 0);
            cuda_launch_clear(&l, flat.data, &s->table);
            finish(x, "clear");
        }
    }
}

static void measure_chunks(struct exec *x, const char *op, tensor sums, tensor in,
                           const struct optim_span *spans, int64_t n_spans,
                           void (*launch_op)(const struct launch *l, double *sums, const float *in,
                                             const struct launch_spans *spans))
{
    if (accept_tensors(x, op, ACCEPT_LIST(in), NULL, 0)) {
        const struct cuda_spans *s = cuda_spans_of(x, op, spans, n_spans);
        if (s != NULL) {
            struct launch l = launch_of(x, 0);
            launch_op(&l, sums.data, in.data, &s->table);
            finish(x, op);
        }
    }
}

static void cuda_squares(struct exec *x, tensor sums, tensor in, const struct optim_span *spans,
                         int64_t n_spans)
{
    measure_chunks(x, "squares", sums, in, spans, n_spans, cuda_launch_squares);
}

static void cuda_zeros(struct exec *x, tensor sums, tensor in, const struct optim_span *spans,
                       int64_t n_spans)
{
    measure_chunks(x, "zeros", sums, in, spans, n_spans, cuda_launch_zeros);
}

static void cuda_norm_of(struct exec *x, tensor norm, tensor sums)
{
    if (!failed(x->status)) {
        int64_t n = tensor_count(sums);
        struct launch l = launch_of(x, workspace_norm_of(n));
        cuda_launch_norm_of(&l, norm.data, sums.data, n, workspace_runs_of_sums(n));
        finish(x, "norm_of");
    }
}

/* Fills what every optimizer needs; false after a failure. */
static bool prepare_optim(struct exec *x, const char *op, struct launch *l, struct launch_optim *o,
                          struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                          tensor sums, tensor norm, tensor scalars)
{
    if (!accept_tensors(x, op, ACCEPT_LIST(b.master, b.grad, b.exp_avg, b.exp_avg_sq), NULL, 0)) {
        return false;
    }
    const struct cuda_spans *s = cuda_spans_of(x, op, spans, n_spans);
    if (s == NULL) {
        return false;
    }
    *l = launch_of(x, 0);
    *o = (struct launch_optim){.master = b.master.data,
                               .grad = b.grad.data,
                               .exp_avg = b.exp_avg.data,
                               .exp_avg_sq = b.exp_avg_sq.data,
                               .working = b.working.data,
                               .working_type = type_of(b.working),
                               .spans = s->table,
                               .norm = norm.data,
                               .n_norm = tensor_count(norm),
                               .scalars = scalars.data,
                               .sums = sums.data};
    return true;
}

static void cuda_lamb_direction(struct exec *x, tensor sums, struct optim_buffers b,
                                const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars)
{
    struct launch l;
    struct launch_optim o;
    if (prepare_optim(x, "lamb_direction", &l, &o, b, spans, n_spans, sums, norm, scalars)) {
        cuda_launch_lamb_direction(&l, &o);
        finish(x, "lamb_direction");
    }
}

/* The second half of an update that needs `workspace` bytes of ratios. */
static void apply(struct exec *x, const char *op, size_t workspace,
                  void (*launch)(const struct launch *, const struct launch_optim *), struct optim_buffers b,
                  const struct optim_span *spans, int64_t n_spans, tensor sums, tensor norm, tensor scalars)
{
    struct launch l;
    struct launch_optim o;
    if (prepare_optim(x, op, &l, &o, b, spans, n_spans, sums, norm, scalars)) {
        o.ratios = exec_scratch(x, workspace);
        launch(&l, &o);
        finish(x, op);
    }
}

static void cuda_lamb_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                            int64_t n_spans, tensor sums, tensor norm, tensor scalars)
{
    apply(x, "lamb_apply", workspace_lamb_apply(n_spans), cuda_launch_lamb_apply, b, spans, n_spans, sums,
          norm, scalars);
}

static void cuda_lans_direction(struct exec *x, tensor sums, struct optim_buffers b,
                                const struct optim_span *spans, int64_t n_spans, tensor squares, tensor norm,
                                tensor scalars)
{
    struct launch l;
    struct launch_optim o;
    if (prepare_optim(x, "lans_direction", &l, &o, b, spans, n_spans, sums, norm, scalars)) {
        o.squares = squares.data;
        o.factors = exec_scratch(x, workspace_lans_direction(n_spans));
        cuda_launch_lans_direction(&l, &o);
        finish(x, "lans_direction");
    }
}

static void cuda_lans_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                            int64_t n_spans, tensor sums, tensor norm, tensor scalars)
{
    apply(x, "lans_apply", workspace_lans_apply(n_spans), cuda_launch_lans_apply, b, spans, n_spans, sums,
          norm, scalars);
}

static void cuda_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                       int64_t n_spans, tensor norm, tensor scalars)
{
    struct launch l;
    struct launch_optim o;
    if (prepare_optim(x, "adamw", &l, &o, b, spans, n_spans, NULL_TENSOR, norm, scalars)) {
        cuda_launch_adamw(&l, &o);
        finish(x, "adamw");
    }
}

static void cuda_nesterov(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                          int64_t n_spans, tensor norm, tensor scalars)
{
    struct launch l;
    struct launch_optim o;
    if (prepare_optim(x, "nesterov", &l, &o, b, spans, n_spans, sums, norm, scalars)) {
        cuda_launch_nesterov(&l, &o);
        finish(x, "nesterov");
    }
}

static void cuda_unit(struct exec *x, tensor out, tensor in, tensor sums)
{
    if (accept_tensors(x, "unit", ACCEPT_LIST(out), ACCEPT_LIST(in))) {
        int64_t n = tensor_count(sums);
        struct launch l = launch_of(x, workspace_unit(n));
        double *norm = (double *)(void *)l.scratch;
        l.scratch = (float *)(void *)(norm + 1);
        cuda_launch_norm_of(&l, norm, sums.data, n, workspace_runs_of_sums(n));
        cuda_launch_unit(&l, out.data, type_of(out), in.data, norm, tensor_count(in));
        finish(x, "unit");
    }
}

static void cuda_matrix_polynomial(struct exec *x, tensor out, tensor in, tensor square, double a, double b,
                                   double c)
{
    if (accept_tensors(x, "matrix_polynomial", ACCEPT_LIST(out, in, square), NULL, 0)) {
        struct launch l = launch_of(x, 0);
        cuda_launch_matrix_polynomial(&l, out.data, in.data, square.data, type_of(out), tensor_rows(out), a,
                                      b, c);
        finish(x, "matrix_polynomial");
    }
}

static void cuda_descend(struct exec *x, struct optim_buffers b, const struct optim_span *span, tensor in,
                         tensor norm, tensor scalars)
{
    if (accept_tensors(x, "descend", ACCEPT_LIST(in), ACCEPT_LIST(b.master))) {
        struct launch l = launch_of(x, 0);
        size_t working_bytes = tensor_is_null(b.working) ? 0 : dtype_bytes(b.working.dtype);
        struct launch_optim o = {.master = (float *)b.master.data + span->offset,
                                 .working = working_bytes == 0 ? NULL
                                                               : (char *)b.working.data +
                                                                     (size_t)span->offset * working_bytes,
                                 .working_type = type_of(b.working),
                                 .norm = norm.data,
                                 .n_norm = tensor_count(norm),
                                 .scalars = scalars.data};
        cuda_launch_descend(&l, &o, in.data, type_of(in), span->n, span->rate, span->weight_decay);
        finish(x, "descend");
    }
}

const struct ops ops_cuda = {
    .name = "cuda",
    .fill = cuda_fill,
    .cast = cuda_cast,
    .quantize = cuda_quantize,
    .add = cuda_add,
    .sum = cuda_sum,
    .find_nonfinite = cuda_find_nonfinite,
    .linear = cuda_linear,
    .linear_gelu = cuda_linear_gelu,
    .linear_backward_input = cuda_linear_backward_input,
    .linear_backward_weight = cuda_linear_backward_weight,
    .gelu_backward = cuda_gelu_backward,
    .tanh = cuda_tanh,
    .tanh_backward = cuda_tanh_backward,
    .gelu_tanh = cuda_gelu_tanh,
    .gelu_tanh_backward = cuda_gelu_tanh_backward,
    .residual_add = cuda_residual_add,
    .dropout = cuda_dropout,
    .embed = cuda_embed,
    .embed_backward = cuda_embed_backward,
    .layernorm = cuda_layernorm,
    .layernorm_backward = cuda_layernorm_backward,
    .bias_dropout_add_layernorm = cuda_bias_dropout_add_layernorm,
    .bias_dropout_add_layernorm_backward = cuda_bias_dropout_add_layernorm_backward,
    .attention = cuda_attention,
    .attention_backward = cuda_attention_backward,
    .append_rows = cuda_append_rows,
    .attention_cached = cuda_attention_cached,
    .gather_rows = cuda_gather_rows,
    .scatter_add_rows = cuda_scatter_add_rows,
    .gather_slice = cuda_gather_slice,
    .scatter_add_slice = cuda_scatter_add_slice,
    .cross_entropy = cuda_cross_entropy,
    .slice_maxima = cuda_slice_maxima,
    .slice_sums = cuda_slice_sums,
    .slice_cross_entropy = cuda_slice_cross_entropy,
    .span_cross_entropy = cuda_span_cross_entropy,
    .pointwise = cuda_pointwise,
    .clear = cuda_clear,
    .squares = cuda_squares,
    .zeros = cuda_zeros,
    .norm_of = cuda_norm_of,
    .lamb_direction = cuda_lamb_direction,
    .lamb_apply = cuda_lamb_apply,
    .lans_direction = cuda_lans_direction,
    .lans_apply = cuda_lans_apply,
    .adamw = cuda_adamw,
    .nesterov = cuda_nesterov,
    .unit = cuda_unit,
    .matrix_polynomial = cuda_matrix_polynomial,
    .descend = cuda_descend,
};
