#include "pass/weight_window.h"

#include "core/integers.h"

#include <stdlib.h>

static enum dtype vector_of(const struct network *n)
{
    return dtype_of_vectors(n->config.precision.dtype);
}

struct status weight_window_open(struct weight_window *w, struct network *n)
{
    *w = (struct weight_window){0};
    TRY(n->x.status);
    *w = (struct weight_window){.n = n, .in_place = n->x.device->is_host && network_has_master(n)};
    int64_t most = 1;
    for (int i = 0; i < n->params.n && !w->in_place; i++) {
        most = int_larger(most, param_count(&n->params.params[i]));
    }
    if (!w->in_place) {
        w->memory = malloc((size_t)most * dtype_bytes(vector_of(n)));
        w->rounded =
            n->x.device->is_host ? NULL : malloc((size_t)most * dtype_bytes(n->config.precision.dtype));
    }
    if (!w->in_place && (w->memory == NULL || (w->rounded == NULL && !n->x.device->is_host))) {
        free(w->memory);
        free(w->rounded);
        *w = (struct weight_window){0};
        return status_error(STATUS_MEMORY, "out of memory for a parameter of %lld elements", (long long)most);
    }
    return status_ok();
}

/* A copy of the parameter whose offset is 0, for a buffer that holds only it. */
static struct param alone(const struct param *p)
{
    struct param one = *p;
    one.offset = 0;
    return one;
}

static struct status place(void *self, const struct param *p, tensor *values)
{
    const struct weight_window *w = self;
    struct param one = alone(p);
    *values = w->in_place ? param_view(p, w->n->master)
                          : param_view(&one, tensor_1d(w->memory, vector_of(w->n), param_count(p)));
    return status_ok();
}

/* Writes `values` to the elements from `at` on of a flat buffer, which has only the elements of `owned`. */
static void write_part(struct exec *x, tensor flat, struct param_shard owned, int64_t at, tensor values)
{
    int64_t from = int_larger(at, owned.begin), end = int_smaller(at + tensor_count(values), owned.end);
    if (from < end) {
        tensor to = tensor_slice(flat, from - owned.begin, end - from);
        exec_copy_in(x, to.data, tensor_slice(values, from - at, end - from).data, tensor_bytes(to));
    }
}

/* Writes the given rows in int8, each with its own scale. */
static void write_int8(struct weight_window *w, const struct param *p, tensor values)
{
    struct network *n = w->n;
    struct exec host = {.device = &device_cpu, .ops = ops_cpu(), .layer_index = -1};
    int64_t rows = tensor_rows(values);
    host.ops->quantize(&host, tensor_slice(param_view(p, n->working), 0, rows), NULL_TENSOR,
                       tensor_slice(n->scales, p->row, rows), NULL_TENSOR, NULL_TENSOR, values, DTYPE_I8);
    n->x.status = failed(n->x.status) ? n->x.status : host.status;
}

/* Rounds on the host, since the device has no complete master to round from. */
static void write_rounded(struct weight_window *w, int64_t at, tensor values)
{
    struct network *n = w->n;
    struct exec host = {.device = &device_cpu, .ops = ops_cpu(), .layer_index = -1};
    tensor to = tensor_slice(n->working, at, tensor_count(values)), rounded = to;
    if (w->rounded != NULL) {
        rounded.data = w->rounded;
    }
    host.ops->cast(&host, rounded, values);
    if (w->rounded != NULL) {
        exec_copy_in(&n->x, to.data, rounded.data, tensor_bytes(to));
    }
}

static struct status put(void *self, const struct param *p, tensor values)
{
    struct weight_window *w = self;
    struct network *n = w->n;
    tensor flat = tensor_1d(values.data, values.dtype, tensor_count(values));
    if (w->in_place) {
        return status_ok();
    }
    if (!tensor_is_null(n->master)) {
        write_part(&n->x, n->master, n->owned, p->offset, flat);
    }
    bool of_vectors = !network_has_master(n) && vector_places_has(&n->places, p);
    if (!tensor_is_null(n->scales) && !of_vectors) {
        write_int8(w, p, values);
    } else if (tensor_is_null(n->scales) && !network_has_master(n)) {
        write_rounded(w, p->offset, flat);
    }
    if (of_vectors) {
        struct param_shard all = {0, n->places.n};
        const struct param *to = &n->places.table.params[p - n->params.params];
        write_part(&n->x, n->vectors, all, to->offset, flat);
    }
    return n->x.status;
}

/* Reads a parameter from where passes do, which is enough to see whether it is zero. */
static struct status current(void *self, const struct param *p, tensor *values)
{
    struct weight_window *w = self;
    struct network *n = w->n;
    tensor from = network_view_param(n, p);
    *values = from;
    if (!n->x.device->is_host) {
        values->data = from.dtype == vector_of(n) ? w->memory : w->rounded;
        exec_copy_out(&n->x, values->data, from.data, tensor_bytes(from));
    }
    return n->x.status;
}

struct weight_sink weight_window_sink(struct weight_window *w)
{
    return (struct weight_sink){.self = w, .place = place, .put = put, .current = current};
}

struct status weight_window_draw(struct weight_window *w, const struct param *p, uint64_t seed,
                                 tensor *values)
{
    struct param one = alone(p);
    struct param_table table = {.params = &one, .n = 1, .n_elements = param_count(p)};
    TRY(place(w, p, values));
    param_table_initialize(tensor_1d(values->data, values->dtype, param_count(p)), &table, seed);
    return status_ok();
}

struct status weight_window_close(struct weight_window *w)
{
    if (w->n == NULL) {
        return status_ok();
    }
    network_weights_changed(w->n);
    exec_synchronize(&w->n->x); /* networks over these weights have streams of their own */
    struct status s = w->n->x.status;
    free(w->memory);
    free(w->rounded);
    *w = (struct weight_window){0};
    return s;
}
