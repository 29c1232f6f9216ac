/* workspace: scratch bytes of each op.  The plan knows them before anything runs; kernels take them by
 * exec_scratch.  Sizes depend on shapes only, never on the number of threads, and so do the partial sums kept
 * there. */
#ifndef KILN_OPS_WORKSPACE_H
#define KILN_OPS_WORKSPACE_H

#include "ops/ops.h"

/* Sums over rows are split into runs of rows, whose partial sums are added in order.  On a cpu there are at
 * most ROW_RUNS.  Where many runs are summed in parallel, their number gives PARTIAL_SUMS partial
 * sums, or is NORM_RUNS for layer norms. */
enum {
    WORKSPACE_ROW_RUNS = 32,
    WORKSPACE_MOST_RUNS = 1024,
    WORKSPACE_PARTIAL_SUMS = 1 << 18,
    WORKSPACE_NORM_RUNS = 512,
    WORKSPACE_SORTED_RUN = 64,
    WORKSPACE_MAXIMA = 1024
};

static inline int64_t workspace_at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

/* The number of runs of a sum over rows where many runs are summed in parallel. */
static inline int64_t workspace_runs(int64_t rows, int64_t cols)
{
    int64_t runs = workspace_at_most(WORKSPACE_PARTIAL_SUMS / (cols > 0 ? cols : 1), WORKSPACE_MOST_RUNS);
    return workspace_at_most(rows, runs > WORKSPACE_ROW_RUNS ? runs : WORKSPACE_ROW_RUNS);
}

static inline size_t workspace_column_sum(int64_t rows, int64_t cols)
{
    return (size_t)(workspace_runs(rows, cols) * cols) * sizeof(float);
}

/* The maxima of parts of a tensor, followed by the sums of its columns. */
static inline size_t workspace_quantize(int64_t rows, int64_t cols, bool sums)
{
    return WORKSPACE_MAXIMA * sizeof(float) + (sums ? workspace_column_sum(rows, cols) : 0);
}

/* Rows of a factor in elements of 16 bits, bf16 or integers (ops.h, OPS_INT8_STEPS), in blocks and
 * padded as a kernel reads them; and a scale of each. */
enum { WORKSPACE_PACKED_ROWS = 16 };

static inline int64_t workspace_packed_stride(int64_t cols)
{
    return (cols + 63) / 64 * 64;
}

static inline int64_t workspace_packed_rows(int64_t rows)
{
    return rows == 1 ? 1 : (rows + WORKSPACE_PACKED_ROWS - 1) / WORKSPACE_PACKED_ROWS * WORKSPACE_PACKED_ROWS;
}

static inline size_t workspace_packed(int64_t rows, int64_t cols)
{
    size_t row = (size_t)workspace_packed_stride(cols) * sizeof(int16_t) + sizeof(float);
    return (size_t)workspace_packed_rows(rows) * row;
}

/* With exec.int8_rows: bytes in the place of integers, and a sum of each of n_out rows of the matrix. */
static inline size_t workspace_int8_rows(int64_t rows, int64_t n_out, int64_t cols)
{
    return workspace_packed(rows, cols) + (size_t)n_out * sizeof(int32_t);
}

/* A small din that sums over many rows of w, such as the gradient of the input of the vocabulary's decoder,
 * is summed in fp32. */
enum { WORKSPACE_LONG_SUM = 8192, WORKSPACE_SMALL_RESULT = 1 << 20 };

static inline size_t workspace_linear_backward_input(int64_t rows, int64_t cols, int64_t inner)
{
    bool gathers = inner >= WORKSPACE_LONG_SUM && rows * cols <= WORKSPACE_SMALL_RESULT;
    return gathers ? (size_t)(rows * cols) * sizeof(float) : 0;
}

/* dgamma, dbeta and dbias side by side. */
static inline size_t workspace_layernorm_backward(int64_t rows, int64_t cols)
{
    return 3 * (size_t)(workspace_at_most(rows, WORKSPACE_NORM_RUNS) * cols) * sizeof(float);
}

/* Rows sorted by their index, in two buffers, and the leftover sum of each run of them. */
static inline size_t workspace_scatter_add(int64_t rows, int64_t cols)
{
    int64_t runs = (rows + WORKSPACE_SORTED_RUN - 1) / WORKSPACE_SORTED_RUN;
    return 2 * (size_t)rows * sizeof(uint64_t) + (size_t)(runs * cols) * sizeof(float);
}

static inline size_t workspace_embed_backward(int64_t rows, int64_t cols)
{
    size_t norm = workspace_layernorm_backward(rows, cols), tables = workspace_scatter_add(rows, cols);
    return norm > tables ? norm : tables;
}

static inline size_t workspace_attention(int64_t n_heads, int64_t head_size, int64_t max_seqlen_q,
                                         int64_t max_seqlen_kv)
{
    (void)n_heads, (void)head_size, (void)max_seqlen_q, (void)max_seqlen_kv;
    return 0;
}

/* Keys are read in ranges of CACHED_RANGE, so that a few queries of long sequences keep many threads busy: up
 * to CACHED_APART blocks of CACHED_QUERIES queries of a head.  A partial result is a row of values, their
 * largest score and sum.  The first block of each sequence comes first. */
enum { WORKSPACE_CACHED_RANGE = 256, WORKSPACE_CACHED_QUERIES = 4, WORKSPACE_CACHED_APART = 64 };

static inline int64_t workspace_cached_ranges(int64_t max_seqlen_kv)
{
    return (max_seqlen_kv + WORKSPACE_CACHED_RANGE - 1) / WORKSPACE_CACHED_RANGE;
}

static inline size_t workspace_cached_starts(int64_t n_sequences)
{
    return ((size_t)(n_sequences + 1) * sizeof(int64_t) + 63) / 64 * 64;
}

static inline size_t workspace_attention_cached(int64_t rows_q, int64_t n_sequences, int64_t n_heads,
                                                int64_t head_size, int64_t max_seqlen_kv)
{
    int64_t most = WORKSPACE_CACHED_APART * WORKSPACE_CACHED_QUERIES,
            ranges = workspace_cached_ranges(max_seqlen_kv);
    int64_t partial = workspace_at_most(rows_q * n_heads, most) * ranges * (head_size + 2);
    return workspace_cached_starts(n_sequences) + (ranges > 1 ? (size_t)partial * sizeof(float) : 0);
}

/* Sums of columns of dq, and of dk and dv: one for every tile of every sequence, or one for every run of
 * rows; and space for the same number of totals. */
enum { WORKSPACE_ATTENTION_TILE = 128 };

static inline int64_t workspace_attention_tiles(int64_t max_seqlen_q, int64_t max_seqlen_kv)
{
    int64_t longest = max_seqlen_q > max_seqlen_kv ? max_seqlen_q : max_seqlen_kv;
    return longest > 0 ? (longest + WORKSPACE_ATTENTION_TILE - 1) / WORKSPACE_ATTENTION_TILE : 1;
}

/* A matrix of which columns are summed. */
struct workspace_sums {
    int64_t rows, cols;
};

static inline size_t workspace_attention_sums(struct workspace_sums q, struct workspace_sums kv,
                                              int64_t n_sequences, int64_t max_seqlen_q,
                                              int64_t max_seqlen_kv)
{
    int64_t sums = q.cols + 2 * kv.cols;
    int64_t tiles = n_sequences * workspace_attention_tiles(max_seqlen_q, max_seqlen_kv);
    size_t totals = (size_t)sums * sizeof(float), of_tiles = (size_t)tiles * totals;
    size_t of_q = workspace_column_sum(q.rows, q.cols), of_kv = workspace_column_sum(kv.rows, kv.cols);
    size_t of_runs = of_q > of_kv ? of_q : of_kv;
    of_runs = of_runs > (size_t)WORKSPACE_ROW_RUNS * totals ? of_runs : (size_t)WORKSPACE_ROW_RUNS * totals;
    return totals + (of_tiles > of_runs ? of_tiles : of_runs);
}

static inline size_t workspace_find_nonfinite(int64_t count)
{
    (void)count;
    return 0;
}

/* Many sums are added in runs first. */
enum { WORKSPACE_SUMS_AT_ONCE = 8192, WORKSPACE_RUN_OF_SUMS = 1024 };

static inline int64_t workspace_runs_of_sums(int64_t n)
{
    return n > WORKSPACE_SUMS_AT_ONCE ? (n + WORKSPACE_RUN_OF_SUMS - 1) / WORKSPACE_RUN_OF_SUMS : 0;
}

static inline size_t workspace_norm_of(int64_t n)
{
    return (size_t)workspace_runs_of_sums(n) * sizeof(double);
}

/* The norm, and what it takes. */
static inline size_t workspace_unit(int64_t n_sums)
{
    return sizeof(double) + workspace_norm_of(n_sums);
}

/* A ratio of each span. */
static inline size_t workspace_lamb_apply(int64_t n_spans)
{
    return (size_t)n_spans * sizeof(double);
}

/* A factor of each span's gradients. */
static inline size_t workspace_lans_direction(int64_t n_spans)
{
    return (size_t)n_spans * sizeof(double);
}

/* Two ratios of each span. */
static inline size_t workspace_lans_apply(int64_t n_spans)
{
    return 2 * (size_t)n_spans * sizeof(double);
}

#endif
