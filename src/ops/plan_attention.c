/* plan_attention: the plan of attention (ops/plan.c). */
#include "ops/plan_slots.h"

#include "ops/attention_bits.h"
#include "ops/plan_wants.h"
#include "ops/workspace.h"

/* Scores that are computed, of queries with the keys that they see.  The bounds of the sequences are not
 * read: they are in the device's memory, or while planning do not exist. */
static double attention_pairs(const struct attention *a, int64_t rows, bool causal)
{
    double all = (a->n_pairs > 0 ? a->n_pairs : (double)rows * (double)a->max_seqlen_kv) * (causal ? 0.5 : 1);
    double near = (double)rows * (double)((causal ? 1 : 2) * a->window + 1);
    return a->window > 0 && near < all ? near : all;
}

static void refuse_uneven_heads(struct exec *x, const char *op, int64_t n_heads, int64_t n_kv_heads)
{
    if (n_heads % n_kv_heads != 0) {
        exec_fail(x, STATUS_USAGE, op, "%lld heads do not divide into %lld of keys and values",
                  (long long)n_heads, (long long)n_kv_heads);
    }
}

void plan_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a)
{
    int64_t rows = tensor_rows(q), kv_rows = tensor_rows(k), d = tensor_cols(q);
    refuse_uneven_heads(x, "attention", q.dims[1], k.dims[1]);
    double flops = 4.0 * attention_pairs(&a, q.dims[0], a.causal) * (double)(q.dims[1] * d);
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

void plan_attention_backward(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias, tensor dout,
                             tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a)
{
    int64_t rows = tensor_rows(q), kv_rows = tensor_rows(k), d = tensor_cols(q);
    int64_t sums = (q.dims[1] + 2 * k.dims[1]) * d;
    int matrix = (int)q.dtype;
    plan_attention(x, out, lse, q, k, v, a);
    /* four more products with the gradients, one of them a second time over the recomputed scores (counted as
     * useful work: twice the forward) */
    double flops = 8.0 * attention_pairs(&a, q.dims[0], a.causal) * (double)(q.dims[1] * d);
    x->totals.flops -= flops / 2; /* the recomputed forward is not useful work */
    PLAN(x, "attention_backward", flops, 0, {"dq", dq, matrix, rows, d}, {"dk", dk, matrix, kv_rows, d},
         {"dv", dv, matrix, kv_rows, d}, {"dout", dout, matrix, rows, d});
    if (!tensor_is_null(dbias)) {
        size_t scratch =
            workspace_attention_sums((struct workspace_sums){q.dims[0], q.dims[1] * d},
                                     (struct workspace_sums){k.dims[0], k.dims[1] * d},
                                     tensor_count(a.cu_seqlens_q) - 1, a.max_seqlen_q, a.max_seqlen_kv);
        PLAN(x, "attention_backward", 0, scratch, {"dbias", dbias, (int)dtype_of_vectors(q.dtype), 1, sums});
    }
}

void plan_append_rows(struct exec *x, tensor keys, tensor values, tensor k, tensor v, tensor slots)
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
void plan_attention_cached(struct exec *x, tensor out, tensor q, tensor keys, tensor values,
                           struct attention a)
{
    int64_t rows = tensor_rows(q), d = tensor_cols(q), page_rows = keys.dims[0];
    int64_t n_sequences = tensor_cols(a.cu_seqlens_q) - 1;
    double flops = 4.0 * attention_pairs(&a, q.dims[0], false) * (double)(q.dims[1] * d);
    size_t scratch =
        workspace_attention_cached(q.dims[0], n_sequences, q.dims[1], q.dims[2], a.max_seqlen_kv);
    int64_t n_kv_heads = a.n_kv_heads > 0 ? a.n_kv_heads : q.dims[1];
    int64_t cached = page_rows / n_kv_heads * OPS_CACHE_PAGE;
    refuse_uneven_heads(x, "attention_cached", q.dims[1], n_kv_heads);
    double read = (double)(n_sequences * a.max_seqlen_kv) / (double)cached;
    move(x, read - 1, keys), move(x, read - 1, values);
    PLAN(x, "attention_cached", flops, scratch, {"out", out, (int)q.dtype, rows, d}, {"q", q, ANY, rows, d},
         {"keys", keys, (int)q.dtype, page_rows * d, OPS_CACHE_PAGE},
         {"values", values, (int)q.dtype, page_rows * OPS_CACHE_PAGE, d},
         {"cu_seqlens_kv", a.cu_seqlens_kv, DTYPE_I32, 1, n_sequences + 1},
         {"block_table", a.block_table, DTYPE_I32, n_sequences, tensor_cols(a.block_table)});
}
