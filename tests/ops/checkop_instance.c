#include "checkop_instance.h"

#include "core/hash.h"
#include "core/rng.h"
#include "test.h"

#include <math.h>

static enum dtype dtype_of(enum checkop_kind kind, enum dtype a)
{
    switch (kind) {
    case KIND_A: return a;
    case KIND_W: return a == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    case KIND_F32: return DTYPE_F32;
    case KIND_F64: return DTYPE_F64;
    case KIND_I32: return DTYPE_I32;
    case KIND_I64: return DTYPE_I64;
    case KIND_E4M3: return DTYPE_E4M3;
    case KIND_E5M2: return DTYPE_E5M2;
    case KIND_I8: return DTYPE_I8;
    }
    return DTYPE_F64;
}

static tensor shape_of(const struct checkop_arg *a, enum dtype dtype, void *data)
{
    tensor t =
        tensor_3d(data, dtype, a->dims[0], a->n_dims > 1 ? a->dims[1] : 1, a->n_dims > 2 ? a->dims[2] : 1);
    t.n_dims = a->n_dims;
    if (a->n_dims == 1) {
        t = tensor_1d(data, dtype, a->dims[0]);
    } else if (a->n_dims == 2) {
        t = tensor_2d(data, dtype, a->dims[0], a->dims[1]);
    }
    t.strides[0] += a->gap;
    if (a->by_columns) {
        t = tensor_transpose(tensor_2d(data, dtype, a->dims[1], a->dims[0]));
    }
    return t;
}

void checkop_instance_scale(const struct checkop_case *c, tensor *t)
{
    for (int i = 0; i < c->n_args; i++) {
        t[i].scale = c->args[i].scaled_by == 0 ? NULL : t[c->args[i].scaled_by - 1].data;
    }
}

void checkop_instance_init(struct checkop_instance *in, const struct checkop_case *c, enum dtype tested,
                           enum dtype a)
{
    *in = (struct checkop_instance){.c = c};
    for (int i = 0; i < c->n_args; i++) {
        const struct checkop_arg *arg = &c->args[i];
        if (arg->mixed_only && tested == dtype_of_vectors(tested)) {
            continue;
        }
        tensor t = shape_of(arg, dtype_of(arg->kind, a), NULL);
        in->bytes[i] =
            arg->by_columns ? tensor_bytes(t) : (size_t)(t.dims[0] * t.strides[0]) * dtype_bytes(t.dtype);
        in->memory[i] = malloc(in->bytes[i] + 1);
        EXPECT(in->memory[i] != NULL, "no memory for %s", arg->name);
        memset(in->memory[i], CHECKOP_GUARD, in->bytes[i]);
        t.data = in->memory[i];
        in->t[i] = t;
    }
    for (int i = 0; i < c->n_args; i++) {
        if (c->args[i].shares != 0) {
            in->t[i].data = in->memory[c->args[i].shares - 1];
        }
    }
    checkop_instance_scale(c, in->t);
}

void checkop_instance_fini(struct checkop_instance *in)
{
    for (int i = 0; i < in->c->n_args; i++) {
        free(in->memory[i]);
    }
}

static void fill_bounds(tensor t, const int64_t *lens)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < tensor_count(t); i++) {
        tensor_set(t, i, (double)sum);
        sum += lens[i];
    }
}

static void fill_row_keys(tensor t, const struct checkop_case *c)
{
    int64_t row = 0;
    for (int b = 0; b < c->n_sequences; b++) {
        for (int64_t i = 0; i < c->lens_q[b] && row < t.dims[0]; i++, row++) {
            tensor_set(t, 2 * row, 11 * b + 3);
            tensor_set(t, 2 * row + 1, (double)(i + 1));
        }
    }
    EXPECT(row + c->shape.rest == t.dims[0], "%s: the sequences have %lld of %lld rows", c->title,
           (long long)row, (long long)t.dims[0]);
}

static void fill_scalars(tensor t, double amount)
{
    const double values[OPTIM_N_SCALARS] = {
        [OPTIM_LR] = 0.01,
        [OPTIM_BETA1] = 0.9,
        [OPTIM_BETA2] = 0.999,
        [OPTIM_EPS] = 1e-6,
        [OPTIM_CORRECTION1] = amount > 0 ? 1 - 0.9 * 0.9 : 1,
        [OPTIM_CORRECTION2] = amount > 0 ? 1 - 0.999 * 0.999 : 1,
        [OPTIM_MAX_NORM] = amount > 0 ? 1 : 0,
        [OPTIM_GRAD_SCALE] = amount > 0 ? 0.5 : 0.25,
        [OPTIM_COUPLED] = amount > 0 ? 0 : 1,
        [OPTIM_RATIO_OF_ALL] = amount > 0 ? 0 : 1,
        [OPTIM_MIN_RATIO] = amount > 0 ? 0 : 0.97,
        [OPTIM_MAX_RATIO] = amount > 0 ? INFINITY : 1.01,
        [OPTIM_MOMENTUM] = 0.95,
    };
    for (int i = 0; i < OPTIM_N_SCALARS; i++) {
        tensor_set(t, i, values[i]);
    }
}

/* Rows in turn: greedy, with all options, with a part of them, and without. */
static void fill_choices(tensor t, const struct checkop_case *c, int64_t most)
{
    for (int64_t i = 0; i < t.dims[0]; i++) {
        const double values[CHOICE_N_OPTIONS] = {
            [CHOICE_LABEL] = i % 5 == 3 ? (double)(i * 11 % c->shape.f) : -1,
            [CHOICE_N_RATED] = (double)(i % 3 == 0 ? most : i % 3 - 1),
            [CHOICE_RANDOM] = rng_uniform_at(77, (uint64_t)i),
            [CHOICE_TEMPERATURE] = i % 4 == 0   ? 0
                                   : i % 4 == 1 ? 0.7
                                                : 1.4,
            [CHOICE_TOP_K] = i % 4 == 1   ? 20
                             : i % 8 == 2 ? 3
                                          : 0,
            [CHOICE_TOP_P] = i % 4 == 1   ? 0.9
                             : i % 8 == 6 ? 0.6
                                          : 1,
            [CHOICE_MIN_P] = i % 4 == 1 ? 0.05 : 0,
            [CHOICE_REPETITION] = i % 2 == 1 ? 1.5 : 1,
            [CHOICE_FREQUENCY] = i % 3 == 1 ? 0.5 : 0,
            [CHOICE_PRESENCE] = i % 3 == 1 ? 0.25 : 0,
        };
        for (int64_t k = 0; k < CHOICE_N_OPTIONS; k++) {
            tensor_set(t, i * CHOICE_N_OPTIONS + k, values[k]);
        }
    }
}

static void fill_changes(tensor t, int64_t n_tokens)
{
    for (int64_t i = 0; i < t.dims[0]; i++) {
        const double values[CHANGE_N_COLUMNS] = {
            [CHANGE_ID] = (double)(i * 7 % n_tokens), /* which is no multiple of 7 */
            [CHANGE_ADD] = i % 3 == 0 ? 6 : 0,
            [CHANGE_WAS] = i % 3 != 0,
            [CHANGE_N_NEW] = i % 3 == 2 ? 2 : 0,
        };
        for (int64_t k = 0; k < CHANGE_N_COLUMNS; k++) {
            tensor_set(t, i * CHANGE_N_COLUMNS + k, values[k]);
        }
    }
}

/* The largest magnitude of the step before, and of this one so far, of tensors whose own is about 90: none,
 * one that gives them room, one that they have outgrown, one that is no number; room for them, but not for
 * those before them; and nothing known but a number of this step that is none. */
static const double histories[][2] = {{0, 0},           {60, 0.5}, {0x1p-9, 0.5},
                                      {(double)NAN, 0}, {60, 1e6}, {0, (double)INFINITY}};

static double fill_value(const struct checkop_arg *a, uint64_t key, int64_t i)
{
    double z = rng_normal(key, (uint64_t)i);
    switch (a->fill) {
    case FILL_NORMAL: return z * a->amount;
    case FILL_SPREAD: return i % 97 == 3 ? 30 * z : z;
    case FILL_GAMMA: return 1 + z * a->amount;
    case FILL_ZEROS: return i % 3 != 1 ? z * a->amount : i % 2 == 0 ? 0.0 : -0.0;
    case FILL_SQUARES: return z * z * a->amount;
    case FILL_IDENTITY: return i / a->dims[1] == i % a->dims[1];
    case FILL_INDEX: return floor(rng_uniform_at(key, (uint64_t)i) * a->amount);
    case FILL_TARGET: return i % 4 == 1 ? NAN : rng_uniform_at(key, (uint64_t)i) * a->amount;
    case FILL_LABEL: return i % 4 == 1 ? -1 : floor(rng_uniform_at(key, (uint64_t)i) * a->amount);
    case FILL_SLOTS: return i % 5 == 3 ? -1 : (double)(i * 7 % ((int64_t)a->amount * OPS_CACHE_PAGE));
    case FILL_STARTS: return (double)i * a->amount;
    case FILL_CONSTANT: return a->amount;
    case FILL_SLOPES: return ldexp(1, -(int)i - 1);
    case FILL_HISTORY: return histories[(int)a->amount][i];
    case FILL_HOLES:
        return a->amount < 0 || i < a->amount ? z : i == a->amount ? (double)NAN : (double)INFINITY;
    default: return 0;
    }
}

/* Pages of a cache in which sequences take turns: no page twice, and none in order. */
static void fill_pages(tensor t, const struct checkop_case *c, int64_t n_pages)
{
    int64_t width = t.dims[1], next = 0;
    for (int64_t k = 0; k < width; k++) {
        for (int64_t b = 0; b < t.dims[0]; b++) {
            bool is_used = k * OPS_CACHE_PAGE < c->lens_kv[b];
            tensor_set(t, b * width + k, is_used ? (double)(n_pages - 1 - next++) : 0);
        }
    }
}

void checkop_instance_fill_arg(const struct checkop_case *c, int arg, tensor t)
{
    const struct checkop_arg *a = &c->args[arg];
    switch (a->fill) {
    case FILL_BOUNDS_Q: fill_bounds(t, c->lens_q); return;
    case FILL_BOUNDS_KV: fill_bounds(t, c->lens_kv); return;
    case FILL_PAGES: fill_pages(t, c, (int64_t)a->amount); return;
    case FILL_ROW_KEYS: fill_row_keys(t, c); return;
    case FILL_SCALARS: fill_scalars(t, a->amount); return;
    case FILL_CHOICES: fill_choices(t, c, (int64_t)a->amount); return;
    case FILL_CHANGES: fill_changes(t, (int64_t)a->amount); return;
    default: break;
    }
    uint64_t key = rng_key(hash_fnv1a(c->shape.op, strlen(c->shape.op)),
                           (uint64_t)arg); /* whatever other ops there are */
    int64_t n = tensor_count(t);
#pragma omp parallel for if (n > CHECKOP_WORTH_THREADS)
    for (int64_t i = 0; i < n; i++) {
        tensor_set(t, i, a->role == ROLE_OUT ? (double)NAN : fill_value(a, key, i));
    }
}

void checkop_instance_fill(struct checkop_instance *exact, struct checkop_instance *rounded)
{
    const struct checkop_case *c = exact->c;
    for (int i = c->n_args - 1; i >= 0; i--) { /* scales are behind what they scale */
        if (c->args[i].shares != 0 || tensor_is_null(exact->t[i])) {
            continue;
        }
        checkop_instance_fill_arg(c, i, rounded->t[i]);
        int64_t n = tensor_count(exact->t[i]);
#pragma omp parallel for if (n > CHECKOP_WORTH_THREADS)
        for (int64_t e = 0; e < n; e++) {
            tensor_set(exact->t[i], e, tensor_get(rounded->t[i], e));
        }
    }
}
