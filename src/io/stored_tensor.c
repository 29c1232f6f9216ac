#include "io/stored_tensor.h"

#include "core/bytes.h"
#include "core/hash.h"
#include "core/integers.h"

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
    out.turned = !t->turned;
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

/* ---- rectangles ---- */

int stored_rect_split(struct stored_rect rects[3], int64_t begin, int64_t end, int64_t width)
{
    int n = 0;
    while (begin < end) {
        int64_t row = begin / width, col = begin % width, left = end - begin;
        bool whole = col == 0 && left >= width;
        int64_t rows = whole ? left / width : 1, cols = left < width - col ? left : width - col;
        CHECK(n < 3, "%lld elements in %d rectangles", (long long)left, n);
        rects[n++] = (struct stored_rect){.at = {row, col}, .n = {rows, cols}};
        begin += rows * cols;
    }
    return n;
}

bool stored_rect_cut(struct stored_rect *a, const struct stored_rect *b, size_t item_bytes)
{
    for (int i = 0; i < 2; i++) {
        int64_t first = int_larger(a->at[i], b->at[i]);
        int64_t end = int_smaller(a->at[i] + a->n[i], b->at[i] + b->n[i]);
        if (first >= end) {
            return false;
        }
        if (a->data != NULL) {
            a->data += (size_t)((first - a->at[i]) * a->steps[i]) * item_bytes;
        }
        a->at[i] = first;
        a->n[i] = end - first;
    }
    return true;
}

/* The dims [first, end) as one. */
static int64_t joined_dims(const struct stored_tensor *t, int first, int end)
{
    int64_t n = t->bytes > 0 ? 1 : 0;
    for (int i = first; i < end && n > 0; i++) {
        n *= t->dims[i];
    }
    return n;
}

/* Rows of the fastest dim that make a row of the matrix, each its own rectangle; 0: the matrix is one. */
static int64_t rows_in_row(const struct stored_tensor *t)
{
    int64_t stride = 1;
    bool dense = true;
    for (int i = t->n_dims - 1; i > 0; i--) {
        dense = dense && (t->dims[i] == 1 || t->strides[i] == stride);
        stride *= t->bytes > 0 ? t->dims[i] : 1;
    }
    return t->rects != NULL || t->n_dims < 3 || dense ? 0 : joined_dims(t, 1, t->n_dims - 1);
}

int64_t stored_tensor_rects(const struct stored_tensor *t)
{
    int64_t rows = rows_in_row(t);
    return t->rects != NULL ? t->n_rects : rows > 0 ? t->dims[0] * rows : t->bytes > 0;
}

/* Row `i` of the fastest dim. */
static struct stored_rect row_rect(const struct stored_tensor *t, int64_t i, int64_t rows_in)
{
    int fast = t->n_dims - 1;
    int64_t cols = t->dims[fast], place = 0;
    struct stored_rect r = {
        .at = {i / rows_in, i % rows_in * cols}, .n = {1, cols}, .steps = {0, t->strides[fast]}};
    for (int k = fast - 1; k >= 0; k--) {
        place += i % t->dims[k] * t->strides[k];
        i /= t->dims[k];
    }
    r.data = t->data + (size_t)place * dtype_bytes(t->dtype);
    return r;
}

struct stored_rect stored_tensor_rect(const struct stored_tensor *t, int64_t i)
{
    int64_t rows = rows_in_row(t);
    if (rows > 0) {
        return row_rect(t, i, rows);
    }
    if (t->rects == NULL) {
        return (struct stored_rect){
            .n = {joined_dims(t, 0, t->n_dims > 0), joined_dims(t, 1, t->n_dims)},
            .data = t->data,
            .steps = {t->n_dims > 0 ? t->strides[0] : 1, t->n_dims == 2 ? t->strides[1] : 1}};
    }
    const struct stored_rect *r = &t->rects[i];
    return !t->turned ? *r
                      : (struct stored_rect){.at = {r->at[1], r->at[0]},
                                             .n = {r->n[1], r->n[0]},
                                             .data = r->data,
                                             .steps = {r->steps[1], r->steps[0]}};
}

/* Copies a rectangle to the rows of a matrix of `width` columns.  One that is stored by columns is copied a
 * few rows at a time: so each line of memory is read once. */
static void copy_rect(enum dtype to_type, unsigned char *to, int64_t width, enum dtype type,
                      const struct stored_rect *r)
{
    enum { ROWS = 16 };
    const size_t to_bytes = dtype_bytes(to_type), bytes = dtype_bytes(type);
    const size_t steps[2] = {(size_t)r->steps[0] * bytes, (size_t)r->steps[1] * bytes};
    if (r->steps[1] == 1 && r->steps[0] == width && r->n[1] == width) {
        stored_tensor_convert(to_type, to, type, r->data, r->n[0] * width);
        return;
    }
    int64_t at_once = r->steps[0] == 1 && r->n[1] > 1 ? ROWS : r->n[1] == 1 ? r->n[0] : 1;
    for (int64_t row = 0; row < r->n[0]; row += at_once) {
        unsigned char *row_to = to + (size_t)(row * width) * to_bytes;
        const unsigned char *from = r->data + (size_t)row * steps[0];
        int64_t n = int_smaller(at_once, r->n[0] - row);
        for (int64_t col = 0; n > 1 && col < r->n[1]; col++) {
            convert_strided(to_type, row_to + (size_t)col * to_bytes, (size_t)width * to_bytes, type,
                            from + (size_t)col * steps[1], steps[0], n);
        }
        if (n == 1 && r->steps[1] == 1) {
            stored_tensor_convert(to_type, row_to, type, from, r->n[1]);
        } else if (n == 1) {
            convert_strided(to_type, row_to, to_bytes, type, from, steps[1], r->n[1]);
        }
    }
}

/* Copies what the tensor has of a part: the overlap of its rectangles and those of the part. */
static void copy_part(const struct stored_tensor *t, const struct stored_part *part, tensor out)
{
    struct stored_rect wanted[3];
    const size_t bytes = dtype_bytes(t->dtype);
    int64_t width = part->n[1], rows = rows_in_row(t), n_all = stored_tensor_rects(t);
    int n = stored_rect_split(wanted, part->begin, part->end, width);
    for (int k = 0; k < n; k++) {
        struct stored_rect *w = &wanted[k];
        w->at[0] += part->at[0];
        w->at[1] += part->at[1];
        int64_t first = rows > 0 ? w->at[0] * rows : 0, end = rows > 0 ? first + w->n[0] * rows : n_all;
        for (int64_t i = first; i < end && i < n_all; i++) {
            struct stored_rect r = stored_tensor_rect(t, i);
            if (stored_rect_cut(&r, w, bytes)) {
                int64_t at = (r.at[0] - part->at[0]) * width + r.at[1] - part->at[1] - part->begin;
                copy_rect(out.dtype, (unsigned char *)out.data + (size_t)at * dtype_bytes(out.dtype), width,
                          t->dtype, &r);
            }
        }
    }
}

/* All of it, of which some elements can be chosen. */
static struct stored_part part_of(const struct stored_tensor *t, int64_t begin, int64_t n)
{
    return (struct stored_part){.n = {joined_dims(t, 0, t->n_dims > 0), joined_dims(t, 1, t->n_dims)},
                                .begin = begin,
                                .end = begin + n};
}

/* Checks that it can be read into `out`, except for its shape. */
static struct status check_values(const struct stored_tensor *t, tensor out)
{
    CHECK(tensor_is_dense(out) && (out.data != NULL || tensor_count(out) == 0), "%s into a strided tensor",
          t->name);
    FAIL_IF(t->unreadable != NULL, STATUS_DATA, "tensor %.80s (%s) cannot be read: it %s", t->name,
            t->dtype_label, t->unreadable);
    FAIL_IF(!stored_tensor_converts(t->dtype, out.dtype), STATUS_DATA,
            "tensor %.80s has dtype %s, which does not convert to %s", t->name, t->dtype_label,
            dtype_name(out.dtype));
    FAIL_IF(t->has_crc && hash_crc32c(0, t->storage, t->storage_bytes) != t->crc, STATUS_DATA,
            "tensor %.80s is damaged: its checksum is wrong", t->name);
    return status_ok();
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
    return stored_tensor_read_elements(t, 0, out);
}

struct status stored_tensor_read_part(const struct stored_tensor *t, const struct stored_part *part,
                                      tensor out)
{
    CHECK(tensor_count(out) == part->end - part->begin, "a part of %s is not %lld elements", t->name,
          (long long)tensor_count(out));
    TRY(check_values(t, out));
    copy_part(t, part, out);
    return status_ok();
}

struct status stored_tensor_read_elements(const struct stored_tensor *t, int64_t first, tensor out)
{
    struct stored_part part = part_of(t, first, tensor_count(out));
    TRY(check_values(t, out));
    CHECK(first >= 0 && part.end <= (int64_t)(t->bytes / dtype_bytes(t->dtype)), "%s has no such elements",
          t->name);
    copy_part(t, &part, out);
    return status_ok();
}

static bool same_kind(const struct stored_tensor *a, const struct stored_tensor *b)
{
    return a->unreadable == NULL && b->unreadable == NULL && a->dtype == b->dtype && a->n_dims == b->n_dims &&
           memcmp(a->dims, b->dims, (size_t)a->n_dims * sizeof *a->dims) == 0;
}

static bool is_alias(const struct stored_tensor *a, const struct stored_tensor *b)
{
    return a->data == b->data && a->rects == b->rects && a->turned == b->turned &&
           memcmp(a->strides, b->strides, (size_t)a->n_dims * sizeof *a->strides) == 0;
}

/* Bytes of each tensor that are compared at a time; a longer row is compared at once. */
enum { COMPARED_BYTES = 1 << 18 };

/* The first element that differs, -1: none does; `room` is a buffer for `step` elements of each tensor. */
static int64_t find_difference(const struct stored_tensor *a, const struct stored_tensor *b, int64_t step,
                               unsigned char *room)
{
    const size_t size = dtype_bytes(b->dtype);
    int64_t n_all = (int64_t)(b->bytes / size);
    for (int64_t first = 0; first < n_all; first += step) {
        int64_t n = int_smaller(step, n_all - first);
        const struct stored_part part_a = part_of(a, first, n), part_b = part_of(b, first, n);
        unsigned char *of_b = room + (size_t)n * size;
        copy_part(a, &part_a, tensor_1d(room, b->dtype, n));
        copy_part(b, &part_b, tensor_1d(of_b, b->dtype, n));
        for (int64_t i = 0; i < n && memcmp(room, of_b, (size_t)n * size) != 0; i++) {
            if (memcmp(room + (size_t)i * size, of_b + (size_t)i * size, size) != 0) {
                return first + i;
            }
        }
    }
    return -1;
}

struct status stored_tensor_find_difference(int64_t *at, const struct stored_tensor *a,
                                            const struct stored_tensor *b)
{
    /* complete rows that fit, so that a tensor stored by columns is read row by row */
    int64_t cols = int_larger(joined_dims(b, 1, b->n_dims), 1), size = (int64_t)dtype_bytes(b->dtype);
    int64_t step = int_larger(COMPARED_BYTES / (cols * size), 1) * cols;
    CHECK(a->bytes / dtype_bytes(a->dtype) == b->bytes / dtype_bytes(b->dtype), "%s is longer", a->name);
    TRY(check_values(a, tensor_1d(NULL, b->dtype, 0)));
    TRY(check_values(b, tensor_1d(NULL, b->dtype, 0)));
    unsigned char *room = malloc(2 * (size_t)(step * size));
    FAIL_IF(room == NULL, STATUS_MEMORY, "out of memory for rows of the tensor %s", a->name);
    *at = find_difference(a, b, step, room);
    free(room);
    return status_ok();
}

struct status stored_tensor_compare(bool *same, const struct stored_tensor *a, const struct stored_tensor *b)
{
    int64_t at = -1;
    *same = same_kind(a, b);
    TRY(*same && !is_alias(a, b) ? stored_tensor_find_difference(&at, a, b) : status_ok());
    *same = *same && at < 0;
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
    FAIL_IF(sorted == NULL, STATUS_MEMORY, "out of memory for the names of %d tensors of %s", n, source);
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
