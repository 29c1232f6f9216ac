/* Ops that move, convert or inspect elements and compute almost nothing: bound by memory. */
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"

#include <math.h>
#include <string.h>

enum { ELEMENTS_PER_ITEM = 8192, ROWS_PER_ITEM = 16, COLUMNS_PER_ITEM = 64 };

struct move_call {
    tensor out, in;
    double value;
    int64_t rows, cols, blocks_per_row;
    const int32_t *indices;
    int64_t first;        /* index of the first row of the table that is here */
    int64_t *first_found; /* [items] */
};

/* The part of a tensor that one item covers: columns [first, first + n) of a row. */
struct piece {
    int64_t row, first, n;
};

static struct piece piece_of(const struct move_call *c, int64_t item)
{
    int64_t first = item % c->blocks_per_row * ELEMENTS_PER_ITEM;
    return (struct piece){item / c->blocks_per_row, first, kernel_min(ELEMENTS_PER_ITEM, c->cols - first)};
}

/* Dense tensors are one long row. */
static int64_t cut(struct move_call *c, tensor shape, bool dense)
{
    c->rows = dense ? 1 : tensor_rows(shape);
    c->cols = dense ? tensor_count(shape) : tensor_cols(shape);
    c->blocks_per_row = kernel_blocks(c->cols, ELEMENTS_PER_ITEM);
    return c->rows * c->blocks_per_row;
}

/* The begin of a row, for tensors of any strides. */
static char *row_begin(tensor t, int64_t row)
{
    int64_t offset = 0;
    for (int i = t.n_dims - 2; i >= 0; i--) {
        offset += row % t.dims[i] * t.strides[i];
        row /= t.dims[i];
    }
    return (char *)t.data + offset * (int64_t)dtype_bytes(t.dtype);
}

static void fill_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    const struct move_call *c = context;
    struct piece p = piece_of(c, item);
    size_t size = dtype_bytes(c->out.dtype);
    char *to = (c->rows == 1 ? (char *)c->out.data : row_begin(c->out, p.row)) + (size_t)p.first * size;
    tensor_set(tensor_1d(to, c->out.dtype, p.n), 0, c->value);
    for (size_t done = size, all = (size_t)p.n * size; done < all;) { /* doubles the filled part */
        size_t more = done < all - done ? done : all - done;
        memcpy(to + done, to, more);
        done += more;
    }
}

static void cpu_fill(struct exec *x, tensor out, double value)
{
    if (failed(x->status)) {
        return;
    }
    struct move_call c = {.out = out, .value = value};
    lanes_run(x, "fill", cut(&c, out, tensor_is_dense(out)), 0, fill_item, &c);
}

static void cast_any(tensor out, tensor in, struct piece p)
{
    int64_t cols = tensor_cols(out);
    for (int64_t i = 0; i < p.n; i++) {
        int64_t index = p.row * cols + p.first + i;
        tensor_set(out, index, tensor_get(in, index));
    }
}

static void cast_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    const struct move_call *c = context;
    struct piece p = piece_of(c, item);
    enum dtype to = c->out.dtype, from = c->in.dtype;
    char *out =
        (c->rows == 1 ? (char *)c->out.data : row_begin(c->out, p.row)) + p.first * (int64_t)dtype_bytes(to);
    const char *in =
        (c->rows == 1 ? (char *)c->in.data : row_begin(c->in, p.row)) + p.first * (int64_t)dtype_bytes(from);
    if (to == from) {
        memmove(out, in, (size_t)p.n * dtype_bytes(to));
    } else if (to == DTYPE_BF16 && from == DTYPE_F32) {
        rows_to_bf16((uint16_t *)(void *)out, (const float *)(const void *)in, p.n);
    } else if (to == DTYPE_F32 && from == DTYPE_BF16) {
        rows_from_bf16((float *)(void *)out, (const uint16_t *)(const void *)in, p.n);
    } else {
        cast_any(c->out, c->in, p);
    }
}

static bool dense_rows(tensor t)
{
    return tensor_cols(t) <= 1 || t.strides[t.n_dims - 1] == 1;
}

static void cpu_cast(struct exec *x, tensor out, tensor in)
{
    if (failed(x->status)) {
        return;
    }
    if (!dense_rows(out) || !dense_rows(in)) {
        exec_fail(x, STATUS_USAGE, "cast", "the elements of a row must lie side by side");
        return;
    }
    struct move_call c = {.out = out, .in = in};
    bool dense = tensor_is_dense(out) && tensor_is_dense(in);
    lanes_run(x, "cast", cut(&c, out, dense), 0, cast_item, &c);
}

static void add_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    const struct move_call *c = context;
    struct piece p = piece_of(c, item);
    float *restrict out = (float *)c->out.data + p.first;
    const float *restrict in = (const float *)c->in.data + p.first;
#pragma omp simd
    for (int64_t i = 0; i < p.n; i++) {
        out[i] += in[i];
    }
}

static void cpu_add(struct exec *x, tensor out, tensor in)
{
    if (accept_tensors(x, "add", ACCEPT_LIST(out), ACCEPT_LIST(out, in))) {
        struct move_call c = {.out = out, .in = in};
        lanes_run(x, "add", cut(&c, out, true), 0, add_item, &c);
    }
}

/* Losses and counts of a micro-batch: a few thousand numbers, not worth a second thread. */
static void cpu_sum(struct exec *x, tensor total, tensor in)
{
    if (failed(x->status)) {
        return;
    }
    if (total.dtype != DTYPE_F64 || (in.dtype != DTYPE_F32 && in.dtype != DTYPE_I32) ||
        !tensor_is_dense(in)) {
        exec_fail(x, STATUS_USAGE, "sum", "adds dense fp32 or i32 into fp64, not %s into %s",
                  dtype_name(in.dtype), dtype_name(total.dtype));
        return;
    }
    double sum = 0;
    int64_t n = tensor_count(in);
    if (in.dtype == DTYPE_I32) {
        const int32_t *v = in.data;
        for (int64_t i = 0; i < n; i++) {
            sum += v[i];
        }
    } else {
        const float *v = in.data;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n; i++) {
            sum += (double)v[i];
        }
    }
    *(double *)total.data += sum;
}

/* True if a number has all bits of the exponent set: it is infinite or NaN. */
static bool any_nonfinite(const struct move_call *c, struct piece p)
{
    uint32_t found = 0;
    if (c->in.dtype == DTYPE_F32) {
        const float *v = (const float *)c->in.data + p.first;
        for (int64_t i = 0; i < p.n; i++) {
            uint32_t u;
            memcpy(&u, &v[i], sizeof u);
            found |= (u & 0x7f800000U) == 0x7f800000U;
        }
    } else {
        const uint16_t *v = (const uint16_t *)c->in.data + p.first;
        for (int64_t i = 0; i < p.n; i++) {
            found |= (v[i] & 0x7f80U) == 0x7f80U;
        }
    }
    return found != 0;
}

static void find_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    const struct move_call *c = context;
    struct piece p = piece_of(c, item);
    if (!any_nonfinite(c, p)) {
        return;
    }
    int64_t i = p.first;
    while (isfinite(tensor_get(c->in, i))) {
        i++;
    }
    int64_t found = __atomic_load_n(c->first_found, __ATOMIC_RELAXED);
    while ((found < 0 || i < found) && !__atomic_compare_exchange_n(c->first_found, &found, i, true,
                                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static void cpu_find_nonfinite(struct exec *x, tensor index, tensor in)
{
    if (!accept_tensors(x, "find_nonfinite", ACCEPT_LIST(in), NULL, 0)) {
        return;
    }
    if (!tensor_is_dense(in)) {
        exec_fail(x, STATUS_USAGE, "find_nonfinite", "the tensor must be dense");
        return;
    }
    struct move_call c = {.in = in, .first_found = index.data};
    *c.first_found = -1;
    lanes_run(x, "find_nonfinite", cut(&c, in, true), 0, find_item, &c);
}

/* The row of a table that an index names; -1: that row is not here. */
static int64_t row_here(const struct move_call *c, tensor table, int64_t i)
{
    int64_t row = c->indices[i] - c->first;
    return row >= 0 && row < tensor_rows(table) ? row : -1;
}

static void gather_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    const struct move_call *c = context;
    size_t size = dtype_bytes(c->in.dtype), bytes = (size_t)c->cols * size;
    int64_t end = kernel_min((item + 1) * ROWS_PER_ITEM, c->rows);
    for (int64_t row = item * ROWS_PER_ITEM; row < end; row++) {
        int64_t from = row_here(c, c->in, row);
        char *to = (char *)c->out.data + (size_t)rows_offset(c->out, row) * size;
        if (from < 0) {
            memset(to, 0, bytes);
        } else {
            memcpy(to, (const char *)c->in.data + (size_t)rows_offset(c->in, from) * size, bytes);
        }
    }
}

static void gather(struct exec *x, const char *op, tensor out, tensor in, tensor rows, int64_t first,
                   int64_t n_rows)
{
    if (!accept_copied(x, op, out, in) || !accept_indices(x, op, "row", rows, 0, n_rows)) {
        return;
    }
    struct move_call c = {.out = out, .in = in, .indices = rows.data, .first = first};
    c.rows = tensor_count(rows);
    c.cols = tensor_cols(in);
    lanes_run(x, op, kernel_blocks(c.rows, ROWS_PER_ITEM), 0, gather_item, &c);
}

static void gather_int8_item(const void *context, int64_t item, void *lane)
{
    const struct move_call *c = context;
    int64_t here = row_here(c, c->in, item), row = here < 0 ? 0 : here;
    const int8_t *in = (const int8_t *)c->in.data + rows_offset(c->in, row);
    float scale = here < 0 ? 0 : c->in.scale[row], *out = rows_target(c->out, item, 0, lane);
#pragma omp simd
    for (int64_t i = 0; i < c->cols; i++) {
        out[i] = scale * (float)in[i];
    }
    rows_store(c->out, item, 0, c->cols, out);
}

static void gather_int8(struct exec *x, const char *op, tensor out, tensor in, tensor rows, int64_t first,
                        int64_t n_rows)
{
    if (accept_tensors(x, op, ACCEPT_LIST(out), NULL, 0) && accept_int8(x, op, in) &&
        accept_indices(x, op, "row", rows, 0, n_rows)) {
        struct move_call c = {
            .out = out, .in = in, .indices = rows.data, .first = first, .cols = tensor_cols(in)};
        lanes_run(x, op, tensor_count(rows), (size_t)c.cols * sizeof(float), gather_int8_item, &c);
    }
}

static void gather_any(struct exec *x, const char *op, tensor out, tensor in, tensor rows, int64_t first,
                       int64_t n_rows)
{
    (in.dtype == DTYPE_I8 ? gather_int8 : gather)(x, op, out, in, rows, first, n_rows);
}

static void cpu_gather_rows(struct exec *x, tensor out, tensor in, tensor rows)
{
    gather_any(x, "gather_rows", out, in, rows, 0, tensor_rows(in));
}

static void cpu_gather_slice(struct exec *x, tensor out, tensor in, tensor rows, int64_t first,
                             int64_t n_rows)
{
    gather_any(x, "gather_slice", out, in, rows, first, n_rows);
}

/* Each thread owns columns, so that sums into a row that occurs twice are in the order of `indices`. */
static void scatter_item(const void *context, int64_t item, void *lane)
{
    const struct move_call *c = context;
    int64_t first = item * COLUMNS_PER_ITEM, n = kernel_min(COLUMNS_PER_ITEM, c->cols - first);
    float *buffer = lane;
    for (int64_t m = 0; m < c->rows; m++) {
        int64_t to = row_here(c, c->out, m);
        if (to < 0) {
            continue;
        }
        const float *d = rows_load(c->in, m, first, n, buffer);
        const float *old = rows_load(c->out, to, first, n, buffer + COLUMNS_PER_ITEM);
        float *new = rows_target(c->out, to, first, buffer + COLUMNS_PER_ITEM);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            new[i] = old[i] + d[i];
        }
        rows_store(c->out, to, first, n, new);
    }
}

static void scatter_add(struct exec *x, const char *op, tensor din, tensor dout, tensor rows, int64_t first,
                        int64_t n_rows)
{
    if (!accept_tensors(x, op, ACCEPT_LIST(dout), NULL, 0) ||
        !accept_tensors(x, op, ACCEPT_LIST(din), NULL, 0) || !accept_indices(x, op, "row", rows, 0, n_rows)) {
        return;
    }
    struct move_call c = {.out = din, .in = dout, .indices = rows.data, .first = first};
    c.rows = tensor_count(rows);
    c.cols = tensor_cols(din);
    lanes_run(x, op, kernel_blocks(c.cols, COLUMNS_PER_ITEM), 2 * COLUMNS_PER_ITEM * sizeof(float),
              scatter_item, &c);
}

static void cpu_scatter_add_rows(struct exec *x, tensor din, tensor dout, tensor rows)
{
    scatter_add(x, "scatter_add_rows", din, dout, rows, 0, tensor_rows(din));
}

static void cpu_scatter_add_slice(struct exec *x, tensor din, tensor dout, tensor rows, int64_t first,
                                  int64_t n_rows)
{
    scatter_add(x, "scatter_add_slice", din, dout, rows, first, n_rows);
}

KERNEL_FILL(move, struct ops)
{
    t->fill = cpu_fill;
    t->cast = cpu_cast;
    t->add = cpu_add;
    t->sum = cpu_sum;
    t->find_nonfinite = cpu_find_nonfinite;
    t->gather_rows = cpu_gather_rows;
    t->scatter_add_rows = cpu_scatter_add_rows;
    t->gather_slice = cpu_gather_slice;
    t->scatter_add_slice = cpu_scatter_add_slice;
}
