/* Rounding to fp8 on a device without fp8 products: results are stored in bf16 or fp32, which hold them
 * exactly (core/fp8.h). */
#include "core/fp8.h"
#include "ops/cpu/kernel.h"
#include "ops/cpu/row_integers.h"
#include "ops/cpu/row_runs.h"
#include "ops/cpu/rows.h"

struct quantize_call {
    tensor out, in;
    enum dtype format;
    int64_t rows, items;
    float scale;
    float *partials; /* [items] maxima, then [runs, cols] sums; of int8 the scales of rows */
};

enum { COLS_AT_ONCE = 1024, ROWS_PER_ITEM = 16 };

static int64_t item_begin(const struct quantize_call *c, int64_t item)
{
    return c->rows * item / c->items;
}

static void maximum_item(const void *context, int64_t item, void *lane)
{
    const struct quantize_call *c = context;
    int64_t cols = tensor_cols(c->in);
    uint32_t largest = 0;
    for (int64_t r = item_begin(c, item); r < item_begin(c, item + 1); r++) {
        for (int64_t i = 0; i < cols; i += COLS_AT_ONCE) {
            int64_t n = kernel_min(COLS_AT_ONCE, cols - i);
            uint32_t here = largest_bits(rows_load(c->in, r, i, n, lane), n);
            largest = here > largest ? here : largest;
        }
    }
    memcpy(&c->partials[item], &largest, sizeof largest);
}

static void round_row(float *out, const float *in, int64_t n, enum dtype format, float scale)
{
    float inverse = 1.0F / scale; /* the inverse of a power of two: exact */
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = scale * fp8_round(format, inverse * in[i]);
    }
}

static void round_item(const void *context, int64_t item, void *lane)
{
    const struct quantize_call *c = context;
    int64_t cols = tensor_cols(c->in);
    float *buffers = lane;
    for (int64_t r = item_begin(c, item); r < item_begin(c, item + 1); r++) {
        for (int64_t i = 0; i < cols; i += COLS_AT_ONCE) {
            int64_t n = kernel_min(COLS_AT_ONCE, cols - i);
            const float *in = rows_load(c->in, r, i, n, buffers);
            float *out = rows_target(c->out, r, i, buffers + COLS_AT_ONCE);
            if (c->format == DTYPE_E4M3) {
                round_row(out, in, n, DTYPE_E4M3, c->scale);
            } else {
                round_row(out, in, n, DTYPE_E5M2, c->scale);
            }
            rows_store(c->out, r, i, n, out);
        }
    }
}

static void sum_run(const void *context, int64_t run, void *lane)
{
    const struct quantize_call *c = context;
    int64_t cols = tensor_cols(c->in);
    float *sums = c->partials + run * cols;
    memset(sums, 0, (size_t)cols * sizeof *sums);
    for (int64_t r = row_run_begin(c->rows, run); r < row_run_begin(c->rows, run + 1); r++) {
        for (int64_t i = 0; i < cols; i += COLS_AT_ONCE) {
            int64_t n = kernel_min(COLS_AT_ONCE, cols - i);
            const float *in = rows_load(c->in, r, i, n, lane);
#pragma omp simd
            for (int64_t k = 0; k < n; k++) {
                sums[i + k] += in[k];
            }
        }
    }
}

static float largest_of(const struct quantize_call *c)
{
    float largest;
    uint32_t bits = 0;
    for (int64_t i = 0; i < c->items; i++) {
        uint32_t u;
        memcpy(&u, &c->partials[i], sizeof u);
        bits = u > bits ? u : bits;
    }
    memcpy(&largest, &bits, sizeof largest);
    return largest;
}

/* The scale, from the history of the step before, if there is one, and the largest magnitude now. */
static float scale_of(tensor history, enum dtype format, float largest)
{
    float *known = history.data;
    if (tensor_is_null(history)) {
        return fp8_scale(format, largest);
    }
    known[1] = known[1] > largest || isnan(known[1]) ? known[1] : largest;
    return fp8_scale_after(format, known[0], known[1]);
}

static void integers_item(const void *context, int64_t item, void *lane)
{
    const struct quantize_call *c = context;
    int64_t cols = tensor_cols(c->in);
    int8_t *out = (int8_t *)c->out.data + rows_offset(c->out, item);
    const float *in = rows_load(c->in, item, 0, cols, lane);
    c->partials[item] = row_integers_int8(out, in, cols);
}

static void quantize_int8(struct exec *x, tensor rows, tensor scale, tensor in)
{
    if (accept_tensors(x, "quantize", ACCEPT_LIST(in), ACCEPT_LIST(scale))) {
        struct quantize_call c = {.out = rows, .in = in, .partials = scale.data};
        lanes_run(x, "quantize", tensor_rows(in), (size_t)tensor_cols(in) * sizeof(float), integers_item, &c);
    }
}

static void cpu_quantize(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history,
                         tensor dbias, tensor in, enum dtype format)
{
    if (format == DTYPE_I8) {
        quantize_int8(x, rows, scale, in);
        return;
    }
    if (!accept_tensors(x, "quantize", ACCEPT_LIST(rows, in), ACCEPT_LIST(scale, history, dbias))) {
        return;
    }
    if (!tensor_is_null(columns)) {
        exec_fail(x, STATUS_USAGE, "quantize", "the cpu stores fp8 by rows, as %s", dtype_name(in.dtype));
        return;
    }
    x->served_why = "fp8 kept in bf16: no products in fp8 on a cpu";
    int64_t n_rows = tensor_rows(in), cols = tensor_cols(in), runs = row_runs(n_rows);
    struct quantize_call c = {
        .out = rows,
        .in = in,
        .format = format,
        .rows = n_rows,
        .items = kernel_min(WORKSPACE_MAXIMA, kernel_blocks(n_rows, ROWS_PER_ITEM)),
        .partials = exec_scratch(x, workspace_quantize(n_rows, cols, !tensor_is_null(dbias))),
    };
    lanes_run(x, "quantize", c.items, COLS_AT_ONCE * sizeof(float), maximum_item, &c);
    if (!failed(x->status)) {
        c.scale = scale_of(history, format, largest_of(&c));
        *(float *)scale.data = c.scale;
    }
    lanes_run(x, "quantize", c.items, 2 * COLS_AT_ONCE * sizeof(float), round_item, &c);
    if (tensor_is_null(dbias) || runs == 0) {
        return;
    }
    lanes_run(x, "quantize", runs, COLS_AT_ONCE * sizeof(float), sum_run, &c);
    if (!failed(x->status)) {
        row_runs_add(dbias.data, c.partials, runs, cols, cols);
    }
}

KERNEL_FILL(quantize, struct ops)
{
    t->quantize = cpu_quantize;
}
