/* cuda_attention_slots: attention on a CUDA device, by the fastest of the kernels that can compute it, also
 * of cached keys and values. */
#include "ops/cuda/table/cuda_slots.h"

#include "ops/accept.h"
#include "ops/cuda/choice/attention_choice.h"
#include "ops/cuda/table/cuda_context.h"
#include "ops/cuda/table/cuda_slot.h"
#include "ops/workspace.h"

_Static_assert((int)LAUNCH_CACHE_PAGE == (int)OPS_CACHE_PAGE, "one size of pages");

/* Rows of all heads side by side. */
static struct launch_rows heads_of(tensor t)
{
    return (struct launch_rows){t.data, t.strides[0]};
}

static int64_t longest_of(int64_t max_seqlen_q, int64_t max_seqlen_kv)
{
    return max_seqlen_q > max_seqlen_kv ? max_seqlen_q : max_seqlen_kv;
}

static struct launch_attention attention_of(const struct attention *a, tensor q, int64_t n_rows_kv,
                                            int64_t n_kv_heads)
{
    bool windowed = a->window < longest_of(a->max_seqlen_q, a->max_seqlen_kv);
    return (struct launch_attention){.n_rows_q = q.dims[0],
                                     .n_rows_kv = n_rows_kv,
                                     .n_sequences = tensor_count(a->cu_seqlens_q) - 1,
                                     .n_heads = q.dims[1],
                                     .n_kv_heads = n_kv_heads,
                                     .head_size = q.dims[2],
                                     .max_seqlen_q = a->max_seqlen_q,
                                     .max_seqlen_kv = a->max_seqlen_kv,
                                     .cu_q = a->cu_seqlens_q.data,
                                     .cu_kv = a->cu_seqlens_kv.data,
                                     .slopes = a->alibi_slopes.data,
                                     .first_head = (int)a->first_head,
                                     .scale = (float)a->scale,
                                     .causal = a->causal,
                                     .window = windowed ? (int)a->window : 0,
                                     .dropout = cuda_slot_dropout(a->dropout, a->row_keys),
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
    struct launch l = cuda_slot_launch(x, 0);
    struct attention_candidates a = attention_candidates_of(
        (struct launch_attention_form){call->type, s->head_size,
                                       longest_of(s->max_seqlen_q, s->max_seqlen_kv),
                                       attention_is_aligned(call), s->window > 0, call->backward},
        asked_for);
    enum launch_attention_kernel kernel = a.kernels[0];
    bool has_work = s->n_sequences > 0 && s->max_seqlen_q > 0 && s->max_seqlen_kv > 0;
    if (a.n > 1 && has_work && !cuda_attention_choose(&kernel, x, op, &l, call, &a)) {
        return;
    }
    attention_launch(&l, kernel, call);
    x->served_by = attention_served_by(kernel);
    x->served_why = attention_served_why(call, kernel, asked_for);
    cuda_slot_finish(x, op);
}

void cuda_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a)
{
    if (accept_tensors(x, "attention", ACCEPT_LIST(out, q, k, v), ACCEPT_LIST(lse)) &&
        accept_attention(x, "attention", &a, q)) {
        run_attention(x, "attention",
                      &(struct attention_call){.type = cuda_slot_type(q),
                                               .sizes = attention_of(&a, q, k.dims[0], k.dims[1]),
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
    struct workspace_sums of_q = {s->n_rows_q, s->n_heads * s->head_size},
                          of_kv = {s->n_rows_kv, s->n_kv_heads * s->head_size};
    call->rows.dbias = dbias.data;
    call->rows.instead = exec_scratch(
        x, workspace_attention_sums(of_q, of_kv, s->n_sequences, s->max_seqlen_q, s->max_seqlen_kv));
    call->rows.partial_sums = call->rows.instead + of_q.cols + 2 * of_kv.cols;
    call->rows.runs_q = workspace_runs(of_q.rows, of_q.cols);
    call->rows.runs_kv = workspace_runs(of_kv.rows, of_kv.cols);
}

void cuda_attention_backward(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias, tensor dout,
                             tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a)
{
    const char *op = "attention_backward";
    if (accept_tensors(x, op, ACCEPT_LIST(dq, dk, dv, dout, out, q, k, v), ACCEPT_LIST(lse, dbias)) &&
        accept_attention(x, op, &a, q)) {
        struct attention_call call = {
            .backward = true,
            .type = cuda_slot_type(q),
            .sizes = attention_of(&a, q, k.dims[0], k.dims[1]),
            .rows = {heads_of(q), heads_of(k), heads_of(v), heads_of(out), heads_of(dout), heads_of(dq),
                     heads_of(dk), heads_of(dv), lse.data,
                     .tiles = workspace_attention_tiles(a.max_seqlen_q, a.max_seqlen_kv)}};
        if (!tensor_is_null(dbias)) {
            add_sums(x, &call, dbias);
        }
        run_attention(x, op, &call);
    }
}

static struct launch_cached cached_of(tensor keys, tensor values, int64_t n_kv_heads, tensor block_table)
{
    return (struct launch_cached){.keys = keys.data,
                                  .values = values.data,
                                  .n_pages = keys.dims[0] / n_kv_heads,
                                  .n_kv_heads = n_kv_heads,
                                  .head_size = keys.dims[1],
                                  .block_table = block_table.data,
                                  .table_width = tensor_is_null(block_table) ? 0 : tensor_cols(block_table)};
}

void cuda_append_rows(struct exec *x, tensor keys, tensor values, tensor k, tensor v, tensor slots)
{
    const char *op = "append_rows";
    if (accept_tensors(x, op, ACCEPT_LIST(k, v, keys, values), NULL, 0) &&
        accept_pages(x, op, keys, values, k.dims[1], k.dims[2])) {
        struct launch l = cuda_slot_launch(x, 0);
        struct launch_cached c = cached_of(keys, values, k.dims[1], NULL_TENSOR);
        cuda_launch_append(&l, &c, heads_of(k), heads_of(v), cuda_slot_type(k), slots.data, k.dims[0]);
        cuda_slot_finish(x, op);
    }
}

void cuda_attention_cached(struct exec *x, tensor out, tensor q, tensor keys, tensor values,
                           struct attention a)
{
    const char *op = "attention_cached";
    int64_t n_kv_heads = a.n_kv_heads > 0 ? a.n_kv_heads : q.dims[1];
    if (accept_tensors(x, op, ACCEPT_LIST(out, q, keys, values), ACCEPT_LIST(a.alibi_slopes)) &&
        accept_pages(x, op, keys, values, n_kv_heads, q.dims[2]) && accept_sizes(x, op, &a, q)) {
        struct launch l = cuda_slot_launch(x, 0);
        struct launch_cached c = cached_of(keys, values, n_kv_heads, a.block_table);
        struct launch_attention sizes = attention_of(&a, q, c.n_pages * OPS_CACHE_PAGE, n_kv_heads);
        cuda_launch_attention_cached(&l, &sizes, &c, heads_of(out), heads_of(q), cuda_slot_type(q));
        cuda_slot_finish(x, op);
    }
}
