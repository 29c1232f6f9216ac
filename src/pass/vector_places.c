#include "pass/vector_places.h"

#include "core/integers.h"

#include <stdlib.h>
#include <string.h>

/* The end of parameter i in the flat buffer, with the padding after it: slabs move as a unit, so that parts
 * of one stay neighbours. */
static int64_t end_of(const struct param_table *params, int i)
{
    return i + 1 < params->n ? params->params[i + 1].offset : params->n_elements;
}

bool vector_places_has(const struct vector_places *v, const struct param *p)
{
    bool in_layer = p->layer >= 0 && p->layer < v->n_layers;
    return p->n_dims == 1 ? !(p->is_bias && v->rounds_biases) : v->n_layers > 0 && !in_layer;
}

struct status vector_places_init(struct vector_places *v, const struct param_table *params,
                                 const struct device *device, int64_t n_layers)
{
    size_t n = (size_t)params->n;
    *v = (struct vector_places){.rounds_biases = device->takes_rounded_biases, .n_layers = n_layers};
    v->table.params = malloc((n > 0 ? n : 1) * sizeof *params->params);
    FAIL_IF(v->table.params == NULL, STATUS_MEMORY, "out of memory for the places of %d parameters",
            params->n);
    memcpy(v->table.params, params->params, n * sizeof *params->params);
    v->table.n = v->table.capacity = params->n;
    v->table.n_elements = params->n_elements;
    v->table.part = params->part;
    for (int i = 0; i < params->n; i++) {
        struct param *p = &v->table.params[i];
        if (vector_places_has(v, p)) {
            int64_t begin = p->offset;
            p->offset = v->n;
            v->n += end_of(params, i) - begin;
        }
    }
    return status_ok();
}

void vector_places_fini(struct vector_places *v)
{
    param_table_fini(&v->table);
}

int64_t vector_places_before(const struct vector_places *v, const struct param_table *params, int64_t element)
{
    int64_t n = 0;
    for (int i = 0; i < params->n && params->params[i].offset < element; i++) {
        const struct param *p = &params->params[i];
        if (vector_places_has(v, p)) {
            n += int_smaller(element, end_of(params, i)) - p->offset;
        }
    }
    return n;
}

bool vector_places_next(const struct vector_places *v, const struct param_table *params,
                        struct param_shard *shard, int64_t *from, int64_t *at, int64_t *n)
{
    *n = 0;
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->params[i];
        int64_t begin = int_larger(p->offset, shard->begin), end = int_smaller(end_of(params, i), shard->end);
        if (!vector_places_has(v, p) || begin >= end) {
            continue;
        }
        if (*n > 0 && begin != *from + *n) {
            break;
        }
        if (*n == 0) {
            *from = begin;
            *at = v->table.params[i].offset + begin - p->offset;
        }
        *n = end - *from;
    }
    shard->begin = *n > 0 ? *from + *n : shard->end;
    return *n > 0;
}
