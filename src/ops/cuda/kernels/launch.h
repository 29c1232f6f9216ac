/* launch: the functions by which the C side of the CUDA table (cuda_slots.h) launches kernels: plain pointers
 * and sizes, so that neither side needs the other's language.
 *
 * Sizes are those of ops.h: T rows, H columns, N heads, D head size.  `type` is the element type of matrices:
 * fp32, bf16 or fp16, unless a comment says otherwise; vectors are fp32.  Strides are those of rows, in
 * elements.  Launches return at once; an error shows in cuda_launch_error(). */
#ifndef KILN_OPS_CUDA_KERNELS_LAUNCH_H
#define KILN_OPS_CUDA_KERNELS_LAUNCH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* Parts that a block takes of a span, of sums, and of rows sorted by index; the number of parts of a tensor
 * that have a maximum each (ops/workspace.h); and sizes and limits of kernels of attention and of layer
 * norms. */
enum {
    LAUNCH_SPAN_CHUNK = 1024,
    LAUNCH_RUN_OF_SUMS = 1024,
    LAUNCH_SORTED_RUN = 64,
    LAUNCH_ATTENTION_TILE = 128,
    LAUNCH_BITS_CHUNK = 64,
    LAUNCH_BITS_WORDS = 32,
    LAUNCH_ATTENTION_CLUSTER_ROWS = 512,
    LAUNCH_MOST_NORM_COLS = 8192,
    LAUNCH_CACHE_PAGE = 32,
    LAUNCH_MOST_MAXIMA = 1024
};

/* Element types; only fill, cast, sum and find_nonfinite support fp64 and i32, and only quantize fp8. */
enum launch_type { LAUNCH_F32, LAUNCH_BF16, LAUNCH_F16, LAUNCH_F64, LAUNCH_I32, LAUNCH_E4M3, LAUNCH_E5M2 };

/* A bad number in an index tensor, written by kernels: the last one found; fault[0] is 0 until then. */
enum { LAUNCH_FAULT_WORDS = 4 }; /* 1, number, limit, place */

struct launch {
    struct CUstream_st *stream;
    float *scratch;              /* scratch of one op at a time, as large as ops/workspace.h says */
    int32_t *fault;              /* [LAUNCH_FAULT_WORDS], host memory that the device can write */
    const uint64_t *dropout_key; /* device memory; NULL: 0 */
    /* kernels with `early_start` may begin before the previous launch has ended (device_code.cuh) */
    int begins_early;
};

/* Rows of a matrix or of heads. */
struct launch_rows {
    void *data;
    int64_t stride;
};

/* C = A B^T + bias, and gelu(C), for few rows (cuda_short_product.cu). */
struct launch_product {
    int64_t m, n, k;            /* n a multiple of 8, k of 64 */
    struct launch_rows c, a, b; /* [m, n], [m, k], [n, k]; rows begin at multiples of 16 bytes */
    const void *bias;           /* [n], or NULL */
    int64_t bias_is_float;      /* fp32; else of the type of the matrices */
    void *gelu;                 /* [m, n] dense, or NULL; equal to c.data: C is not kept */
};

/* Tiles of a product, rows and columns.  Their numbers are stored in files (product_cache.h), so they must
 * not change. */
enum launch_product_tile {
    LAUNCH_TILE_64_64,
    LAUNCH_TILE_64_128,
    LAUNCH_TILE_64_192,
    LAUNCH_TILE_128_128,
    LAUNCH_TILE_64_64_BY_4, /* four blocks have a part of k each */
    LAUNCH_TILE_128_128_BY_4,
    LAUNCH_PRODUCT_TILES
};

struct launch_dropout {
    uint32_t threshold, site;
    float scale;
    const int32_t *row_keys; /* [T, 2] */
};

struct launch_attention {
    int64_t n_rows_q, n_rows_kv, n_sequences;
    int64_t n_heads, n_kv_heads, head_size; /* N, G, D of ops.h, struct attention */
    int64_t max_seqlen_q, max_seqlen_kv;
    const int32_t *cu_q, *cu_kv; /* [n_sequences + 1] */
    const float *slopes;         /* [N] or NULL */
    int first_head;              /* ops.h, struct attention */
    float scale;
    int causal;
    int window; /* ops.h, struct attention; 0 also where all keys are within it */
    struct launch_dropout dropout;
    /* ops/attention_bits.h: the forward writes them, the backward reads them; NULL: both draw */
    uint32_t *bits;
    int64_t bit_cols;
};

/* One span of optim_span, the number of its first chunk of LAUNCH_SPAN_CHUNK elements here, and the chunks of
 * its full parameter in sums of all. */
struct launch_span {
    int64_t offset, n, first_chunk;
    double weight_decay, rate;
    int64_t first_of_all, n_of_all;
};

/* Spans and the span of each chunk: device memory, [n_spans] and [n_chunks]. */
struct launch_spans {
    const struct launch_span *spans;
    const int32_t *span_of_chunk;
    int64_t n_spans, n_chunks;
};

/* The scalars of an update: enum optim_scalar of ops.h. */
enum launch_scalar {
    LAUNCH_LR,
    LAUNCH_BETA1,
    LAUNCH_BETA2,
    LAUNCH_EPS,
    LAUNCH_CORRECTION1,
    LAUNCH_CORRECTION2,
    LAUNCH_MAX_NORM,
    LAUNCH_GRAD_SCALE,
    LAUNCH_COUPLED,
    LAUNCH_RATIO_OF_ALL,
    LAUNCH_MIN_RATIO,
    LAUNCH_MAX_RATIO,
    LAUNCH_MOMENTUM,
    LAUNCH_N_SCALARS,
};

struct launch_optim {
    float *master, *grad, *exp_avg, *exp_avg_sq;
    void *working; /* bf16 or fp16, or NULL */
    enum launch_type working_type;
    struct launch_spans spans;
    const double *norm, *scalars; /* device memory, [n_norm] and [LAUNCH_N_SCALARS] */
    int64_t n_norm;               /* all of which must be finite, or nothing is written */
    /* Device memory, too: */
    double *sums;          /* sums of each chunk: [1] by `nesterov`, [2] by LAMB, [3] by LANS */
    const double *squares; /* LANS's, of all chunks */
    double *factors;       /* LANS's [n_spans] */
    double *ratios;        /* [n_spans] by LAMB, [n_spans, 2] by LANS */
};

/* Whether kernels were compiled for this device. */
int cuda_launch_is_possible(void);

/* Launches a memset, then kernels that begin early: a recording of this shows whether the device supports it.
 * `numbers`: [16] in device memory, set to 0. */
void cuda_launch_early_probe(const struct launch *l, float *numbers);

/* NULL, or the error since the last call. */
const char *cuda_launch_error(void);

/* The slots of these names (ops.h), over [rows, cols] or n elements. */
void cuda_launch_fill(const struct launch *l, struct launch_rows out, enum launch_type type, int64_t rows,
                      int64_t cols, double value);
void cuda_launch_cast(const struct launch *l, struct launch_rows out, enum launch_type out_type,
                      struct launch_rows in, enum launch_type in_type, int64_t rows, int64_t cols);
void cuda_launch_add(const struct launch *l, float *out, const float *in, int64_t n);
void cuda_launch_sum(const struct launch *l, double *total, const void *in, enum launch_type type, int64_t n);
void cuda_launch_find_nonfinite(const struct launch *l, int64_t *index, struct launch_rows in,
                                enum launch_type type, int64_t rows, int64_t cols);

/* The fp8 factor that a tensor is rounded to. */
struct launch_rounding {
    struct launch_rows rows, columns; /* strides are multiples of 16; columns.data NULL: not wanted */
    enum launch_type format;          /* LAUNCH_E4M3 or LAUNCH_E5M2 */
    float *scale;
    float *history; /* [2]: the largest magnitudes of the step before and of this one; or NULL */
};

struct launch_quantize {
    struct launch_rounding to;
    int held; /* rows have the type of `in`, not fp8 */
    struct launch_rows in;
    const uint32_t *maxima; /* maxima of `in`, [LAUNCH_MOST_MAXIMA]; NULL: the kernels find the largest */
    enum launch_type type;
    int64_t n_rows, n_cols; /* multiples of 16 unless held */
    float *dbias;           /* += sum over rows, which are split into `runs`; or NULL */
    int64_t runs;
};

/* rows = columns = scale round(in / scale): ops.h. */
void cuda_launch_quantize(const struct launch *l, const struct launch_quantize *q);

/* Whether kernels were compiled for a device that converts to fp8: of compute capability 8.9 or above. */
int cuda_launch_fp8_is_possible(void);

/* Copies `row`, which is fp32 or of the type of out, to every row of out. */
void cuda_launch_broadcast(const struct launch *l, struct launch_rows out, enum launch_type type,
                           const void *row, enum launch_type row_type, int64_t rows, int64_t cols);
/* total += sum over rows, which are split into `runs`; maxima of `in`, or NULL. */
void cuda_launch_column_sum(const struct launch *l, float *total, struct launch_rows in,
                            enum launch_type type, int64_t rows, int64_t cols, int64_t runs,
                            uint32_t *maxima);
/* Here and below `maxima` are those of the first result, or NULL. */
void cuda_launch_gelu(const struct launch *l, void *out, const void *pre, enum launch_type type, int64_t n,
                      uint32_t *maxima);
/* pre += bias, which is fp32 or of their type, out = gelu(pre): all dense [rows, cols]; out may be
 * pre, which then is not kept. */
void cuda_launch_bias_gelu(const struct launch *l, void *out, void *pre, const void *bias,
                           enum launch_type bias_type, enum launch_type type, int64_t rows, int64_t cols,
                           uint32_t *maxima);
/* dpre = dout gelu'(pre); dbias += its sum over rows, which are split into `runs`: all dense [rows, cols]. */
void cuda_launch_gelu_backward(const struct launch *l, void *dpre, float *dbias, const void *dout,
                               const void *pre, enum launch_type type, int64_t rows, int64_t cols,
                               int64_t runs, uint32_t *maxima);
/* cuda_launch_gelu and _gelu_backward with results only in fp8, e4m3 and e5m2; pre and dout begin at
 * multiples of 16 bytes. */
void cuda_launch_gelu_rounded(const struct launch *l, const struct launch_rounding *to, const void *pre,
                              enum launch_type type, int64_t rows, int64_t cols);
void cuda_launch_gelu_backward_rounded(const struct launch *l, const struct launch_rounding *to, float *dbias,
                                       const void *dout, const void *pre, enum launch_type type, int64_t rows,
                                       int64_t cols, int64_t runs);
void cuda_launch_dropout(const struct launch *l, void *out, const void *in, enum launch_type type,
                         int64_t rows, int64_t cols, const struct launch_dropout *d);
void cuda_launch_tanh(const struct launch *l, void *out, const void *in, enum launch_type type, int64_t n);
/* A gate (ops.h, gated): out [rows, cols] of pre [rows, 2 cols] without dout, else out is dpre. */
enum launch_gate_function { LAUNCH_SILU, LAUNCH_GELU, LAUNCH_GELU_TANH };
void cuda_launch_gated(const struct launch *l, void *out, const void *dout, const void *pre,
                       enum launch_type type, enum launch_gate_function f, int64_t rows, int64_t cols);

/* Rotary positions (ops.h, rotate): strides of rows and heads in elements, `half` angles of a position. */
struct launch_rotation {
    int64_t rows, n_heads, row_stride, head_stride, half;
    const float *turns;       /* [n_positions, 2 half] */
    const int32_t *positions; /* [rows] */
    int64_t n_positions;
    int back;
};
void cuda_launch_rotate(const struct launch *l, void *heads, enum launch_type type,
                        const struct launch_rotation *r);

/* out = gelu(pre), dpre = dout gelu'(pre), in their tanh form; out = residual + branch. */
void cuda_launch_gelu_tanh(const struct launch *l, void *out, const void *pre, enum launch_type type,
                           int64_t n);
void cuda_launch_gelu_tanh_backward(const struct launch *l, void *dpre, const void *dout, const void *pre,
                                    enum launch_type type, int64_t n);
void cuda_launch_residual_add(const struct launch *l, void *out, const void *residual,
                              enum launch_type stream_type, const void *branch, enum launch_type type,
                              int64_t n);
void cuda_launch_tanh_backward(const struct launch *l, void *din, const void *dout, const void *out,
                               enum launch_type type, int64_t n);
void cuda_launch_relu(const struct launch *l, void *out, const void *in, enum launch_type type, int64_t n);
void cuda_launch_relu_backward(const struct launch *l, void *din, const void *dout, const void *out,
                               enum launch_type type, int64_t n);

/* bf16 or fp16, on a device for which cuda_short_product_is_possible. */
void cuda_launch_short_product(const struct launch *l, enum launch_product_tile tile,
                               const struct launch_product *p, enum launch_type type);
int cuda_short_product_is_possible(void);

/* The places of rows of `cols` elements, fewer than 2^32 rows: row i begins at element
 * i / n stride + i % n cols. */
struct launch_places {
    uint32_t n;
    int64_t stride;
};

struct launch_norm {
    int64_t rows, cols;
    struct launch_places in, out; /* places of what is normalized, and of the output or its gradient */
    const float *gamma, *beta;    /* beta and mean NULL, or mean in a backward: the RMS norm */
    float *mean, *rstd;           /* [rows], or NULL forward, as `sum` may be */
    float eps;
    uint32_t *maxima; /* maxima of the output of a forward, or NULL */
};

/* `stream_type`: of what is normalized, and of `residual` below: `type` or LAUNCH_F32. */
void cuda_launch_layernorm(const struct launch *l, const struct launch_norm *n, void *out,
                           enum launch_type type, const void *in, enum launch_type stream_type);
/* `to`: the factor in e4m3 that `out` is also rounded to; NULL: none. */
void cuda_launch_bias_dropout_add_layernorm(const struct launch *l, const struct launch_norm *n,
                                            const struct launch_rounding *to, void *out, void *sum,
                                            const void *in, const float *bias, const void *residual,
                                            enum launch_type type, enum launch_type stream_type,
                                            const struct launch_dropout *d);
struct launch_norm_backward {
    int64_t runs;                 /* into which the rows are split for the sums over them */
    enum launch_type stream_type; /* type of `in`: that of dout and dropped, or LAUNCH_F32 */
    enum launch_type din_type;    /* one of the two */
    void *din, *dropped;          /* dropped = dropout'(din) with `after`, or NULL */
    struct launch_places din_places;
    float *dgamma, *dbeta, *dbias;               /* += ; dbias sums dropped, or NULL */
    const void *dout, *in;                       /* dout may be the memory of din, unless `adds` */
    int adds;                                    /* 1: the gradient is added to din; 0: assigned */
    const struct launch_dropout *before, *after; /* dropouts of dout, and from din to dropped; NULL: none */
    uint32_t *maxima;                            /* maxima of dropped, or NULL */
    const struct launch_rounding *to; /* the factor in e5m2 that is written instead of dropped; or NULL */
};

/* At most LAUNCH_MOST_NORM_COLS columns. */
void cuda_launch_layernorm_backward(const struct launch *l, const struct launch_norm *n,
                                    const struct launch_norm_backward *b, enum launch_type type);

struct launch_tables {
    const int32_t *ids, *types, *positions; /* [rows] */
    int64_t n_ids, n_types, n_positions;
};

/* The slot `embed` (ops.h); `n` has its layer norm, `segment` is its table `type`. */
void cuda_launch_embed(const struct launch *l, const struct launch_norm *n, const struct launch_tables *t,
                       void *out, void *sum, const void *word, const void *position, const void *segment,
                       enum launch_type type, const struct launch_dropout *d);

/* The rows of a table of n_all that are here: [first, first + n). */
struct launch_slice {
    int64_t first, n, n_all;
};

/* table[index[i]] += rows[i] where that row of the table is here; table is fp32 or of the type of the
 * rows. */
void cuda_launch_scatter_add(const struct launch *l, struct launch_rows table, enum launch_type table_type,
                             struct launch_slice here, struct launch_rows in, enum launch_type type,
                             const int32_t *index, int64_t rows, int64_t cols);

/* out[i] = in[index[i]], or 0 where that row is not here. */
void cuda_launch_gather(const struct launch *l, struct launch_rows out, struct launch_rows in,
                        enum launch_type type, const int32_t *index, int64_t rows, struct launch_slice here,
                        int64_t cols);

/* The kernels of attention (cuda_attention.cu).  Their numbers are stored in files (product_cache.h), so they
 * must not change. */
enum launch_attention_kernel {
    LAUNCH_ATTENTION_PLAIN,
    LAUNCH_ATTENTION_MMA,
    LAUNCH_ATTENTION_WGMMA,
    LAUNCH_ATTENTION_CLUSTER,
    LAUNCH_ATTENTION_KERNELS
};

/* Tensors of the slots attention and attention_backward (ops/ops.h), rows of all heads side by side; the
 * forward uses q, k, v, out and lse. */
struct launch_attention_rows {
    struct launch_rows q, k, v, out, dout, dq, dk, dv;
    float *lse;     /* [T, N] */
    float *dbias;   /* [(N + 2 G) D] += sums over rows of dq, dk, dv; or NULL */
    float *instead; /* replaces dbias while kernels are timed */
    /* [n_sequences, tiles, N D] of dq, then [n_sequences, tiles, G D] of dk and of dv, for kernels that sum
     * columns of their tiles; or NULL */
    float *partial_sums;
    int64_t runs_q, runs_kv; /* runs of rows, for kernels that do not sum columns of their tiles */
    int64_t tiles;           /* tiles of LAUNCH_ATTENTION_TILE rows, of the longest sequence */
};

/* A form of attention: type, head size and longest sequence (in queries or keys); `aligned`: the rows of all
 * tensors begin at multiples of 16 bytes; `windowed`: a window hides keys. */
struct launch_attention_form {
    enum launch_type type;
    int64_t head_size, longest;
    int aligned, windowed, backward;
};

/* Whether a kernel supports a form on this device.  The plain kernel supports every one. */
int cuda_attention_fits(enum launch_attention_kernel kernel, const struct launch_attention_form *form);

/* Whether the forward of LAUNCH_ATTENTION_WGMMA splits keys among warpgroups: if twice the number of blocks,
 * with half the queries each, is still at most one per multiprocessor of the chips that have wgmma. */
static inline int cuda_attention_splits_keys(const struct launch_attention *a)
{
    enum { MULTIPROCESSORS = 132, TILE = LAUNCH_ATTENTION_TILE };
    int64_t tiles = a->n_sequences * ((a->max_seqlen_q + TILE - 1) / TILE);
    int64_t filled = (a->n_rows_q + TILE - 1) / TILE; /* sequences that only pad the batch have no rows */
    return a->head_size == 64 && a->dropout.threshold == 0 && a->max_seqlen_kv > TILE / 2 &&
           2 * a->n_heads * (tiles < filled ? tiles : filled) <= MULTIPROCESSORS;
}

/* Launches a kernel that supports the call.  Results are only written, except dbias, which is added to. */
void cuda_launch_attention(const struct launch *l, enum launch_attention_kernel kernel,
                           const struct launch_attention *a, const struct launch_attention_rows *r,
                           enum launch_type type);
void cuda_launch_attention_backward(const struct launch *l, enum launch_attention_kernel kernel,
                                    const struct launch_attention *a, const struct launch_attention_rows *r,
                                    enum launch_type type);

/* Pages of keys and values of LAUNCH_CACHE_PAGE tokens (ops/ops.h, append_rows). */
struct launch_cached {
    void *keys, *values;
    int64_t n_pages, n_kv_heads, head_size;
    const int32_t *block_table; /* [n_sequences, table_width] */
    int64_t table_width;
};

/* The slots append_rows and attention_cached (ops.h). */
void cuda_launch_append(const struct launch *l, const struct launch_cached *c, struct launch_rows k,
                        struct launch_rows v, enum launch_type type, const int32_t *slots, int64_t rows);
void cuda_launch_attention_cached(const struct launch *l, const struct launch_attention *a,
                                  const struct launch_cached *c, struct launch_rows out, struct launch_rows q,
                                  enum launch_type type);

/* The slot cross_entropy (ops.h), for logits [rows, cols]; dlogits.data may be NULL. */
void cuda_launch_cross_entropy(const struct launch *l, float *loss, int32_t *correct,
                               struct launch_rows dlogits, enum launch_type dlogits_type,
                               struct launch_rows logits, const int32_t *labels, int64_t rows, int64_t cols,
                               int64_t n_classes, const double *scale);
/* Logits of a slice of the classes, columns [0, cols) of which the first `here` are classes, from class
 * `first` of n_classes on. */
struct launch_classes {
    struct launch_rows logits;
    const int32_t *labels;
    int64_t rows, cols, here, first, n_classes;
};

/* The steps of a loss over several slices (ops.h); sums [rows, 3]. */
void cuda_launch_slice_maxima(const struct launch *l, float *maxima, const struct launch_classes *c);
void cuda_launch_slice_sums(const struct launch *l, double *sums, const float *maxima,
                            const struct launch_classes *c);
void cuda_launch_slice_cross_entropy(const struct launch *l, float *loss, int32_t *correct,
                                     struct launch_rows dlogits, enum launch_type dlogits_type,
                                     const float *maxima, const double *sums, const struct launch_classes *c,
                                     const double *scale);

/* Columns of what choosing a token reads: enum choice_option and enum choice_change of ops.h. */
enum launch_option {
    LAUNCH_LABEL,
    LAUNCH_N_RATED,
    LAUNCH_RANDOM,
    LAUNCH_TEMPERATURE,
    LAUNCH_TOP_K,
    LAUNCH_TOP_P,
    LAUNCH_MIN_P,
    LAUNCH_REPETITION,
    LAUNCH_FREQUENCY,
    LAUNCH_PRESENCE,
    LAUNCH_N_OPTIONS,
};
enum launch_change { LAUNCH_ID, LAUNCH_ADD, LAUNCH_WAS, LAUNCH_N_NEW, LAUNCH_N_CHANGE_COLUMNS };

/* Rows of logits from each of which a token is chosen (ops.h); `most` tokens of each are reported. */
struct launch_choice {
    struct launch_rows logits;
    const double *options;
    const int32_t *starts;
    float *changes;
    int32_t *tokens;
    float *log_ps;
    int64_t rows, most, n_changes, n_tokens, n_words;
};

/* The slot choose_tokens (ops.h): fills tokens and log_ps. */
void cuda_launch_choose_tokens(const struct launch *l, const struct launch_choice *c);

/* The slot span_cross_entropy (ops.h), for logits [rows, 2], dense; dlogits may be NULL. */
void cuda_launch_span_cross_entropy(const struct launch *l, float *loss, int32_t *correct, void *dlogits,
                                    enum launch_type dlogits_type, const float *logits,
                                    const int32_t *cu_seqlens, const int32_t *labels, int64_t n_sequences,
                                    int64_t rows, const double *scale);

/* The slot `pointwise` (ops.h), for n dense logits; sigmoid: POINTWISE_SIGMOID, else POINTWISE_SQUARED;
 * dlogits may be NULL. */
void cuda_launch_pointwise(const struct launch *l, float *loss, int32_t *correct, void *dlogits,
                           enum launch_type dlogits_type, const float *logits, const float *targets,
                           int64_t n, int sigmoid, const double *scale);

/* The slots `clear`, `squares` and `zeros` (ops.h). */
void cuda_launch_clear(const struct launch *l, float *flat, const struct launch_spans *spans);
void cuda_launch_squares(const struct launch *l, double *sums, const float *in,
                         const struct launch_spans *spans);
void cuda_launch_zeros(const struct launch *l, double *sums, const float *in,
                       const struct launch_spans *spans);
/* n sums, by way of so many runs of LAUNCH_RUN_OF_SUMS, or 0. */
void cuda_launch_norm_of(const struct launch *l, double *norm, const double *sums, int64_t n, int64_t runs);
void cuda_launch_lamb_direction(const struct launch *l, const struct launch_optim *o);
void cuda_launch_lamb_apply(const struct launch *l, const struct launch_optim *o);
void cuda_launch_lans_direction(const struct launch *l, const struct launch_optim *o);
void cuda_launch_lans_apply(const struct launch *l, const struct launch_optim *o);
void cuda_launch_adamw(const struct launch *l, const struct launch_optim *o);
void cuda_launch_nesterov(const struct launch *l, const struct launch_optim *o);
/* The slot `descend` (ops.h) for n elements at the beginning of the master and the working copy; spans,
 * moments and gradients are not used. */
void cuda_launch_descend(const struct launch *l, const struct launch_optim *o, const void *in,
                         enum launch_type type, int64_t n, double rate, double weight_decay);
/* norm: [1] in device memory. */
void cuda_launch_unit(const struct launch *l, void *out, enum launch_type type, const float *in,
                      const double *norm, int64_t n);
/* [M, M], all of one type. */
void cuda_launch_matrix_polynomial(const struct launch *l, void *out, const void *in, const void *square,
                                   enum launch_type type, int64_t m, double a, double b, double c);

#ifdef __cplusplus
}
#endif

#endif
