#include "io/tensor_diff.h"

#include "io/stored_reader.h"

#include <math.h>
#include <string.h>

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

static struct status compare_all(struct tensor_diff *d, struct stored_reader *a, struct stored_reader *b,
                                 struct tensor_tolerance within)
{
    tensor x, y;
    for (int64_t first = 0; first < d->n; first += tensor_count(x)) {
        TRY(stored_reader_next(a, &x));
        TRY(stored_reader_next(b, &y));
        for (int64_t i = 0; i < tensor_count(x); i++) {
            compare_element(d, first + i, tensor_get(x, i), tensor_get(y, i), within);
        }
    }
    return status_ok();
}

struct status tensor_diff_compare(struct tensor_diff *d, const struct stored_tensor *a,
                                  const struct stored_tensor *b, struct tensor_tolerance within)
{
    struct stored_reader of_a = {0}, of_b = {0};
    CHECK(a->n_dims == b->n_dims && memcmp(a->dims, b->dims, (size_t)a->n_dims * sizeof *a->dims) == 0,
          "%s has another shape", a->name);
    *d = (struct tensor_diff){
        .n = a->unreadable == NULL ? stored_reader_count(a) : 0, .first = -1, .largest = -1};
    struct status s = stored_reader_open(&of_a, a);
    if (!failed(s)) {
        s = stored_reader_open(&of_b, b);
    }
    if (!failed(s)) {
        s = compare_all(d, &of_a, &of_b, within);
    }
    stored_reader_close(&of_a);
    stored_reader_close(&of_b);
    return s;
}
