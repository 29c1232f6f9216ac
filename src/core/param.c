#include "core/param.h"

#include "core/parallel.h"
#include "core/hash.h"
#include "core/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static double sinusoid(const struct param *p, uint64_t index)
{
    uint64_t n_cols = (uint64_t)p->dims[1], row = index / n_cols, col = index % n_cols;
    double angle = (double)row * pow(10000.0, -(double)(col - col % 2) / (double)n_cols);
    return col % 2 == 0 ? sin(angle) : cos(angle);
}

static double initial_value(const struct param *p, uint64_t key, uint64_t index)
{
    switch (p->init) {
    case PARAM_INIT_NORMAL: return p->init_scale * rng_normal(key, index);
    case PARAM_INIT_UNIFORM: return p->init_scale * (2.0 * rng_uniform_at(key, index) - 1.0);
    case PARAM_INIT_SINUSOIDS: return p->init_scale * sinusoid(p, index);
    case PARAM_INIT_ONE: return 1.0;
    case PARAM_INIT_ZERO: break;
    }
    return 0.0;
}

void param_initialize(const struct param *p, tensor flat, uint64_t seed, int64_t begin, int64_t end)
{
    tensor view = param_view(p, flat);
    uint64_t key = rng_key(seed, hash_fnv1a(p->name, strlen(p->name)));
    for (int64_t i = begin; i < end; i++) {
        tensor_set(view, i, initial_value(p, key, (uint64_t)i));
    }
}

struct initializing {
    const struct param_table *table;
    tensor flat;
    uint64_t seed;
};

/* Initializes one part's share of every parameter. */
static void initialize_part(void *context, int part, int n_parts)
{
    const struct initializing *in = context;
    for (int i = 0; i < in->table->n; i++) {
        const struct param *p = &in->table->params[i];
        int64_t n = param_count(p), share = (n + n_parts - 1) / n_parts, begin = share * part;
        int64_t end = begin + share < n ? begin + share : n;
        param_initialize(p, in->flat, in->seed, begin, end);
    }
}

void param_table_initialize(tensor flat, const struct param_table *table, uint64_t seed)
{
    struct initializing in = {table, flat, seed};
    memset(flat.data, 0, tensor_bytes(flat));
    parallel_run(initialize_part, &in);
}
