/* optimizer: which update, with which constants, on which groups.  An optimizer is a row, struct optimizer_kind, in a file of
 * its own; the arithmetic is in the ops that it gives.  docs/howto/add_an_optimizer.md. */
#ifndef KILN_OPTIM_OPTIMIZER_H
#define KILN_OPTIM_OPTIMIZER_H

#include "core/param_shard.h"
#include "ops/ops.h"

/* What an update is made of.  Buffers and spans are those of the elements that are updated here: all, or a rank's share. */
struct optimizer_step {
    struct optim_buffers buffers;
    const struct optim_span *spans;
    int64_t n_spans;
    tensor squares; /* f64 [all chunks] of the gradients, of every rank */
    tensor sums; /* f64 [all chunks, n_sums] of what `direction` leaves, at least for the chunks of the spans'
                  * whole parameters, whichever rank has them; null if n_sums is 0 */
    tensor own_sums; /* [chunks of the spans, n_sums], the part of it that is written here */
    tensor norm;     /* f64 [n]: the first is the norm of all gradients, then whatever else must be finite */
    tensor scalars;  /* f64 [OPTIM_N_SCALARS] */
};

struct optimizer_kind {
    const char *name; /* of --optimizer, and in checkpoints */

    /* For norms of whole parameters, beside that of their gradients: so many sums of each chunk, in fp64, which `direction`
     * leaves, and which ranks that share a parameter exchange before `apply`.  0: there are none, and no `direction`. */
    int n_sums;

    bool couples_decay;          /* it is added to the gradient (L2), not taken from the weight */
    bool corrects_eps;           /* eps is added to the corrected root of the second moment, in `adamw` too */
    bool ratio_of_all;           /* trust ratios are of parameters without decay, too */
    double min_ratio, max_ratio; /* their bounds; 0: none */

    /* Both put ops in order, which write nothing where one of `norm` is not finite. */
    void (*direction)(struct exec *x, const struct optimizer_step *s);
    void (*apply)(struct exec *x, const struct optimizer_step *s);
};

extern const struct optimizer_kind optimizer_lamb, optimizer_nvlamb_exp, optimizer_lans, optimizer_adam,
    optimizer_adamw;

/* The rows, as the flag --optimizer lists them. */
#define OPTIMIZER_NAMES "lamb|nvlamb_exp|lans|adam|adamw"

/* NULL: there is none of this name. */
const struct optimizer_kind *optimizer_find(const char *name);

struct optimizer {
    const struct optimizer_kind *kind;
    double beta1, beta2, eps;
    double weight_decay;  /* of parameters declared with decay; biases and LayerNorms have none */
    double max_grad_norm; /* 0: no clipping */
    bool bias_correction;
    bool
        corrects_steps; /* bias correction multiplies whole steps, those of the decay among them, not the moments */
};

/* The constants of the replaced scripts: betas 0.9 and 0.999, eps 1e-6, decay 0.01, clip at norm 1, bias
 * correction. */
struct optimizer optimizer_defaults(const struct optimizer_kind *kind);

/* One span for each parameter of the table that has elements in the shard, in its order; offsets count from the beginning of
 * the shard.  free() them.  NULL without memory. */
struct optim_span *optimizer_spans(const struct optimizer *o, const struct param_table *table,
                                   struct param_shard shard, int64_t *n_spans);

/* The scalars of update t (1 for the first) at this learning rate, of gradients that want to be multiplied by
 * grad_scale. */
void optimizer_scalars(const struct optimizer *o, double lr, int64_t t, double grad_scale,
                       double scalars[OPTIM_N_SCALARS]);

#endif
