#include "optim/optimizer.h"

#include <math.h>
#include <stdlib.h>

struct optimizer optimizer_defaults(enum optimizer_kind kind)
{
    return (struct optimizer){
        .kind = kind,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .eps = 1e-6,
        .weight_decay = 0.01,
        .max_grad_norm = 1.0,
        .bias_correction = true,
    };
}

const char *optimizer_name(enum optimizer_kind kind)
{
    return kind == OPTIMIZER_LAMB ? "lamb" : "adamw";
}

struct optim_span *optimizer_spans(const struct optimizer *o, const struct param_table *table)
{
    struct optim_span *spans = malloc((size_t)table->n * sizeof *spans);
    for (int i = 0; spans != NULL && i < table->n; i++) {
        const struct param *p = &table->params[i];
        spans[i] = (struct optim_span){p->offset, param_count(p), p->decay ? o->weight_decay : 0.0};
    }
    return spans;
}

void optimizer_scalars(const struct optimizer *o, double lr, int64_t t, double grad_scale,
                       double scalars[OPTIM_N_SCALARS])
{
    scalars[OPTIM_LR] = lr;
    scalars[OPTIM_BETA1] = o->beta1;
    scalars[OPTIM_BETA2] = o->beta2;
    scalars[OPTIM_EPS] = o->eps;
    scalars[OPTIM_CORRECTION1] = o->bias_correction ? 1 - pow(o->beta1, (double)t) : 1;
    scalars[OPTIM_CORRECTION2] = o->bias_correction ? 1 - pow(o->beta2, (double)t) : 1;
    scalars[OPTIM_MAX_NORM] = o->max_grad_norm;
    scalars[OPTIM_GRAD_SCALE] = grad_scale;
}

void optimizer_update(struct exec *x, const struct optimizer *o, struct optim_buffers b,
                      const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars)
{
    if (o->kind == OPTIMIZER_LAMB) {
        x->ops->lamb(x, b, spans, n_spans, norm, scalars);
    } else {
        x->ops->adamw(x, b, spans, n_spans, norm, scalars);
    }
}
