/* optimizer: the rule of an update, its constants, and which parameters have weight decay.  Each rule is a
 * struct optimizer_kind in a file of its own, which calls the ops that do the arithmetic
 * (docs/howto/add_an_optimizer.md). */
#ifndef KILN_OPTIM_OPTIMIZER_H
#define KILN_OPTIM_OPTIMIZER_H

#include "core/param_shard.h"
#include "ops/ops.h"

/* The operands of an update.  Buffers and spans are those of the elements that this rank updates: all, or its
 * shard. */
struct optimizer_step {
    struct optim_buffers buffers;
    const struct optim_span *spans;
    int64_t n_spans;
    /* [n_spans] the same, with n_matrices matrices behind all others, if the kind takes them */
    const struct optim_span *parted;
    int64_t n_matrices;
    tensor scratch; /* u8 [scratch_bytes] */
    tensor squares; /* f64 [all chunks] sums of squares of the gradients, of all ranks */
    /* f64 [all chunks, n_sums] of what `direction` leaves, at least for the chunks of the spans' whole
     * parameters, whichever rank has them; null if n_sums is 0 */
    tensor sums;
    tensor own_sums; /* [chunks of the spans, n_sums] the rows of it that `direction` writes */
    tensor norm;     /* f64 [n] the norm of all gradients, then other numbers that must be finite */
    tensor scalars;  /* f64 [OPTIM_N_SCALARS] */
};

struct optimizer_kind {
    const char *name; /* a value of --optimizer; checkpoints have it too */

    /* The sums, in fp64, that `direction` computes for each chunk: for norms of whole parameters other than
     * those of their gradients.  Ranks that share a parameter exchange them before `apply`; matrices that are
     * taken whole have one rank.  0: there are none, and no `direction`. */
    int n_sums;

    bool couples_decay;          /* decay is added to the gradient (L2), not subtracted from the weight */
    bool corrects_eps;           /* the optimizer's default */
    bool ratio_of_all;           /* parameters without decay have trust ratios too */
    double min_ratio, max_ratio; /* bounds of trust ratios; 0: none */
    bool corrects_steps;         /* the optimizer's default */
    bool sums_gradients; /* `adamw` descends by a decaying sum of gradients; there is no second moment */

    bool takes_matrices; /* those of layers are updated as matrices: whole, and their spans have rows */

    /* Bytes that `apply` needs, with products in this dtype. NULL: none. */
    size_t (*scratch_bytes)(const struct optim_span *spans, int64_t n_spans, enum dtype dtype);

    /* Both queue ops, which write nothing if a number in `norm` is not finite. */
    void (*direction)(struct exec *x, const struct optimizer_step *s);
    void (*apply)(struct exec *x, const struct optimizer_step *s);
};

extern const struct optimizer_kind optimizer_lamb, optimizer_nvlamb_exp, optimizer_ds_fused_lamb,
    optimizer_lans, optimizer_adam, optimizer_adamw, optimizer_muon, optimizer_sgd;

/* The names of all kinds, as the help of --optimizer lists them. */
#define OPTIMIZER_NAMES "lamb|nvlamb_exp|ds_fused_lamb|lans|adam|adamw|muon|sgd"

/* The kind of this name; NULL: none. */
const struct optimizer_kind *optimizer_find(const char *name);

/* All names, those of the replaced scripts too, as the choices of a flag. */
#define OPTIMIZER_ALL_NAMES OPTIMIZER_NAMES "|nvlamb|fused_lamb|fused_adam|fused_adamw"

/* Finds kiln's name for `given`, which `where` says; a log line explains another name.  STATUS_UNAVAILABLE:
 * kiln does not have this optimizer yet; STATUS_USAGE: no optimizer has this name. */
struct status optimizer_find_by_any_name(const char **name, const char *given, const char *where);

struct optimizer {
    const struct optimizer_kind *kind;
    double beta1, beta2, eps;    /* beta1 of sgd is its momentum */
    double weight_decay;         /* decay of parameters declared with it; biases and LayerNorms have none */
    double max_grad_norm;        /* 0: no clipping */
    double min_ratio, max_ratio; /* the kind's, unless set */
    bool bias_correction;
    bool corrects_steps; /* bias correction multiplies the whole step, decay included, not the moments */
    bool corrects_eps;   /* `adamw` adds eps after the second moment's bias correction, not before */
};

/* The constants of the replaced scripts: betas 0.9 and 0.999, eps 1e-6, decay 0.01, clipping at norm 1, bias
 * correction. */
struct optimizer optimizer_defaults(const struct optimizer_kind *kind);

/* An optimizer of the kind with the given numbers; it corrects as the kind does, too, and has the kind's
 * ratios where max_ratio is 0. */
struct optimizer optimizer_with(const struct optimizer_kind *kind, struct optimizer given);

/* Marks the parameters that the optimizer updates as matrices as whole ones, before shards are cut.  Without
 * a kind there are none. */
void optimizer_keep_whole(const struct optimizer *o, struct param_table *table);

/* A span for each parameter that is not frozen and has elements in the shard, in the table's order; offsets
 * count from the shard's first element.  The caller frees them.  NULL: out of memory. */
struct optim_span *optimizer_spans(const struct optimizer *o, const struct param_table *table,
                                   struct param_shard shard, int64_t *n_spans);

/* A copy of the spans, with the n_matrices of them that have rows behind all others.  The caller frees it.
 * NULL: out of memory. */
struct optim_span *optimizer_part_spans(const struct optim_span *spans, int64_t n_spans, int64_t *n_matrices);

/* The scalars of update t, 1 for the first, at this learning rate.  Gradients are multiplied by
 * grad_scale. */
void optimizer_scalars(const struct optimizer *o, double lr, int64_t t, double grad_scale,
                       double scalars[OPTIM_N_SCALARS]);

#endif
