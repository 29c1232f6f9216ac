#include "ops/cuda/table/cuda_rounding.h"

#include "core/fp8.h"
#include "ops/accept.h"

static struct launch_rows rows_of(tensor t)
{
    return (struct launch_rows){t.data, tensor_is_null(t) ? 0 : t.strides[0]};
}

bool cuda_rounding_accept(struct launch_rounding *to, struct exec *x, const char *op,
                          const struct fp8_factor *f, tensor in, enum dtype format)
{
    bool has_columns = !tensor_is_null(f->columns);
    tensor by_columns = has_columns ? tensor_transpose(f->columns) : NULL_TENSOR;
    if (!accept_tensors(x, op, ACCEPT_LIST(in), ACCEPT_LIST(f->scale, f->history)) ||
        !accept_fp8(x, op, ACCEPT_LIST(f->rows, by_columns))) {
        return false;
    }
    const float *scale = f->scale.data;
    if (f->rows.dtype != format || f->rows.scale != scale ||
        (has_columns && (by_columns.dtype != format || by_columns.scale != scale))) {
        exec_fail(x, STATUS_INTERNAL, op, "results must be of %s under the scale that is found",
                  dtype_name(format));
    }
    *to = (struct launch_rounding){.rows = rows_of(f->rows),
                                   .columns = rows_of(by_columns),
                                   .format = format == DTYPE_E4M3 ? LAUNCH_E4M3 : LAUNCH_E5M2,
                                   .scale = f->scale.data,
                                   .history = f->history.data};
    return !failed(x->status);
}

bool cuda_rounding_of_result(const struct launch_rounding **to, struct launch_rounding *storage,
                             struct exec *x, const char *op, tensor result, const tensor *read, int n_read,
                             enum dtype format)
{
    const struct fp8_factor *f = result.rounded;
    *to = NULL;
    if (f == NULL || failed(x->status)) {
        return !failed(x->status);
    }
    bool fits = !tensor_is_null(f->columns) && !tensor_is_null(f->history);
    for (int i = 0; i < n_read; i++) {
        fits = fits && tensor_is_dense(read[i]) && (uintptr_t)read[i].data % OPS_FP8_MULTIPLE == 0;
    }
    if (!fits || tensor_rows(result) != tensor_rows(f->rows) || tensor_cols(result) != tensor_cols(f->rows)) {
        exec_fail(x, STATUS_INTERNAL, op,
                  "what is rounded where it is made is dense, by rows and columns, and has a history");
        return false;
    }
    *to = storage;
    return cuda_rounding_accept(storage, x, op, f, result, format);
}
