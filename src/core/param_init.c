/* Initial values.  Each is a function of the seed, the parameter and the element's place in the whole tensor,
 * so that any part of a flat buffer, and any rank's part of a tensor, is initialised alone. */
#include "core/hash.h"
#include "core/param.h"
#include "core/parallel.h"
#include "core/rng.h"

#include <math.h>
#include <string.h>

/* How far the sinusoids of a pair of columns turn from one row to the next, in radians. */
static double radians_a_row(uint64_t col, uint64_t n_cols)
{
    return pow(10000.0, -(double)(col - col % 2) / (double)n_cols);
}

static double sinusoid(const struct param *p, uint64_t index)
{
    uint64_t n_cols = (uint64_t)p->full[1], row = index / n_cols, col = index % n_cols;
    double angle = (double)row * radians_a_row(col, n_cols);
    return col % 2 == 0 ? sin(angle) : cos(angle);
}

/* -1, 1, -2, 2 ... */
static int64_t neighbour_of(int64_t head)
{
    int64_t distance = head / 2 + 1;
    return head % 2 == 0 ? -distance : distance;
}

/* How many of n_cols columns turn by at least PARAM_NEIGHBOUR_RADIANS a row. */
static double columns_that_turn(uint64_t n_cols)
{
    return (double)n_cols * log(PARAM_NEIGHBOUR_RADIANS) / log(1e-4);
}

/* An element of A R, where R turns sinusoids by `distance` rows; so of A itself where that is 0.  A's
 * deviation makes the expected logit, q k / sqrt(D), PARAM_NEIGHBOUR_LOGIT where the query looks, for inputs
 * of mean square 1. */
static double neighbour(const struct param *p, uint64_t seed, uint64_t index, int64_t distance)
{
    uint64_t n_cols = (uint64_t)p->full[1], pair = index - index % 2;
    uint64_t key = rng_key(seed, hash_fnv1a("neighbours", 10) + (uint64_t)p->layer);
    double head_size = (double)p->full[0] / (double)p->n_heads;
    double deviation = sqrt(PARAM_NEIGHBOUR_LOGIT / (sqrt(head_size) * columns_that_turn(n_cols)));
    double of_sine = deviation * rng_normal(key, pair), of_cosine = deviation * rng_normal(key, pair + 1);
    double angle = (double)distance * radians_a_row(index % n_cols, n_cols);
    return index % 2 == 0 ? of_sine * cos(angle) - of_cosine * sin(angle)
                          : of_sine * sin(angle) + of_cosine * cos(angle);
}

/* An element of the query or key projection of heads that begin by looking at neighbours. */
static double positional_head(const struct param *p, uint64_t seed, uint64_t key, uint64_t index)
{
    uint64_t n_cols = (uint64_t)p->full[1], row = index / n_cols;
    int64_t head = (int64_t)row * p->n_heads / p->full[0];
    if (radians_a_row(index % n_cols, n_cols) < PARAM_NEIGHBOUR_RADIANS) {
        return p->init_scale * rng_normal(key, index);
    }
    return neighbour(p, seed, index, p->init == PARAM_INIT_NEIGHBOUR_QUERY ? neighbour_of(head) : 0);
}

static double initial_value(const struct param *p, uint64_t seed, uint64_t key, uint64_t index)
{
    switch (p->init) {
    case PARAM_INIT_RESIDUAL:
    case PARAM_INIT_NORMAL: return p->init_scale * rng_normal(key, index);
    case PARAM_INIT_UNIFORM: return p->init_scale * (2.0 * rng_uniform_at(key, index) - 1.0);
    case PARAM_INIT_SINUSOIDS: return p->init_scale * sinusoid(p, index);
    case PARAM_INIT_NEIGHBOUR_QUERY:
    case PARAM_INIT_NEIGHBOUR_KEY: return positional_head(p, seed, key, index);
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
        tensor_set(view, i, initial_value(p, seed, key, (uint64_t)param_full_index(p, i)));
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
