#include "ops/cuda/forecast/cuda_traffic.h"

#include "core/fp8.h"
#include "ops/cuda/choice/product_forms.h"
#include "ops/cuda/forecast/cuda_traffic_parts.h"
#include "ops/workspace.h"

#include <math.h>

static const struct kernel MEMSET = {"memset", .90, 1};
static const struct kernel FILL = {"fill_kernel", .45, 1}; /* one element at a time, through double */
static const struct kernel CAST = {"cast_kernel", .58, 1}; /* the same, with a load of 2 to 4 bytes a
 * thread */
static const struct kernel ADD = {"elements_kernel", .88, 1};
static const struct kernel SUM = {"sum_kernel", .2, 1}; /* one block */
static const struct kernel CLEAR_INDEX = {"clear_index_kernel", 1, 1};
static const struct kernel FIND_NONFINITE = {"find_nonfinite_kernel", .45, 1};
static const struct kernel FINISH_INDEX = {"finish_index_kernel", 1, 1};
static const struct kernel BROADCAST = {"broadcast_kernel", .85, 1};
/* A polynomial and an exponential per element: 114 instructions for eight elements, of the 216 that fit in
 * the time of their bytes; 134 if maxima are stored. */
static const struct kernel GELU = {"elements_kernel", .88, 1};
static const struct kernel GELU_NOTING = {"elements_kernel", .87, 1};
static const struct kernel BIAS_GELU = {"bias_gelu_kernel", .88, 1};
static const struct kernel GELU_BACKWARD = {"column_partials_kernel", .88, 1}; /* 296 of 324 */
static const struct kernel TANH = {"elements_kernel", .76, 1};
static const struct kernel GATHER = {"gather_kernel", .7, 1};
static const struct kernel SORT = {"sort_kernel", .2, 1};
static const struct kernel ADD_RUN = {"add_run_kernel", .7, 1};
static const struct kernel ADD_HEADS = {"add_heads_kernel", .7, 1};
static const struct kernel COLUMNS = {"column_partials_kernel", .88, 1};
static const struct kernel ADD_RUNS = {"add_runs_kernel", .7, 1};
static const struct kernel MAXIMA = {"maxima_kernel", .87, 1};
static const struct kernel HOLD = {"hold_kernel", .79, 1};
static const struct kernel ROUND = {"round_kernel", .85, 1}; /* 55 for eight elements of 32 bytes, of 216 */
static const struct kernel ROUND_NOTING = {"round_noting_kernel", .85, 1}; /* 64 */
static const struct kernel ROUND_AGAIN = {"round_again_kernel", 1, 1};     /* whose blocks exit at once */
/* GELU and its gradient, rounded: 186 instructions for eight elements of 32 bytes, of 216, and 225 for 48
 * bytes, of 324. */
static const struct kernel ROUND_GELU = {"round_noting_kernel", .85, 1};
static const struct kernel ROUND_GELU_BACKWARD = {"round_noting_kernel", .86, 1};
/* A row of 1,024 columns and 8 KiB takes 1,296 instructions of a warp; 1,680 fit in the time of its bytes. */
static const struct kernel LAYERNORM = {"norm_kernel", .88, 1};
static const struct kernel LAYERNORM_BACKWARD = {"norm_backward_kernel", .86,
                                                 1}; /* about 1,100, by 8 warps */
/* The same rows rounded: 1,310 of a row of 10 KiB, of 2,100; and 230 more of one of 8 KiB. */
static const struct kernel NORM_ROUND = {"norm_round_kernel", .86, 1};
static const struct kernel NORM_BACKWARD_ROUND = {"norm_backward_round_kernel", .82, 1};
static const struct kernel NORM_ROUND_AGAIN = {"norm_round_kernel", 1, 1}; /* whose blocks exit at once */
static const struct kernel NORM_BACKWARD_ROUND_AGAIN = {"norm_backward_round_kernel", 1, 1};
static const struct kernel CROSS_ENTROPY = {"cross_entropy_kernel", .7, 1};
static const struct kernel SPAN = {"span_kernel", .2, 1};
static const struct kernel DROPOUT = {"dropout_kernel", .8, 1};
static const struct kernel POINTWISE = {"pointwise_kernel", .2, 1};

/* The library's kernel: its time is that of its products, unless it only moves bytes. */
static const struct kernel PRODUCT = {"product", .9, 1};
static const struct kernel SHORT_PRODUCT = {"short_product_kernel", .9, .8};

/* Instructions per element of its result for GELU, besides those of every product (gpu_chips.c): 770 a thread
 * for 64. */
static const double SHORT_PRODUCT_GELU = 12;

/* By enum launch_product_tile. */
static const struct {
    int64_t rows, cols, parts;
} SHORT_TILES[LAUNCH_PRODUCT_TILES] = {{64, 64, 1},   {64, 128, 1}, {64, 192, 1},
                                       {128, 128, 1}, {64, 64, 4},  {128, 128, 4}};

static void traffic_fill(struct exec *x, tensor out, double value)
{
    bool dense = out.n_dims < 2 || out.strides[out.n_dims - 2] == tensor_cols(out);
    move(x, value == 0 && (tensor_rows(out) == 1 || dense) ? MEMSET : FILL, bytes_of(out));
}

static void traffic_cast(struct exec *x, tensor out, tensor in)
{
    move(x, CAST, bytes_of(out) + bytes_of(in));
}

/* Launched before a kernel that raises the maxima of its result. */
static void clear_maxima(const struct exec *x, tensor result)
{
    if (result.has_maxima) {
        move(x, MEMSET, TENSOR_MAXIMA * sizeof(uint32_t));
    }
}

/* Sums over rows of a matrix: reads the matrix once, then the partial sums, which are in the cache.  Each
 * block has its own maximum, if there are enough. */
static void sum_columns(const struct exec *x, struct kernel k, double bytes, int64_t rows, int64_t cols,
                        bool maxima)
{
    double partials = (double)workspace_column_sum(rows, cols);
    if (maxima && (cols + 255) / 256 * workspace_runs(rows, cols) > TENSOR_MAXIMA) {
        move(x, MEMSET, TENSOR_MAXIMA * sizeof(uint32_t));
    }
    move(x, k, bytes + partials);
    move(x, ADD_RUNS, partials);
}

bool cuda_traffic_begins_early(const char *kernel)
{
    return kernel == LAYERNORM.name || kernel == BIAS_GELU.name || kernel == GELU.name ||
           kernel == GELU_NOTING.name || kernel == TANH.name || kernel == ADD.name ||
           kernel == ROUND_AGAIN.name || kernel == SHORT_PRODUCT.name;
}

void cuda_traffic_clear_rows(const struct exec *x, tensor rows)
{
    move(x, FILL, bytes_of(rows));
}

void cuda_traffic_add_runs(const struct exec *x, double bytes)
{
    move(x, ADD_RUNS, bytes);
}

void cuda_traffic_sum_columns(const struct exec *x, double bytes, int64_t rows, int64_t cols)
{
    sum_columns(x, COLUMNS, bytes, rows, cols, false);
}

static void traffic_quantize(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history,
                             tensor dbias, tensor in, enum dtype format)
{
    (void)scale, (void)format;
    bool known = !tensor_is_null(history) && dtype_is_fp8(rows.dtype);
    if (!tensor_is_null(dbias)) {
        sum_columns(x, COLUMNS, bytes_of(in), tensor_rows(in), tensor_cols(in), !in.has_maxima && !known);
    } else if (!in.has_maxima && !known) {
        move(x, MAXIMA, bytes_of(in));
    }
    struct kernel round = known ? ROUND_NOTING : dtype_is_fp8(rows.dtype) ? ROUND : HOLD;
    move(x, round, bytes_of(in) + bytes_of(rows) + bytes_of(columns));
    if (known) {
        move(x, ROUND_AGAIN, 0);
    }
}

static void traffic_add(struct exec *x, tensor out, tensor in)
{
    move(x, ADD, 2 * bytes_of(out) + bytes_of(in));
}

static void traffic_sum(struct exec *x, tensor total, tensor in)
{
    (void)total;
    wait(x, SUM, bytes_of(in), rounds((double)tensor_count(in), 1024));
}

static void traffic_find_nonfinite(struct exec *x, tensor index, tensor in)
{
    (void)index;
    move(x, CLEAR_INDEX, 0);
    move(x, FIND_NONFINITE, bytes_of(in));
    move(x, FINISH_INDEX, 0);
}

/* A product with its bias, GELU and bias gradient. */
struct linear_call {
    enum cuda_product_side side;
    tensor c, a, b;
    int64_t m, n, k;
    bool accumulates, has_bias, casts_bias, has_bias_gradient; /* casts: into the dtype of c */
    tensor gelu;                                               /* null: none */
    bool in_place;                                             /* it overwrites c */
};

static enum dtype factor_of(const struct linear_call *p)
{
    return dtype_is_fp8(p->a.dtype) ? DTYPE_E4M3 : p->a.dtype;
}

/* The fields that forms read. */
static struct cuda_product product_of(const struct linear_call *p)
{
    static const _Alignas(16) float some = 0;
    return (struct cuda_product){.m = p->m,
                                 .n = p->n,
                                 .k = p->k,
                                 .a_dtype = p->a.dtype,
                                 .c_dtype = p->c.dtype,
                                 .a_transposed = p->side == CUDA_WEIGHT_GRADIENT,
                                 .b_transposed = p->side == CUDA_FORWARD,
                                 .accumulate = p->accumulates,
                                 .bias = p->has_bias ? &some : NULL,
                                 .gelu = tensor_is_null(p->gelu) ? NULL : (void *)&some,
                                 .gelu_maxima = p->gelu.has_maxima ? (uint32_t *)&some : NULL,
                                 .bias_gradient = p->has_bias_gradient ? (float *)&some : NULL};
}

/* Whether a device might choose this form: any that fits, or the one asked for.  The cost of the library's
 * sums of a bias's gradient is unknown. */
static bool is_candidate(const struct cuda_traffic *t, enum product_form form, const struct linear_call *p)
{
    struct cuda_product q = product_of(p);
    if (t->form != CUDA_TRAFFIC_ANY) {
        return form == product_form_from((enum product_form)t->form, &q);
    }
    return product_form_fits(form, &q) && !(form == PRODUCT_EPILOGUE && p->has_bias_gradient);
}

/* As clear_maxima. */
static int add_clearing(struct cuda_launch launches[MOST_LAUNCHES], int n, tensor result)
{
    launches[n] = memory_launch(MEMSET, TENSOR_MAXIMA * sizeof(uint32_t));
    return n + result.has_maxima;
}

static struct cuda_launch product_launch(struct kernel k, const struct exec *x, const struct linear_call *p,
                                         double bytes)
{
    struct cuda_launch l = memory_launch(k, bytes_of(p->a) + bytes_of(p->b) + bytes);
    l.flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    l.side = p->side;
    l.m = p->m, l.n = p->n, l.k = p->k;
    l.factor = factor_of(p);
    l.tf32 = x->allow_tf32;
    return l;
}

/* The one launch of PRODUCT_SHORT. */
static struct cuda_launch short_launch(const struct exec *x, const struct linear_call *p,
                                       enum launch_product_tile tile)
{
    bool has_gelu = !tensor_is_null(p->gelu);
    double written = (p->in_place ? 0 : bytes_of(p->c)) + (has_gelu ? bytes_of(p->gelu) : 0);
    struct cuda_launch l = product_launch(SHORT_PRODUCT, x, p, written);
    l.tile_rows = SHORT_TILES[tile].rows, l.tile_cols = SHORT_TILES[tile].cols;
    l.parts = SHORT_TILES[tile].parts;
    l.instructions = has_gelu ? SHORT_PRODUCT_GELU * (double)p->m * (double)p->n : 0;
    l.issue_share = SHORT_PRODUCT.issue_share;
    return l;
}

/* Fills in the launches of a form in order; returns their number. */
static int launches_of_form(struct cuda_launch launches[MOST_LAUNCHES], const struct exec *x,
                            const struct linear_call *p, enum product_form form)
{
    int n = 0;
    double c = bytes_of(p->c);
    if (form == PRODUCT_EPILOGUE && p->casts_bias) {
        launches[n++] = memory_launch(CAST, (4.0 + (double)dtype_bytes(p->c.dtype)) * (double)p->n);
    } else if (form == PRODUCT_BROADCAST) {
        launches[n++] = memory_launch(BROADCAST, c);
    }
    launches[n++] = product_launch(PRODUCT, x, p, c + (p->accumulates || form == PRODUCT_BROADCAST ? c : 0));
    if (!tensor_is_null(p->gelu) && p->has_bias && form == PRODUCT_ALONE) {
        n = add_clearing(launches, n, p->gelu);
        launches[n++] = memory_launch(BIAS_GELU, (p->in_place ? 1 : 2) * c + bytes_of(p->gelu));
    } else if (!tensor_is_null(p->gelu)) {
        n = add_clearing(launches, n, p->gelu);
        launches[n++] = memory_launch(p->gelu.has_maxima ? GELU_NOTING : GELU, c + bytes_of(p->gelu));
    }
    if (p->has_bias_gradient) {
        bool by_library = form == PRODUCT_EPILOGUE;
        double partials = by_library ? 4.0 * (double)p->m : (double)workspace_column_sum(p->k, p->m);
        launches[n++] = memory_launch(COLUMNS, (by_library ? partials : bytes_of(p->a)) + partials);
        launches[n++] = memory_launch(ADD_RUNS, partials);
    }
    return n;
}

/* The launches with the least time so far. */
struct cheapest {
    struct cuda_launch launches[MOST_LAUNCHES];
    int n;
    double seconds;
};

static void compare_launches(struct cheapest *best, const struct exec *x,
                             const struct cuda_launch launches[MOST_LAUNCHES], int n)
{
    double seconds = seconds_of(x, launches, n);
    if (seconds < best->seconds) {
        best->seconds = seconds;
        best->n = n;
        memcpy(best->launches, launches, sizeof best->launches);
    }
}

static void multiply(const struct exec *x, const struct linear_call *p)
{
    struct cuda_traffic *t = traffic_of(x);
    struct cheapest best = {.seconds = INFINITY};
    for (int form = 0; form < PRODUCT_FORMS && p->m > 0 && p->n > 0; form++) {
        struct cuda_launch now[MOST_LAUNCHES] = {{0}};
        bool is_short = form == PRODUCT_SHORT;
        for (int tile = 0; is_candidate(t, (enum product_form)form, p) && tile < LAUNCH_PRODUCT_TILES;
             tile += is_short ? 1 : LAUNCH_PRODUCT_TILES) {
            int n = 1;
            if (is_short) {
                now[0] = short_launch(x, p, (enum launch_product_tile)tile);
            } else {
                n = launches_of_form(now, x, p, (enum product_form)form);
            }
            compare_launches(&best, x, now, n);
        }
    }
    for (int i = 0; i < best.n; i++) {
        tell(x, &best.launches[i]);
    }
}

static struct linear_call forward_call(tensor out, tensor in, tensor w, tensor bias)
{
    return (struct linear_call){.side = CUDA_FORWARD,
                                .c = out,
                                .a = in,
                                .b = w,
                                .m = tensor_rows(in),
                                .n = tensor_rows(w),
                                .k = tensor_cols(in),
                                .has_bias = !tensor_is_null(bias),
                                .casts_bias = !tensor_is_null(bias) && bias.dtype != out.dtype};
}

static void traffic_linear(struct exec *x, tensor out, tensor in, tensor w, tensor bias)
{
    struct linear_call p = forward_call(out, in, w, bias);
    multiply(x, &p);
}

/* Bytes of the fp8 factor that the op which computes a tensor rounds it to. */
static double rounded_bytes(tensor t)
{
    return bytes_of(t.rounded->rows) + bytes_of(t.rounded->columns);
}

static void traffic_linear_gelu(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias)
{
    struct linear_call p = forward_call(tensor_is_null(pre) ? out : pre, in, w, bias);
    p.gelu = out.rounded == NULL ? out : NULL_TENSOR;
    p.in_place = tensor_is_null(pre);
    multiply(x, &p);
    if (out.rounded != NULL) {
        move(x, ROUND_GELU, bytes_of(p.c) + rounded_bytes(out));
        move(x, ROUND_AGAIN, 0);
    }
}

static void traffic_linear_backward_input(struct exec *x, tensor din, tensor dout, tensor w, bool accumulate)
{
    struct linear_call p = {.side = CUDA_INPUT_GRADIENT,
                            .c = din,
                            .a = dout,
                            .b = w,
                            .m = tensor_rows(dout),
                            .n = tensor_cols(w),
                            .k = tensor_cols(dout),
                            .accumulates = accumulate};
    multiply(x, &p);
}

static void traffic_linear_backward_weight(struct exec *x, tensor dw, tensor dbias, tensor dout, tensor in,
                                           bool accumulate)
{
    struct linear_call p = {.side = CUDA_WEIGHT_GRADIENT,
                            .c = dw,
                            .a = dout,
                            .b = in,
                            .m = tensor_cols(dout),
                            .n = tensor_cols(in),
                            .k = tensor_rows(in),
                            .accumulates = accumulate,
                            .has_bias_gradient = !tensor_is_null(dbias)};
    multiply(x, &p);
}

/* The number of runs of rows for sums, in a kernel that rounds in tiles of 64 x 64: round_code.cuh. */
static int64_t tile_runs(int64_t rows, int64_t cols)
{
    enum { TILE = 64, MOST_BLOCKS = 6 * 132 };
    int64_t runs = workspace_at_most(MOST_BLOCKS / ((cols + TILE - 1) / TILE), workspace_runs(rows, cols));
    runs = workspace_at_most(runs, (rows + TILE - 1) / TILE);
    return runs > 1 ? runs : 1;
}

static void traffic_gelu_backward(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre)
{
    (void)dbias;
    if (dpre.rounded != NULL) {
        int64_t rows = tensor_rows(pre), cols = tensor_cols(pre);
        double partials = 4.0 * (double)(tile_runs(rows, cols) * cols);
        move(x, ROUND_GELU_BACKWARD, bytes_of(dout) + bytes_of(pre) + rounded_bytes(dpre) + partials);
        move(x, ADD_RUNS, partials);
        move(x, ROUND_AGAIN, 0);
        return;
    }
    sum_columns(x, GELU_BACKWARD, bytes_of(dpre) + bytes_of(dout) + bytes_of(pre), tensor_rows(pre),
                tensor_cols(pre), dpre.has_maxima);
}

static void traffic_dropout(struct exec *x, tensor out, tensor in, tensor row_keys, struct dropout drop)
{
    (void)drop;
    move(x, DROPOUT, bytes_of(out) + bytes_of(in) + bytes_of(row_keys));
}

static void traffic_tanh(struct exec *x, tensor out, tensor in)
{
    move(x, TANH, bytes_of(out) + bytes_of(in));
}

static void traffic_tanh_backward(struct exec *x, tensor din, tensor dout, tensor out)
{
    move(x, TANH, bytes_of(din) + bytes_of(dout) + bytes_of(out));
}

static void traffic_layernorm(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma,
                              tensor beta, double eps)
{
    (void)gamma, (void)beta, (void)eps;
    move(x, LAYERNORM, bytes_of(out) + bytes_of(in) + bytes_of(mean) + bytes_of(rstd));
}

/* The kernel that all layer norms' backward share, and the sums over its runs. */
/* `stored` is a tensor that is rounded from memory, or null. */
static void norm_backward(const struct exec *x, double bytes, int64_t rows, int64_t cols, bool rounds,
                          tensor stored)
{
    double partials = (double)workspace_layernorm_backward(rows, cols);
    move(x, rounds ? NORM_BACKWARD_ROUND : LAYERNORM_BACKWARD, bytes + 8.0 * (double)rows + partials);
    if (rounds) {
        move(x, NORM_BACKWARD_ROUND_AGAIN, 0);
    }
    if (!tensor_is_null(stored)) {
        move(x, ROUND_NOTING, bytes_of(stored) + rounded_bytes(stored));
        move(x, ROUND_AGAIN, 0);
    }
    move(x, ADD_RUNS, partials);
}

static void traffic_layernorm_backward(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout,
                                       tensor in, tensor mean, tensor rstd, tensor gamma)
{
    (void)dgamma, (void)dbeta, (void)mean, (void)rstd, (void)gamma;
    norm_backward(x, bytes_of(din) + bytes_of(dout) + bytes_of(in), tensor_rows(in), tensor_cols(in), false,
                  NULL_TENSOR);
}

static void traffic_bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean,
                                               tensor rstd, tensor in, tensor bias, tensor residual,
                                               tensor gamma, tensor beta, double eps, tensor row_keys,
                                               struct dropout drop)
{
    (void)bias, (void)gamma, (void)beta, (void)eps, (void)drop;
    double bytes = bytes_of(out) + bytes_of(sum) + bytes_of(in) + bytes_of(residual) + bytes_of(mean) +
                   bytes_of(rstd) + bytes_of(row_keys);
    if (out.rounded != NULL) {
        move(x, NORM_ROUND, bytes + rounded_bytes(out));
        move(x, NORM_ROUND_AGAIN, 0);
        return;
    }
    clear_maxima(x, out);
    move(x, LAYERNORM, bytes);
}

static void traffic_bias_dropout_add_layernorm_backward(struct exec *x, tensor dresidual, tensor din,
                                                        tensor dbias, tensor dgamma, tensor dbeta,
                                                        tensor dout, tensor sum, tensor mean, tensor rstd,
                                                        tensor gamma, tensor row_keys, struct dropout drop,
                                                        bool accumulate)
{
    (void)dbias, (void)dgamma, (void)dbeta, (void)mean, (void)rstd, (void)gamma, (void)drop;
    int64_t rows = tensor_rows(sum), cols = tensor_cols(sum);
    double bytes = bytes_of(dresidual) + bytes_of(dout) + bytes_of(sum) + bytes_of(row_keys);
    bool rounds = din.rounded != NULL;
    if (accumulate) {
        bytes += bytes_of(dresidual) + bytes_of(din);
        norm_backward(x, bytes, rows, cols, false, rounds ? din : NULL_TENSOR);
    } else {
        bytes += rounds ? rounded_bytes(din) : bytes_of(din);
        norm_backward(x, bytes, rows, cols, rounds, NULL_TENSOR);
    }
}

/* Rows of `word` are anywhere in memory; those of positions and types are few, and stay in the cache. */
static void traffic_embed(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids,
                          tensor types, tensor positions, tensor word, tensor position, tensor type,
                          tensor gamma, tensor beta, double eps, tensor row_keys, struct dropout drop)
{
    (void)word, (void)position, (void)type, (void)gamma, (void)beta, (void)eps, (void)drop;
    clear_maxima(x, out);
    move(x, LAYERNORM,
         2 * bytes_of(out) + bytes_of(sum) + bytes_of(mean) + bytes_of(rstd) + bytes_of(ids) +
             bytes_of(types) + bytes_of(positions) + bytes_of(row_keys));
}

/* One block sorts: for each digit of eight bits it reads and writes all pairs twice, 1,024 at a time, and
 * waits for each. */
static void scatter(const struct exec *x, tensor table, tensor in, int64_t rows)
{
    int digits = 1;
    int64_t runs = (rows + WORKSPACE_SORTED_RUN - 1) / WORKSPACE_SORTED_RUN;
    double row_bytes = (double)(tensor_cols(in) * (int64_t)dtype_bytes(table.dtype));
    double touched = (double)workspace_at_most(rows, tensor_rows(table)) * row_bytes;
    double pairs = 8.0 * (double)rows, heads = 4.0 * (double)(runs * tensor_cols(in));
    while ((tensor_rows(table) - 1) >> (digits * 8) > 0) {
        digits++;
    }
    if (rows > 0) {
        wait(x, SORT, (1.0 + 3.0 * digits) * pairs, (1 + 2 * digits) * rounds((double)rows, 1024));
        move(x, ADD_RUN, bytes_of(in) + pairs + 2 * touched);
        move(x, ADD_HEADS, heads);
    }
}

static void traffic_embed_backward(struct exec *x, tensor dsum, tensor dword, tensor dposition, tensor dtype,
                                   tensor dgamma, tensor dbeta, tensor dout, tensor sum, tensor mean,
                                   tensor rstd, tensor ids, tensor types, tensor positions, tensor gamma,
                                   tensor row_keys, struct dropout drop)
{
    (void)dgamma, (void)dbeta, (void)mean, (void)rstd, (void)types, (void)positions, (void)gamma, (void)drop;
    int64_t rows = tensor_count(ids);
    norm_backward(x, bytes_of(dsum) + bytes_of(dout) + bytes_of(sum) + bytes_of(row_keys), tensor_rows(sum),
                  tensor_cols(sum), false, NULL_TENSOR);
    scatter(x, dword, dsum, rows);
    scatter(x, dposition, dsum, rows);
    scatter(x, dtype, dsum, rows);
}

static void traffic_gather_rows(struct exec *x, tensor out, tensor in, tensor rows)
{
    (void)in;
    if (tensor_count(rows) > 0) {
        move(x, GATHER, 2 * bytes_of(out));
    }
}

static void traffic_scatter_add_rows(struct exec *x, tensor din, tensor dout, tensor rows)
{
    scatter(x, din, dout, tensor_count(rows));
}

/* The second read of the logits is from the cache. */
static void traffic_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                                  tensor labels, int64_t n_classes, tensor scale)
{
    (void)n_classes, (void)scale;
    move(x, CROSS_ENTROPY,
         bytes_of(loss) + bytes_of(correct) + bytes_of(dlogits) + bytes_of(logits) + bytes_of(labels));
}

static void traffic_span_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits,
                                       tensor logits, tensor cu_seqlens, tensor labels, tensor scale)
{
    (void)loss, (void)correct, (void)cu_seqlens, (void)labels, (void)scale;
    if (!tensor_is_null(dlogits)) {
        move(x, MEMSET, bytes_of(dlogits));
    }
    move(x, SPAN, bytes_of(logits) + bytes_of(dlogits));
}

static void traffic_pointwise(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                              tensor targets, enum pointwise_loss kind, tensor scale)
{
    (void)kind, (void)scale;
    move(x, POINTWISE,
         bytes_of(loss) + bytes_of(correct) + bytes_of(dlogits) + bytes_of(logits) + bytes_of(targets));
}

void cuda_traffic_init(struct cuda_traffic *t)
{
    *t = (struct cuda_traffic){
        .form = CUDA_TRAFFIC_ANY,
        .attention = CUDA_TRAFFIC_ANY,
        .table = {.name = "traffic",
                  .fill = traffic_fill,
                  .cast = traffic_cast,
                  .quantize = traffic_quantize,
                  .add = traffic_add,
                  .sum = traffic_sum,
                  .find_nonfinite = traffic_find_nonfinite,
                  .linear = traffic_linear,
                  .linear_gelu = traffic_linear_gelu,
                  .linear_backward_input = traffic_linear_backward_input,
                  .linear_backward_weight = traffic_linear_backward_weight,
                  .gelu_backward = traffic_gelu_backward,
                  .dropout = traffic_dropout,
                  .tanh = traffic_tanh,
                  .tanh_backward = traffic_tanh_backward,
                  .embed = traffic_embed,
                  .embed_backward = traffic_embed_backward,
                  .layernorm = traffic_layernorm,
                  .layernorm_backward = traffic_layernorm_backward,
                  .bias_dropout_add_layernorm = traffic_bias_dropout_add_layernorm,
                  .bias_dropout_add_layernorm_backward = traffic_bias_dropout_add_layernorm_backward,
                  .attention = cuda_traffic_attention,
                  .attention_backward = cuda_traffic_attention_backward,
                  .gather_rows = traffic_gather_rows,
                  .scatter_add_rows = traffic_scatter_add_rows,
                  .cross_entropy = traffic_cross_entropy,
                  .span_cross_entropy = traffic_span_cross_entropy,
                  .pointwise = traffic_pointwise,
                  .clear = cuda_traffic_clear,
                  .squares = cuda_traffic_squares,
                  .norm_of = cuda_traffic_norm_of,
                  .lamb_direction = cuda_traffic_lamb_direction,
                  .lamb_apply = cuda_traffic_lamb_apply,
                  .lans_direction = cuda_traffic_lans_direction,
                  .lans_apply = cuda_traffic_lans_apply,
                  .adamw = cuda_traffic_adamw,
                  .nesterov = cuda_traffic_nesterov,
                  .unit = cuda_traffic_unit,
                  .matrix_polynomial = cuda_traffic_matrix_polynomial,
                  .descend = cuda_traffic_descend}};
}
