#include "core/tensor.h"

#include "core/fp8.h"
#include "core/status.h"

#include <math.h>
#include <string.h>

static tensor dense(void *data, enum dtype dtype, int n_dims, const int64_t *dims)
{
    tensor t = {.data = data, .dtype = dtype, .n_dims = n_dims};
    int64_t stride = 1;
    for (int i = n_dims - 1; i >= 0; i--) {
        t.dims[i] = dims[i];
        t.strides[i] = stride;
        stride *= dims[i];
    }
    return t;
}

tensor tensor_1d(void *data, enum dtype dtype, int64_t d0)
{
    return dense(data, dtype, 1, (int64_t[]){d0});
}

tensor tensor_2d(void *data, enum dtype dtype, int64_t d0, int64_t d1)
{
    return dense(data, dtype, 2, (int64_t[]){d0, d1});
}

tensor tensor_3d(void *data, enum dtype dtype, int64_t d0, int64_t d1, int64_t d2)
{
    return dense(data, dtype, 3, (int64_t[]){d0, d1, d2});
}

int64_t tensor_count(tensor t)
{
    int64_t n = 1;
    for (int i = 0; i < t.n_dims; i++) {
        n *= t.dims[i];
    }
    return n;
}

int64_t tensor_cols(tensor t)
{
    return t.n_dims == 0 ? 1 : t.dims[t.n_dims - 1];
}

int64_t tensor_rows(tensor t)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < t.n_dims; i++) {
        n *= t.dims[i];
    }
    return n;
}

size_t tensor_bytes(tensor t)
{
    return tensor_is_null(t) ? 0 : (size_t)tensor_count(t) * dtype_bytes(t.dtype);
}

uint32_t *tensor_maxima(tensor t)
{
    size_t behind = (tensor_bytes(t) + TENSOR_MAXIMA_ALIGNMENT - 1) / TENSOR_MAXIMA_ALIGNMENT;
    return !t.has_maxima || t.data == NULL ? NULL
                                           : (uint32_t *)((char *)t.data + behind * TENSOR_MAXIMA_ALIGNMENT);
}

bool tensor_is_dense(tensor t)
{
    int64_t stride = 1;
    for (int i = t.n_dims - 1; i >= 0; i--) {
        if (t.dims[i] != 1 && t.strides[i] != stride) {
            return false;
        }
        stride *= t.dims[i];
    }
    return true;
}

bool tensor_same_shape(tensor a, tensor b)
{
    if (a.n_dims != b.n_dims) {
        return false;
    }
    for (int i = 0; i < a.n_dims; i++) {
        if (a.dims[i] != b.dims[i]) {
            return false;
        }
    }
    return true;
}

static void *advance(tensor t, int64_t elements)
{
    return t.data == NULL ? NULL : (char *)t.data + elements * (int64_t)dtype_bytes(t.dtype);
}

tensor tensor_slice(tensor t, int64_t first, int64_t n)
{
    CHECK(t.n_dims > 0 && first >= 0 && n >= 0 && first + n <= t.dims[0], "rows %lld + %lld of %lld",
          (long long)first, (long long)n, (long long)t.dims[0]);
    t.data = advance(t, first * t.strides[0]);
    t.dims[0] = n;
    if (t.dtype == DTYPE_I8 && t.scale != NULL && t.n_dims == 2) { /* a scale for each row */
        t.scale += first;
    }
    t.has_maxima = false;
    t.rounded = NULL;
    return t;
}

tensor tensor_columns(tensor t, int64_t first, int64_t n)
{
    CHECK(t.n_dims == 2 && first >= 0 && n >= 0 && first + n <= t.dims[1], "columns %lld + %lld of %lld",
          (long long)first, (long long)n, (long long)t.dims[1]);
    t.data = advance(t, first * t.strides[1]);
    t.dims[1] = n;
    t.has_maxima = false;
    t.rounded = NULL;
    return t;
}

tensor tensor_transpose(tensor t)
{
    CHECK(t.n_dims == 2, "a tensor of %d dims is not a matrix", t.n_dims);
    tensor transposed = t;
    transposed.has_maxima = false;
    transposed.rounded = NULL;
    for (int i = 0; i < 2; i++) {
        transposed.dims[i] = t.dims[1 - i];
        transposed.strides[i] = t.strides[1 - i];
    }
    return transposed;
}

tensor tensor_split_heads(tensor t, int64_t n_heads)
{
    CHECK(t.n_dims == 2 && n_heads > 0 && t.dims[1] % n_heads == 0, "%lld columns into %lld heads",
          (long long)t.dims[1], (long long)n_heads);
    int64_t head_size = t.dims[1] / n_heads;
    t.n_dims = 3;
    t.dims[1] = n_heads;
    t.dims[2] = head_size;
    t.strides[1] = head_size * t.strides[1];
    t.strides[2] = 1;
    return t;
}

static double scale_of(tensor t)
{
    return t.scale == NULL ? 1.0 : (double)*t.scale;
}

/* The scale of the row that the element is in. */
static double row_scale_of(tensor t, int64_t offset)
{
    return t.scale == NULL ? 1.0 : (double)t.scale[t.n_dims == 2 ? offset / t.strides[0] : 0];
}

/* Rounds to int8; NaN becomes 0. */
static int8_t int8_from(double value)
{
    double whole = isnan(value) ? 0 : nearbyint(value);
    return (int8_t)(whole > 127 ? 127 : whole < -127 ? -127 : whole);
}

/* Drops the fraction; a value that the type does not have, such as NaN, becomes its smallest number. */
static int64_t integer_from(double value, int64_t least, int64_t most)
{
    return value > (double)least && value < (double)most + 1 ? (int64_t)value : least;
}

static int64_t element_offset(tensor t, int64_t index)
{
    int64_t offset = 0;
    for (int i = t.n_dims - 1; i >= 0; i--) {
        offset += index % t.dims[i] * t.strides[i];
        index /= t.dims[i];
    }
    return offset;
}

double tensor_get(tensor t, int64_t index)
{
    return tensor_load(t, element_offset(t, index));
}

void tensor_set(tensor t, int64_t index, double value)
{
    tensor_store(t, element_offset(t, index), value);
}

double tensor_load(tensor t, int64_t offset)
{
    const void *p = advance(t, offset);
    switch (t.dtype) {
    case DTYPE_F32: return *(const float *)p;
    case DTYPE_BF16: return bf16_to_f32(*(const uint16_t *)p);
    case DTYPE_F16: return f16_to_f32(*(const uint16_t *)p);
    case DTYPE_F64: return *(const double *)p;
    case DTYPE_I32: return *(const int32_t *)p;
    case DTYPE_I64: return (double)*(const int64_t *)p;
    case DTYPE_U8: return *(const uint8_t *)p;
    case DTYPE_E4M3:
    case DTYPE_E5M2: return scale_of(t) * (double)fp8_to_f32(t.dtype, *(const uint8_t *)p);
    case DTYPE_I8: return row_scale_of(t, offset) * (double)*(const int8_t *)p;
    }
    return 0;
}

void tensor_store(tensor t, int64_t offset, double value)
{
    void *p = advance(t, offset);
    switch (t.dtype) {
    case DTYPE_F32: *(float *)p = (float)value; break;
    case DTYPE_BF16: *(uint16_t *)p = bf16_from_f32((float)value); break;
    case DTYPE_F16: *(uint16_t *)p = f16_from_f32((float)value); break;
    case DTYPE_F64: *(double *)p = value; break;
    case DTYPE_I32: *(int32_t *)p = (int32_t)integer_from(value, INT32_MIN, INT32_MAX); break;
    case DTYPE_I64: *(int64_t *)p = integer_from(value, INT64_MIN, INT64_MAX); break;
    case DTYPE_U8: *(uint8_t *)p = (uint8_t)integer_from(value, 0, UINT8_MAX); break;
    case DTYPE_E4M3:
    case DTYPE_E5M2: *(uint8_t *)p = fp8_from_f32(t.dtype, (float)(value / scale_of(t))); break;
    case DTYPE_I8: *(int8_t *)p = int8_from(value / row_scale_of(t, offset)); break;
    }
}

/* Whether any exponent has all bits set; without branches. */
static bool any_nonfinite_f32(const float *v, int64_t n)
{
    uint32_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &v[i], sizeof u);
        found |= (u & 0x7f800000U) == 0x7f800000U;
    }
    return found != 0;
}

static bool any_nonfinite_bf16(const uint16_t *v, int64_t n)
{
    uint32_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        found |= (v[i] & 0x7f80U) == 0x7f80U;
    }
    return found != 0;
}

/* A row of a tensor of one of these two dtypes, from element `first` on. */
static bool any_nonfinite(tensor t, int64_t first, int64_t n)
{
    return t.dtype == DTYPE_F32 ? any_nonfinite_f32((const float *)t.data + first, n)
                                : any_nonfinite_bf16((const uint16_t *)t.data + first, n);
}

int64_t tensor_find_nonfinite(tensor t)
{
    int64_t n = tensor_count(t), cols = tensor_cols(t);
    bool has_rows = (t.dtype == DTYPE_F32 || t.dtype == DTYPE_BF16) && t.n_dims >= 1 && t.n_dims <= 2 &&
                    t.strides[t.n_dims - 1] == 1;
    for (int64_t i = 0; i < n; i++) {
        if (has_rows && i % cols == 0 && !any_nonfinite(t, i / cols * t.strides[0], cols)) {
            i += cols - 1;
        } else if (!isfinite(tensor_get(t, i))) {
            return i;
        }
    }
    return -1;
}
