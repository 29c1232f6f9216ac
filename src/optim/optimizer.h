/* optimizer: which update, with which constants, on which groups.  The arithmetic is in the ops lamb and
 * adamw. */
#ifndef KILN_OPTIM_OPTIMIZER_H
#define KILN_OPTIM_OPTIMIZER_H

#include "core/param.h"
#include "ops/ops.h"

enum optimizer_kind { OPTIMIZER_LAMB, OPTIMIZER_ADAMW };

struct optimizer {
    enum optimizer_kind kind;
    double beta1, beta2, eps;
    double weight_decay;  /* of parameters declared with decay; biases and LayerNorms have none */
    double max_grad_norm; /* 0: no clipping */
    bool bias_correction;
};

/* The constants of the replaced scripts: betas 0.9 and 0.999, eps 1e-6, decay 0.01, clip at norm 1, bias
 * correction. */
struct optimizer optimizer_defaults(enum optimizer_kind kind);

/* "lamb" or "adamw". */
const char *optimizer_name(enum optimizer_kind kind);

/* One span per parameter of the table, in its order; free() them.  NULL without memory. */
struct optim_span *optimizer_spans(const struct optimizer *o, const struct param_table *table);

/* The scalars of update t (1 for the first) at this learning rate, of gradients that want to be multiplied by
 * grad_scale. */
void optimizer_scalars(const struct optimizer *o, double lr, int64_t t, double grad_scale,
                       double scalars[OPTIM_N_SCALARS]);

/* Clips and updates: b.grad in, b.master and b.working out; the first of norm f64 [n] is the global norm of
 * b.grad.  Nothing is written where one of norm is not finite. */
void optimizer_update(struct exec *x, const struct optimizer *o, struct optim_buffers b,
                      const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars);

#endif
