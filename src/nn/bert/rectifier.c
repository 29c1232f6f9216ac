#include "nn/bert/rectifier.h"

#include "ops/ops.h"

void rectifier_carve(struct rectifier_acts *a, struct arena *arena, enum dtype dtype, int64_t n_rows,
                     int64_t width)
{
    enum dtype vector = dtype_of_vectors(dtype);
    a->z = arena_carve_2d(arena, vector, n_rows, width);
    a->is_shut = arena_carve_2d(arena, DTYPE_I32, n_rows, width);
    a->shut = arena_carve_2d(arena, dtype, n_rows, width);
    a->numbers = arena_carve_2d(arena, dtype, 2, 1);
    a->zeros = arena_carve_2d(arena, DTYPE_F32, n_rows, width);
    a->no_loss = arena_carve_2d(arena, vector, n_rows, width);
    a->loss_scale = arena_carve_1d(arena, DTYPE_F64, 1);
}

/* A view of a dense matrix as rows of one element. */
static tensor column(tensor t)
{
    return tensor_2d(t.data, t.dtype, tensor_count(t), 1);
}

/* A target of 0 calls z > 0 wrong, and z <= 0 right. */
static void find_shut(struct exec *x, const struct rectifier_acts *a)
{
    const struct ops *op = x->ops;
    op->fill(x, a->zeros, 0);
    op->fill(x, a->loss_scale, 1);
    op->fill(x, tensor_slice(a->numbers, 0, 1), 0);
    op->fill(x, tensor_slice(a->numbers, 1, 1), 1);
    op->pointwise(x, a->no_loss, a->is_shut, NULL_TENSOR, a->z, a->zeros, POINTWISE_SIGMOID, a->loss_scale);
    op->gather_rows(x, column(a->shut), a->numbers,
                    tensor_1d(a->is_shut.data, DTYPE_I32, tensor_count(a->is_shut)));
}

void rectifier_forward(struct exec *x, tensor out, const struct rectifier_acts *a)
{
    find_shut(x, a);
    x->ops->cast(x, out, a->z);
    x->ops->tanh_backward(x, out, out, a->shut);
}

void rectifier_backward(struct exec *x, tensor din, tensor dout, const struct rectifier_acts *a)
{
    x->ops->tanh_backward(x, din, dout, a->shut);
}
