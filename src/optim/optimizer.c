#include "optim/optimizer.h"

#include "core/log.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)OPTIM_CHUNK == (int)PARAM_ALIGNMENT, "slabs are whole chunks");

static const double MOMENTUM = 0.95; /* Muon's (Jordan et al. 2024) */

static const struct optimizer_kind *const kinds[] = {
    &optimizer_lamb, &optimizer_nvlamb_exp, &optimizer_ds_fused_lamb, &optimizer_lans,
    &optimizer_adam, &optimizer_adamw,      &optimizer_muon,          &optimizer_sgd};

const struct optimizer_kind *optimizer_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i]->name, name) == 0) {
            return kinds[i];
        }
    }
    return NULL;
}

/* Names that the replaced scripts give optimizers. */
static const struct other_name {
    const char *name, *ours; /* ours NULL: not there yet */
    const char *why;
} other_names[] = {
    {"nvlamb", "lamb", "kiln's LAMB is NVLAMB"},
    {"fused_lamb", "lamb", "kiln's LAMB is fused"},
    {"fused_adam", "adamw", "kiln's AdamW is fused"},
    {"fused_adamw", "adamw", "kiln's AdamW is fused"},
    {"onebitadam", NULL, "it compresses gradients between ranks"},
    {"zerooneadam", NULL, "it compresses gradients between ranks"},
    {"onebitlamb", NULL, "it compresses gradients between ranks"},
};

struct status optimizer_find_by_any_name(const char **name, const char *given, const char *where)
{
    char lower[32] = "";
    for (size_t i = 0; given[i] != '\0' && i + 1 < sizeof lower; i++) {
        lower[i] = (char)tolower((unsigned char)given[i]);
    }
    const struct optimizer_kind *kind = optimizer_find(lower);
    if (kind != NULL) {
        *name = kind->name;
        return status_ok();
    }
    for (size_t i = 0; i < sizeof other_names / sizeof other_names[0]; i++) {
        const struct other_name *r = &other_names[i];
        if (strcmp(r->name, lower) != 0) {
            continue;
        }
        FAIL_IF(r->ours == NULL, STATUS_UNAVAILABLE, "%s %s is not supported yet: %s", where, given, r->why);
        log_info("%s %s is %s here: %s", where, given, r->ours, r->why);
        *name = r->ours;
        return status_ok();
    }
    return status_error(STATUS_USAGE, "%s %s is not an optimizer; kiln has " OPTIMIZER_NAMES, where, given);
}

struct optimizer optimizer_defaults(const struct optimizer_kind *kind)
{
    return (struct optimizer){
        .kind = kind,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .eps = 1e-6,
        .weight_decay = 0.01,
        .max_grad_norm = 1.0,
        .min_ratio = kind->min_ratio,
        .max_ratio = kind->max_ratio,
        .bias_correction = true,
        .corrects_steps = kind->corrects_steps,
        .corrects_eps = kind->corrects_eps,
    };
}

struct optimizer optimizer_with(const struct optimizer_kind *kind, struct optimizer given)
{
    struct optimizer usual = optimizer_defaults(kind);
    given.kind = kind;
    given.bias_correction = usual.bias_correction;
    given.corrects_steps = given.corrects_steps || usual.corrects_steps;
    given.corrects_eps = given.corrects_eps || usual.corrects_eps;
    if (given.max_ratio <= 0) {
        given.min_ratio = usual.min_ratio;
        given.max_ratio = usual.max_ratio;
    }
    return given;
}

/* Layers count from 0; the heads are behind the last. */
static int64_t layer_of_heads(const struct param_table *table)
{
    int64_t layer = 0;
    for (int i = 0; i < table->n; i++) {
        layer = table->params[i].layer > layer ? table->params[i].layer : layer;
    }
    return layer;
}

static bool is_matrix_of_layer(const struct param *p, int64_t heads)
{
    return p->by_product && p->layer >= 0 && p->layer < heads;
}

void optimizer_keep_whole(const struct optimizer *o, struct param_table *table)
{
    int64_t heads = layer_of_heads(table);
    for (int i = 0; i < table->n && o->kind != NULL && o->kind->takes_matrices; i++) {
        table->params[i].whole = is_matrix_of_layer(&table->params[i], heads);
    }
}

struct optim_span *optimizer_spans(const struct optimizer *o, const struct param_table *table,
                                   struct param_shard shard, int64_t *n_spans)
{
    struct optim_span *spans = malloc(((size_t)table->n + 1) * sizeof *spans);
    int64_t chunk = 0, n = 0;
    for (int i = 0; spans != NULL && i < table->n; i++) {
        const struct param *p = &table->params[i];
        if (p->rate == 0) {
            continue;
        }
        struct param_shard part = param_shard_cut(p, shard);
        int64_t chunks = param_chunks(param_count(p));
        if (part.end > part.begin) {
            spans[n++] = (struct optim_span){.offset = part.begin - shard.begin,
                                             .n = part.end - part.begin,
                                             .weight_decay = p->decay ? o->weight_decay : 0.0,
                                             .rate = p->rate,
                                             .first_chunk = chunk,
                                             .n_chunks = chunks,
                                             .rows = p->whole ? p->dims[0] : 0,
                                             .full_rows = p->whole ? p->full[0] : 0,
                                             .full_cols = p->whole ? p->full[1] : 0};
        }
        chunk += chunks;
    }
    *n_spans = n;
    return spans;
}

/* Appends the spans with or without rows. */
static int64_t append_spans(struct optim_span *to, const struct optim_span *spans, int64_t n_spans,
                            bool with_rows)
{
    int64_t n = 0;
    for (int64_t i = 0; i < n_spans; i++) {
        if ((spans[i].rows > 0) == with_rows) {
            to[n++] = spans[i];
        }
    }
    return n;
}

struct optim_span *optimizer_part_spans(const struct optim_span *spans, int64_t n_spans, int64_t *n_matrices)
{
    struct optim_span *parted = malloc(((size_t)n_spans + 1) * sizeof *parted);
    if (parted != NULL) {
        int64_t others = append_spans(parted, spans, n_spans, false);
        *n_matrices = append_spans(parted + others, spans, n_spans, true);
    }
    return parted;
}

void optimizer_scalars(const struct optimizer *o, double lr, int64_t t, double grad_scale,
                       double scalars[OPTIM_N_SCALARS])
{
    const struct optimizer_kind *k = o->kind;
    double c1 = o->bias_correction ? 1 - pow(o->beta1, (double)t) : 1;
    double c2 = o->bias_correction ? 1 - pow(o->beta2, (double)t) : 1;
    scalars[OPTIM_LR] = o->corrects_steps ? lr * sqrt(c2) / c1 : lr;
    scalars[OPTIM_BETA1] = o->beta1;
    scalars[OPTIM_BETA2] = o->beta2;
    scalars[OPTIM_EPS] = o->corrects_eps ? o->eps * sqrt(c2) : o->eps;
    scalars[OPTIM_CORRECTION1] = o->corrects_steps ? 1 : c1;
    scalars[OPTIM_CORRECTION2] = o->corrects_steps ? 1 : c2;
    if (k->sums_gradients) {
        scalars[OPTIM_LR] = lr / (1 - o->beta1);
        scalars[OPTIM_BETA2] = scalars[OPTIM_EPS] = 1;
        scalars[OPTIM_CORRECTION1] = scalars[OPTIM_CORRECTION2] = 1;
    }
    scalars[OPTIM_MAX_NORM] = o->max_grad_norm;
    scalars[OPTIM_GRAD_SCALE] = grad_scale;
    scalars[OPTIM_COUPLED] = k->couples_decay;
    scalars[OPTIM_RATIO_OF_ALL] = k->ratio_of_all;
    scalars[OPTIM_MIN_RATIO] = o->min_ratio;
    scalars[OPTIM_MAX_RATIO] = o->max_ratio > 0 ? o->max_ratio : INFINITY;
    scalars[OPTIM_MOMENTUM] = MOMENTUM;
}
