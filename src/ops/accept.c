#include "ops/accept.h"

#include "core/fp8.h"

static bool dense_rows(tensor t)
{
    int last = t.n_dims - 1;
    return t.dims[last] == 1 || t.strides[last] == 1;
}

bool accept_tensors(struct exec *x, const char *op, const tensor *matrices, int n_matrices,
                    const tensor *vectors, int n_vectors)
{
    if (failed(x->status)) {
        return false;
    }
    enum dtype matrix_dtype = matrices[0].dtype;
    bool knows_f16 = x->device->computes_in_f16;
    if (matrix_dtype != DTYPE_F32 && matrix_dtype != DTYPE_BF16 &&
        !(matrix_dtype == DTYPE_F16 && knows_f16)) {
        exec_fail(x, STATUS_USAGE, op, "the device computes in %s, not in %s",
                  knows_f16 ? "fp32, bf16 and fp16" : "fp32 and bf16", dtype_name(matrix_dtype));
        return false;
    }
    for (int i = 0; i < n_matrices; i++) {
        if (!tensor_is_null(matrices[i]) && (matrices[i].dtype != matrix_dtype || !dense_rows(matrices[i]))) {
            exec_fail(x, STATUS_USAGE, op, "matrix %d must be %s with dense rows, but is %s%s", i,
                      dtype_name(matrix_dtype), dtype_name(matrices[i].dtype),
                      dense_rows(matrices[i]) ? "" : " with gaps");
            return false;
        }
    }
    for (int i = 0; i < n_vectors; i++) {
        if (!tensor_is_null(vectors[i]) && (vectors[i].dtype != DTYPE_F32 || !tensor_is_dense(vectors[i]))) {
            exec_fail(x, STATUS_USAGE, op, "vector %d must be dense fp32, but is %s", i,
                      dtype_name(vectors[i].dtype));
            return false;
        }
    }
    return true;
}

bool accept_stream(struct exec *x, const char *op, enum dtype dtype, const tensor *rows, int n)
{
    const tensor *first = NULL;
    for (int i = 0; i < n && !failed(x->status); i++) {
        if (tensor_is_null(rows[i])) {
            continue;
        }
        first = first == NULL ? &rows[i] : first;
        enum dtype found = rows[i].dtype;
        if (found != first->dtype || (found != dtype && found != DTYPE_F32) || !dense_rows(rows[i])) {
            exec_fail(x, STATUS_USAGE, op,
                      "a residual stream must be all %s or all fp32 with dense rows, but is %s%s",
                      dtype_name(dtype), dtype_name(found), dense_rows(rows[i]) ? "" : " with gaps");
        }
    }
    return !failed(x->status);
}

bool accept_copied(struct exec *x, const char *op, tensor out, tensor in)
{
    bool words = out.dtype == DTYPE_I32 && in.dtype == DTYPE_I32 && dense_rows(out) && dense_rows(in);
    return words ? !failed(x->status) : accept_tensors(x, op, ACCEPT_LIST(out, in), NULL, 0);
}

bool accept_pages(struct exec *x, const char *op, tensor keys, tensor values, int64_t n_heads,
                  int64_t head_size)
{
    bool fits = keys.n_dims == 3 && values.n_dims == 3 && tensor_is_dense(keys) && tensor_is_dense(values) &&
                keys.dims[0] == values.dims[0] && keys.dims[0] % n_heads == 0 &&
                keys.dims[2] == OPS_CACHE_PAGE && values.dims[1] == OPS_CACHE_PAGE &&
                keys.dims[1] == head_size && values.dims[2] == head_size;
    if (!fits && !failed(x->status)) {
        exec_fail(x, STATUS_USAGE, op, "pages of %d tokens of %lld heads of %lld columns are needed",
                  OPS_CACHE_PAGE, (long long)n_heads, (long long)head_size);
    }
    return !failed(x->status);
}

static void accept_fp8_matrix(struct exec *x, const char *op, int i, tensor t)
{
    const int multiple = OPS_FP8_MULTIPLE;
    int64_t rows = tensor_rows(t), cols = tensor_cols(t);
    if (!dtype_is_fp8(t.dtype) || t.n_dims != 2) {
        exec_fail(x, STATUS_USAGE, op, "fp8 matrix %d must be fp8 with 2 dims, but is %s with %d", i,
                  dtype_name(t.dtype), t.n_dims);
    } else if (rows % multiple != 0 || cols % multiple != 0) {
        exec_fail(x, STATUS_USAGE, op,
                  "the dims of fp8 matrix %d must be multiples of %d, but are %lld x %lld", i, multiple,
                  (long long)rows, (long long)cols);
    } else if (!dense_rows(t)) {
        exec_fail(x, STATUS_USAGE, op,
                  "fp8 matrix %d is stored by columns where the product needs rows, or the reverse", i);
    } else if ((uintptr_t)t.data % (uintptr_t)multiple != 0 || t.strides[0] % multiple != 0) {
        exec_fail(x, STATUS_USAGE, op, "rows of fp8 matrix %d must begin at multiples of %d bytes", i,
                  multiple);
    }
}

bool accept_fp8(struct exec *x, const char *op, const tensor *matrices, int n_matrices)
{
    if (!failed(x->status) && !x->device->computes_in_fp8) {
        exec_fail(x, STATUS_USAGE, op, "the device does not compute in fp8");
    }
    for (int i = 0; i < n_matrices && !failed(x->status); i++) {
        if (!tensor_is_null(matrices[i])) {
            accept_fp8_matrix(x, op, i, matrices[i]);
        }
    }
    return !failed(x->status);
}

bool accept_int8(struct exec *x, const char *op, tensor w)
{
    int most = x->int8_rows ? OPS_INT8_MOST / 2 : OPS_INT8_MOST;
    if (failed(x->status)) {
        return false;
    }
    if (!x->device->multiplies_int8) {
        exec_fail(x, STATUS_USAGE, op, "the device does not multiply matrices in int8");
    } else if (w.dtype != DTYPE_I8 || w.n_dims != 2 || !dense_rows(w) || w.scale == NULL) {
        exec_fail(x, STATUS_USAGE, op,
                  "a matrix in int8 must have 2 dims, dense rows and a scale for each row");
    } else if (tensor_cols(w) > most) {
        exec_fail(x, STATUS_USAGE, op, "a matrix in int8 may have %d columns, but has %lld", most,
                  (long long)tensor_cols(w));
    }
    return !failed(x->status);
}

bool accept_indices(struct exec *x, const char *op, const char *name, tensor index, int64_t first,
                    int64_t end)
{
    if (failed(x->status)) {
        return false;
    }
    if (index.dtype != DTYPE_I32 || !tensor_is_dense(index)) {
        exec_fail(x, STATUS_USAGE, op, "%s must be dense i32, but is %s", name, dtype_name(index.dtype));
        return false;
    }
    const int32_t *v = index.data;
    int64_t n = tensor_count(index);
    for (int64_t i = 0; i < n; i++) {
        if (v[i] < first || v[i] >= end) {
            exec_fail(x, STATUS_DATA, op, "%s %d at row %lld is outside of [%lld, %lld)", name, v[i],
                      (long long)i, (long long)first, (long long)end);
            return false;
        }
    }
    return true;
}
