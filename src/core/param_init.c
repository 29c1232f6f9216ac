/* Initial values.  Each is a function of the seed, the parameter and the element's index in the complete
 * tensor, so that any part of a flat buffer, and any rank's part of a tensor, is initialised alone. */
#include "core/hash.h"
#include "core/param.h"
#include "core/parallel.h"
#include "core/rng.h"

#include <math.h>
#include <string.h>

static double sinusoid(const struct param *p, uint64_t index)
{
    uint64_t n_cols = (uint64_t)p->full[1], row = index / n_cols, col = index % n_cols;
    double angle = (double)row * pow(10000.0, -(double)(col - col % 2) / (double)n_cols);
    return col % 2 == 0 ? sin(angle) : cos(angle);
}

static double initial_value(const struct param *p, uint64_t key, uint64_t index)
{
    switch (p->init) {
    case PARAM_INIT_RESIDUAL:
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
        tensor_set(view, i, initial_value(p, key, (uint64_t)param_full_index(p, i)));
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
