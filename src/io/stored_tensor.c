#include "io/stored_tensor.h"

#include "core/bytes.h"
#include "core/hash.h"

#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#    error "tensor files are little-endian and are read and written without byte swaps"
#endif

/* The number of elements times their size; false if it does not fit, or a dim is negative. */
static bool count_bytes(const struct stored_tensor *t, size_t item_bytes, uint64_t *bytes)
{
    *bytes = item_bytes;
    for (int i = 0; i < t->n_dims; i++) {
        if (t->dims[i] < 0) {
            return false;
        }
    }
    for (int i = 0; i < t->n_dims; i++) {
        if (t->dims[i] == 0) {
            *bytes = 0;
            return true;
        }
    }
    for (int i = 0; i < t->n_dims; i++) {
        if (!bytes_multiply(*bytes, (uint64_t)t->dims[i], bytes) || *bytes > INT64_MAX) {
            return false;
        }
    }
    return true;
}

bool stored_tensor_make_dense(struct stored_tensor *t, size_t item_bytes)
{
    uint64_t bytes;
    if (!count_bytes(t, item_bytes, &bytes)) {
        return false;
    }
    int64_t stride = 1;
    for (int i = t->n_dims - 1; i >= 0; i--) {
        t->strides[i] = stride;
        stride = bytes == 0 ? 1 : stride * t->dims[i];
    }
    t->bytes = (size_t)bytes;
    return true;
}

bool stored_tensor_place(struct stored_tensor *t, size_t item_bytes, int64_t first, const void *storage,
                         size_t n)
{
    uint64_t bytes;
    uint64_t last = (uint64_t)first;
    if (first < 0 || !count_bytes(t, item_bytes, &bytes)) {
        return false;
    }
    t->bytes = (size_t)bytes;
    t->storage = t->data = storage;
    t->storage_bytes = n;
    for (int i = 0; i < t->n_dims; i++) {
        uint64_t reach;
        if (t->strides[i] < 0) {
            return false;
        }
        if (bytes > 0 && (!bytes_multiply((uint64_t)t->dims[i] - 1, (uint64_t)t->strides[i], &reach) ||
                          !bytes_add(last, reach, &last))) {
            return false;
        }
    }
    if (bytes == 0) {
        return true;
    }
    if (last >= n / item_bytes) {
        return false;
    }
    t->data += (size_t)first * item_bytes;
    return true;
}

bool stored_tensor_is_dense(const struct stored_tensor *t)
{
    int64_t stride = 1;
    for (int i = t->n_dims - 1; i >= 0 && t->bytes > 0; i--) {
        if (t->dims[i] != 1 && t->strides[i] != stride) {
            return false;
        }
        stride *= t->dims[i];
    }
    return true;
}

struct stored_tensor stored_tensor_transpose(const struct stored_tensor *t)
{
    CHECK(t->n_dims == 2, "%s has %d dims, but a matrix has 2", t->name, t->n_dims);
    struct stored_tensor out = *t;
    for (int i = 0; i < 2; i++) {
        out.dims[i] = t->dims[1 - i];
        out.strides[i] = t->strides[1 - i];
    }
    return out;
}

static double load_real(enum dtype dtype, const unsigned char *p)
{
    uint16_t half;
    float single;
    double real;
    switch (dtype) {
    case DTYPE_F32: memcpy(&single, p, sizeof single); return single;
    case DTYPE_F64: memcpy(&real, p, sizeof real); return real;
    default: memcpy(&half, p, sizeof half); return dtype == DTYPE_BF16 ? bf16_to_f32(half) : f16_to_f32(half);
    }
}

static void store_real(enum dtype dtype, unsigned char *p, double value)
{
    float single = (float)value;
    uint16_t half;
    switch (dtype) {
    case DTYPE_F32: memcpy(p, &single, sizeof single); break;
    case DTYPE_F64: memcpy(p, &value, sizeof value); break;
    default:
        half = dtype == DTYPE_BF16 ? bf16_from_f32(single) : f16_from_f32(single);
        memcpy(p, &half, sizeof half);
    }
}

bool stored_tensor_converts(enum dtype from, enum dtype to)
{
    const unsigned real = 1U << DTYPE_F32 | 1U << DTYPE_F64 | 1U << DTYPE_BF16 | 1U << DTYPE_F16;
    return from == to || ((real >> from & 1U) != 0 && (real >> to & 1U) != 0);
}

/* Copies n elements of so many bytes, a constant, whose steps are in bytes. */
static inline __attribute__((always_inline)) void copy_strided(unsigned char *to, size_t to_step,
                                                               const unsigned char *from, size_t from_step,
                                                               int64_t n, const size_t bytes)
{
    for (int64_t i = 0; i < n; i++) {
        memcpy(to, from, bytes);
        to += to_step;
        from += from_step;
    }
}

/* Copies n elements whose steps are in bytes, and converts them. */
static void convert_strided(enum dtype to_type, unsigned char *to, size_t to_step, enum dtype from_type,
                            const unsigned char *from, size_t from_step, int64_t n)
{
    if (to_type != from_type) {
        for (int64_t i = 0; i < n; i++) {
            store_real(to_type, to + (size_t)i * to_step, load_real(from_type, from + (size_t)i * from_step));
        }
        return;
    }
    switch (dtype_bytes(to_type)) { /* a copy of a constant size is one instruction */
    case 8: copy_strided(to, to_step, from, from_step, n, 8); break;
    case 4: copy_strided(to, to_step, from, from_step, n, 4); break;
    case 2: copy_strided(to, to_step, from, from_step, n, 2); break;
    default: copy_strided(to, to_step, from, from_step, n, 1);
    }
}

void stored_tensor_convert(enum dtype to_type, void *to, enum dtype from_type, const void *from, int64_t n)
{
    if (n > 0 && to_type == from_type) {
        memcpy(to, from, (size_t)n * dtype_bytes(to_type));
    } else {
        convert_strided(to_type, to, dtype_bytes(to_type), from_type, from, dtype_bytes(from_type), n);
    }
}

/* A scalar is read into a tensor of one element. */
static bool shape_is(const struct stored_tensor *e, tensor t)
{
    if (e->n_dims == 0) {
        return t.n_dims == 1 && t.dims[0] == 1;
    }
    for (int i = 0; e->n_dims == t.n_dims && i < t.n_dims; i++) {
        if (e->dims[i] != t.dims[i]) {
            return false;
        }
    }
    return e->n_dims == t.n_dims;
}

/* Copies row after row of the fastest dim; `index` counts through the other dims. */
static void gather_rows(const struct stored_tensor *t, tensor out)
{
    int64_t index[TENSOR_MAX_DIMS] = {0};
    const int fast = t->n_dims - 1;
    const size_t bytes = dtype_bytes(t->dtype), out_bytes = dtype_bytes(out.dtype);
    unsigned char *to = out.data;
    for (int64_t left = tensor_rows(out); left > 0; left--) {
        int64_t first = 0;
        for (int i = 0; i < fast; i++) {
            first += index[i] * t->strides[i];
        }
        convert_strided(out.dtype, to, out_bytes, t->dtype, t->data + (size_t)first * bytes,
                        bytes * (size_t)t->strides[fast], out.dims[fast]);
        to += (size_t)out.dims[fast] * out_bytes;
        for (int i = fast - 1; i >= 0 && ++index[i] == out.dims[i]; i--) {
            index[i] = 0;
        }
    }
}

/* Copies a matrix that is stored by columns, a few rows at a time: so each line of memory is read once. */
static void gather_columns(const struct stored_tensor *t, tensor out)
{
    enum { ROWS = 16 };
    const size_t bytes = dtype_bytes(t->dtype), out_bytes = dtype_bytes(out.dtype);
    const int64_t n_rows = out.dims[0], n_cols = out.dims[1];
    for (int64_t row = 0; row < n_rows; row += ROWS) {
        int64_t n = n_rows - row < ROWS ? n_rows - row : ROWS;
        for (int64_t col = 0; col < n_cols; col++) {
            unsigned char *to = (unsigned char *)out.data + (size_t)(row * n_cols + col) * out_bytes;
            convert_strided(out.dtype, to, (size_t)n_cols * out_bytes, t->dtype,
                            t->data + (size_t)(row + col * t->strides[1]) * bytes, bytes, n);
        }
    }
}

static void gather(const struct stored_tensor *t, tensor out)
{
    CHECK(t->pieces == NULL, "%s is in pieces", t->name);
    if (t->n_dims == 2 && t->strides[0] == 1) {
        gather_columns(t, out);
    } else {
        gather_rows(t, out);
    }
}

/* Checks that it can be read into `out`, except for its shape. */
static struct status check_values(const struct stored_tensor *t, tensor out)
{
    CHECK(tensor_is_dense(out) && (out.data != NULL || tensor_count(out) == 0), "%s into a strided tensor",
          t->name);
    if (t->unreadable != NULL) {
        return status_error(STATUS_DATA, "tensor %.80s (%s) cannot be read: it %s", t->name, t->dtype_label,
                            t->unreadable);
    }
    if (!stored_tensor_converts(t->dtype, out.dtype)) {
        return status_error(STATUS_DATA, "tensor %.80s has dtype %s, which does not convert to %s", t->name,
                            t->dtype_label, dtype_name(out.dtype));
    }
    if (t->has_crc && hash_crc32c(0, t->storage, t->storage_bytes) != t->crc) {
        return status_error(STATUS_DATA, "tensor %.80s is damaged: its checksum is wrong", t->name);
    }
    return status_ok();
}

/* Elements [first, first + count of out) of a dense tensor, which has them. */
static void copy_elements(const struct stored_tensor *t, int64_t first, tensor out)
{
    const struct stored_piece whole = {t->data, INT64_MAX}, *piece = t->pieces == NULL ? &whole : t->pieces;
    unsigned char *to = out.data;
    for (int64_t left = tensor_count(out); left > 0; piece++) {
        int64_t n = piece->n - first < left ? piece->n - first : left;
        if (n > 0) {
            stored_tensor_convert(out.dtype, to, t->dtype,
                                  piece->data + (size_t)first * dtype_bytes(t->dtype), n);
            to += (size_t)n * dtype_bytes(out.dtype);
            left -= n;
        }
        first = n > 0 ? 0 : first - piece->n;
    }
}

struct status stored_tensor_read(const struct stored_tensor *t, tensor out)
{
    if (!shape_is(t, out)) {
        const int64_t *d = t->dims;
        return status_error(STATUS_DATA,
                            "tensor %.80s has %d dims [%lld, %lld], but should have %d dims [%lld, %lld]",
                            t->name, t->n_dims, (long long)d[0], (long long)d[1], out.n_dims,
                            (long long)out.dims[0], (long long)out.dims[1]);
    }
    TRY(check_values(t, out));
    if (stored_tensor_is_dense(t)) {
        copy_elements(t, 0, out);
    } else {
        gather(t, out);
    }
    return status_ok();
}

struct status stored_tensor_read_elements(const struct stored_tensor *t, int64_t first, tensor out)
{
    size_t size = dtype_bytes(t->dtype);
    TRY(check_values(t, out));
    CHECK(first >= 0 && first + tensor_count(out) <= (int64_t)(t->bytes / size), "%s has no such elements",
          t->name);
    if (!stored_tensor_is_dense(t)) {
        return status_error(STATUS_DATA, "tensor %.80s is strided, but its elements must be contiguous",
                            t->name);
    }
    copy_elements(t, first, out);
    return status_ok();
}

static bool same_kind(const struct stored_tensor *a, const struct stored_tensor *b)
{
    return a->unreadable == NULL && b->unreadable == NULL && a->dtype == b->dtype && a->n_dims == b->n_dims &&
           memcmp(a->dims, b->dims, (size_t)a->n_dims * sizeof *a->dims) == 0;
}

static bool is_alias(const struct stored_tensor *a, const struct stored_tensor *b)
{
    return a->data == b->data && a->pieces == b->pieces &&
           memcmp(a->strides, b->strides, (size_t)a->n_dims * sizeof *a->strides) == 0;
}

/* A dense tensor of the dims of `t`, but of `rows` rows of its slowest. */
static tensor shape_of_rows(const struct stored_tensor *t, int64_t rows)
{
    tensor out = {.dtype = t->dtype, .n_dims = t->n_dims > 0 ? t->n_dims : 1, .dims = {1}};
    memcpy(out.dims, t->dims, (size_t)t->n_dims * sizeof *t->dims);
    out.dims[0] = rows;
    int64_t stride = 1;
    for (int i = out.n_dims - 1; i >= 0; i--) {
        out.strides[i] = stride;
        stride *= out.dims[i];
    }
    return out;
}

/* Copies as many rows of the slowest dim as `out` has, from row `first` on. */
static void copy_rows(const struct stored_tensor *t, int64_t first, tensor out)
{
    struct stored_tensor from = *t;
    if (stored_tensor_is_dense(t)) {
        copy_elements(t, first * (tensor_count(out) / out.dims[0]), out);
        return;
    }
    from.data += (size_t)(first * t->strides[0]) * dtype_bytes(t->dtype);
    gather(&from, out);
}

enum { COMPARED_BYTES = 1 << 18 }; /* of each at a time, if a row is no longer */

/* Whether both, of one kind, have the same values, in room for `step` rows of each. */
static bool same_values(const struct stored_tensor *a, const struct stored_tensor *b, int64_t rows,
                        int64_t step, unsigned char *room)
{
    bool same = true;
    for (int64_t first = 0; same && first < rows; first += step) {
        tensor x = shape_of_rows(a, rows - first < step ? rows - first : step), y = x;
        x.data = room;
        y.data = room + tensor_bytes(x);
        copy_rows(a, first, x);
        copy_rows(b, first, y);
        same = memcmp(x.data, y.data, tensor_bytes(x)) == 0;
    }
    return same;
}

struct status stored_tensor_compare(bool *same, const struct stored_tensor *a, const struct stored_tensor *b)
{
    *same = same_kind(a, b) && a->n_dims <= TENSOR_MAX_DIMS;
    if (!*same || is_alias(a, b)) {
        return status_ok();
    }
    int64_t rows = a->n_dims > 0 ? a->dims[0] : 1;
    size_t row_bytes = rows > 0 ? a->bytes / (size_t)rows : 0;
    int64_t step = row_bytes < COMPARED_BYTES ? (int64_t)(COMPARED_BYTES / (row_bytes + 1)) : 1;
    step = step > 0 ? step : 1;
    TRY(check_values(a, tensor_1d(NULL, a->dtype, 0)));
    TRY(check_values(b, tensor_1d(NULL, b->dtype, 0)));
    unsigned char *room = malloc(2 * (size_t)step * row_bytes + 1);
    if (room == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for rows of the tensor %s", a->name);
    }
    *same = row_bytes == 0 || same_values(a, b, rows, step, room);
    free(room);
    return status_ok();
}

bool stored_tensor_name_is_printable(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f) {
            return false;
        }
    }
    return n > 0;
}

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

struct status stored_tensor_check_names(const struct stored_tensor *tensors, int n, const char *source)
{
    struct status s = status_ok();
    const char **sorted = calloc((size_t)n + 1, sizeof *sorted);
    if (sorted == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the names of %d tensors of %s", n, source);
    }
    for (int i = 0; i < n; i++) {
        sorted[i] = tensors[i].name;
    }
    qsort(sorted, (size_t)n, sizeof *sorted, compare_names);
    for (int i = 1; i < n && !failed(s); i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0) {
            s = status_error(STATUS_DATA, "%s has two tensors named %.80s", source, sorted[i]);
        }
    }
    free(sorted);
    return s;
}

const struct stored_tensor *stored_tensor_find(const struct stored_tensor *tensors, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(tensors[i].name, name) == 0) {
            return &tensors[i];
        }
    }
    return NULL;
}
