/* The pieces of a polynomial of a matrix that are not products (optim/optimizer_muon.c). */
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"

#include <math.h>

enum { COLUMNS_PER_BLOCK = 1024, ROWS_PER_ITEM = 16 };

struct matrix_call {
    tensor out, in, square;
    float a, b, c;
};

typedef void block_function(const struct matrix_call *m, int64_t row, int64_t first, int64_t n, float *lane);

/* `apply` gets the columns [first, first + n) of each row, and two buffers of COLUMNS_PER_BLOCK. */
struct blocks {
    struct matrix_call m;
    block_function *apply;
};

static void blocks_item(const void *context, int64_t item, void *lane)
{
    const struct blocks *b = context;
    int64_t cols = tensor_cols(b->m.in), end = kernel_min(tensor_rows(b->m.in), (item + 1) * ROWS_PER_ITEM);
    for (int64_t row = item * ROWS_PER_ITEM; row < end; row++) {
        for (int64_t first = 0; first < cols; first += COLUMNS_PER_BLOCK) {
            b->apply(&b->m, row, first, kernel_min(COLUMNS_PER_BLOCK, cols - first), lane);
        }
    }
}

static void run(struct exec *x, const char *op, const struct matrix_call *m, block_function *apply)
{
    struct blocks b = {*m, apply};
    lanes_run(x, op, kernel_blocks(tensor_rows(m->in), ROWS_PER_ITEM), 2 * COLUMNS_PER_BLOCK * sizeof(float),
              blocks_item, &b);
}

static void unit_block(const struct matrix_call *m, int64_t row, int64_t first, int64_t n, float *lane)
{
    const float *in = rows_f32(m->in, row) + first;
    float *out = rows_target(m->out, row, first, lane);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = m->a * in[i];
    }
    rows_store(m->out, row, first, n, out);
}

static void cpu_unit(struct exec *x, tensor out, tensor in, tensor sums)
{
    if (!accept_tensors(x, "unit", ACCEPT_LIST(out), ACCEPT_LIST(in))) {
        return;
    }
    const double *v = sums.data;
    double sum = 0;
    for (int64_t i = 0; i < tensor_count(sums); i++) {
        sum += v[i];
    }
    struct matrix_call m = {.out = out, .in = in, .a = (float)(sum > 0 ? 1 / sqrt(sum) : 0)};
    run(x, "unit", &m, unit_block);
}

static void polynomial_block(const struct matrix_call *m, int64_t row, int64_t first, int64_t n, float *lane)
{
    const float *in = rows_load(m->in, row, first, n, lane);
    const float *square = rows_load(m->square, row, first, n, lane + COLUMNS_PER_BLOCK);
    float *out = rows_target(m->out, row, first, lane);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        out[i] = m->b * in[i] + m->c * square[i];
    }
    if (row >= first && row < first + n) {
        out[row - first] += m->a;
    }
    rows_store(m->out, row, first, n, out);
}

static void cpu_matrix_polynomial(struct exec *x, tensor out, tensor in, tensor square, double a, double b,
                                  double c)
{
    if (accept_tensors(x, "matrix_polynomial", ACCEPT_LIST(out, in, square), NULL, 0)) {
        struct matrix_call m = {out, in, square, (float)a, (float)b, (float)c};
        run(x, "matrix_polynomial", &m, polynomial_block);
    }
}

KERNEL_FILL(matrix, struct ops)
{
    t->unit = cpu_unit;
    t->matrix_polynomial = cpu_matrix_polynomial;
}
