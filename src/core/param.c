#include "core/param.h"

#include <stdlib.h>
#include <string.h>

bool param_part_is_all(const struct param_part *part)
{
    return part->n_ranges == 0 && part->n_slices <= 1;
}

bool param_part_has(const struct param_part *part, int64_t layer)
{
    bool has = part->n_ranges == 0;
    for (int i = 0; i < part->n_ranges; i++) {
        has = has || (layer >= part->ranges[i].first && layer < part->ranges[i].end);
    }
    return has;
}

int param_part_slices(const struct param_part *part)
{
    return part->n_slices > 0 ? part->n_slices : 1;
}

void param_table_fini(struct param_table *t)
{
    free(t->params);
    *t = (struct param_table){0};
}

int64_t param_table_slab(struct param_table *t, int64_t elements)
{
    int64_t offset = t->n_elements;
    t->n_elements += (elements + PARAM_ALIGNMENT - 1) / PARAM_ALIGNMENT * PARAM_ALIGNMENT;
    return offset;
}

void param_table_add(struct param_table *t, struct param p)
{
    CHECK(p.offset >= 0 && p.offset + param_count(&p) <= t->n_elements, "%s lies outside its slab", p.name);
    if (t->n == t->capacity && !t->failed) {
        int capacity = t->capacity == 0 ? 64 : 2 * t->capacity;
        struct param *params = realloc(t->params, (size_t)capacity * sizeof *params);
        t->failed = params == NULL;
        if (params != NULL) {
            t->params = params;
            t->capacity = capacity;
        }
    }
    if (!t->failed) {
        p.rate = 1;
        if (p.full[0] == 0) { /* not a part of a tensor */
            memcpy(p.full, p.dims, sizeof p.full);
        }
        t->params[t->n++] = p;
    }
}

struct status param_table_status(const struct param_table *t)
{
    return t->failed ? status_error(STATUS_MEMORY, "out of memory for the table of %d parameters", t->n)
                     : status_ok();
}

int64_t param_count(const struct param *p)
{
    return p->n_dims == 1 ? p->dims[0] : p->dims[0] * p->dims[1];
}

bool param_sums_parts(const struct param *p, bool divides_rows)
{
    return p->split == PARAM_OF_HEADS || (p->split == PARAM_OF_ROWS && divides_rows);
}

int64_t param_full_count(const struct param *p)
{
    return p->n_dims == 1 ? p->full[0] : p->full[0] * p->full[1];
}

bool param_is_full(const struct param *p)
{
    return param_count(p) == param_full_count(p);
}

int64_t param_full_index(const struct param *p, int64_t i)
{
    return p->n_dims == 1 ? p->first[0] + i
                          : (p->first[0] + i / p->dims[1]) * p->full[1] + p->first[1] + i % p->dims[1];
}

int64_t param_table_end_of_copies(const struct param_table *t)
{
    int i = 0;
    while (i < t->n && t->params[i].is_copy) {
        i++;
    }
    return i == 0 ? 0 : i < t->n ? t->params[i].offset : t->n_elements;
}

int64_t param_table_count(const struct param_table *t)
{
    int64_t n = 0;
    for (int i = 0; i < t->n; i++) {
        n += param_count(&t->params[i]);
    }
    return n;
}

const struct param *param_table_find(const struct param_table *t, const char *name)
{
    for (int i = 0; i < t->n; i++) {
        if (strcmp(t->params[i].name, name) == 0) {
            return &t->params[i];
        }
    }
    return NULL;
}

/* The offset where the parameters of this layer and all later ones begin. */
static int64_t layers_begin(const struct param_table *t, int64_t layer)
{
    for (int i = 0; i < t->n; i++) {
        if (t->params[i].layer >= layer) {
            return t->params[i].offset;
        }
    }
    return t->n_elements;
}

void param_table_range(const struct param_table *t, int64_t first, int64_t end_layer, int64_t *begin,
                       int64_t *end)
{
    for (int i = 1; i < t->n; i++) {
        CHECK(t->params[i].layer >= t->params[i - 1].layer, "%s is of an earlier layer than %s",
              t->params[i].name, t->params[i - 1].name);
    }
    *begin = layers_begin(t, first);
    *end = layers_begin(t, end_layer);
}

tensor param_view(const struct param *p, tensor flat)
{
    tensor t = tensor_slice(flat, p->offset, param_count(p));
    return p->n_dims == 1 ? t : tensor_2d(t.data, t.dtype, p->dims[0], p->dims[1]);
}
