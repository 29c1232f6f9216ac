#include "io/tensor_diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16 };

/* Reads a tensor from its first element to its last. */
struct reader {
    const struct stored_tensor *from;
    tensor values; /* the piece, or all of a tensor that can only be read whole */
    bool whole;
};

static int64_t count_of(const struct stored_tensor *t)
{
    return (int64_t)(t->bytes / dtype_bytes(t->dtype));
}

static struct status open_reader(struct reader *r, const struct stored_tensor *t)
{
    *r = (struct reader){.from = t, .whole = t->has_crc || !stored_tensor_is_dense(t)};
    if (t->unreadable != NULL || (r->whole && t->n_dims > TENSOR_MAX_DIMS)) {
        return status_error(STATUS_DATA, "tensor %.80s cannot be read: it %s", t->name,
                            t->unreadable != NULL ? t->unreadable : "has too many dims");
    }
    int64_t n = count_of(t), most = r->whole || n < PIECE ? n : PIECE;
    void *data = malloc((size_t)most * dtype_bytes(t->dtype) + 1);
    r->values = tensor_1d(data, t->dtype, most);
    if (data == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the tensor %s", t->name);
    }
    if (!r->whole) {
        return status_ok();
    }
    tensor out = {.data = data, .dtype = t->dtype, .n_dims = t->n_dims > 0 ? t->n_dims : 1, .dims = {1}};
    memcpy(out.dims, t->dims, (size_t)t->n_dims * sizeof *t->dims);
    for (int64_t i = out.n_dims - 1, stride = 1; i >= 0; i--) {
        out.strides[i] = stride;
        stride *= out.dims[i];
    }
    return stored_tensor_read(t, out);
}

/* Elements [first, first + n) are then r->values from *at on. */
static struct status read_piece(struct reader *r, int64_t first, int64_t n, int64_t *at)
{
    *at = r->whole ? first : 0;
    return r->whole
               ? status_ok()
               : stored_tensor_read_elements(r->from, first, tensor_1d(r->values.data, r->values.dtype, n));
}

static void close_reader(struct reader *r)
{
    free(r->values.data);
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void compare_element(struct tensor_diff *d, int64_t i, double a, double b,
                            struct tensor_tolerance within)
{
    if (is_same(a, b)) {
        return;
    }
    bool finite = isfinite(a) && isfinite(b);
    double by = finite ? fabs(a - b) : INFINITY, relative = finite && b != 0 ? by / fabs(b) : INFINITY;
    d->largest = by > d->max_abs ? i : d->largest;
    d->max_abs = fmax(d->max_abs, by);
    d->max_rel = fmax(d->max_rel, relative);
    if (finite && by <= within.atol + within.rtol * fabs(b)) {
        return;
    }
    d->n_different++;
    if (d->first < 0) {
        d->first = i, d->a = a, d->b = b;
    }
}

static struct status compare_all(struct tensor_diff *d, struct reader *a, struct reader *b,
                                 struct tensor_tolerance within)
{
    for (int64_t first = 0; first < d->n; first += PIECE) {
        int64_t n = d->n - first < PIECE ? d->n - first : PIECE, at_a, at_b;
        TRY(read_piece(a, first, n, &at_a));
        TRY(read_piece(b, first, n, &at_b));
        for (int64_t i = 0; i < n; i++) {
            compare_element(d, first + i, tensor_get(a->values, at_a + i), tensor_get(b->values, at_b + i),
                            within);
        }
    }
    return status_ok();
}

struct status tensor_diff_compare(struct tensor_diff *d, const struct stored_tensor *a,
                                  const struct stored_tensor *b, struct tensor_tolerance within)
{
    struct reader of_a = {0}, of_b = {0};
    CHECK(a->n_dims == b->n_dims && memcmp(a->dims, b->dims, (size_t)a->n_dims * sizeof *a->dims) == 0,
          "%s has another shape", a->name);
    *d = (struct tensor_diff){.n = a->unreadable == NULL ? count_of(a) : 0, .first = -1, .largest = -1};
    struct status s = open_reader(&of_a, a);
    if (!failed(s)) {
        s = open_reader(&of_b, b);
    }
    if (!failed(s)) {
        s = compare_all(d, &of_a, &of_b, within);
    }
    close_reader(&of_a);
    close_reader(&of_b);
    return s;
}
