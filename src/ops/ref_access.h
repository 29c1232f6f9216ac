/* ref_access: elements of matrices and vectors, as the reference table (ops/ref.c) reads and writes them.
 * The names are short, since formulas are made of them. */
#ifndef KILN_OPS_REF_ACCESS_H
#define KILN_OPS_REF_ACCESS_H

#include "core/rng.h"
#include "ops/ops.h"

static inline bool stopped(const struct exec *x)
{
    return failed(x->status);
}

/* Element (row, col) of a matrix, or of heads [T, N, D], of which each is a row. */
static inline int64_t offset2(tensor t, int64_t row, int64_t col)
{
    if (t.n_dims == 3) {
        return row / t.dims[1] * t.strides[0] + row % t.dims[1] * t.strides[1] + col * t.strides[2];
    }
    CHECK(t.n_dims == 2, "a tensor of %d dims is not a matrix", t.n_dims);
    return row * t.strides[0] + col * t.strides[1];
}

static inline double get2(tensor t, int64_t row, int64_t col)
{
    return tensor_load(t, offset2(t, row, col));
}

static inline void set2(tensor t, int64_t row, int64_t col, double value)
{
    tensor_store(t, offset2(t, row, col), value);
}

static inline void add2(tensor t, int64_t row, int64_t col, double value)
{
    set2(t, row, col, get2(t, row, col) + value);
}

static inline void add1(tensor t, int64_t i, double value)
{
    tensor_set(t, i, tensor_get(t, i) + value);
}

static inline int64_t index_at(tensor t, int64_t i)
{
    return (int64_t)tensor_get(t, i);
}

/* The factor of dropout for element `column` of the row with this key. */
static inline double dropout_factor(const struct exec *x, struct dropout d, tensor row_keys, int64_t row,
                                    int64_t column)
{
    uint32_t threshold = dropout_threshold(d);
    if (threshold == 0) {
        return 1.0;
    }
    uint32_t sequence = (uint32_t)get2(row_keys, row, 0);
    uint32_t position = (uint32_t)get2(row_keys, row, 1);
    struct rng_block b = rng_philox(exec_dropout_key(x), (uint32_t)(column / 8), position, sequence, d.site);
    uint32_t word = b.word[column % 8 / 2];
    uint32_t bits = column % 2 == 0 ? word & 0xffffU : word >> 16;
    return bits < threshold ? 0.0 : dropout_scale(d);
}

#endif
