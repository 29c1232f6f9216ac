/* LAMB: the step of a parameter is proportional to its norm (docs/math/optimizers.md).  So the norms of
 * weights and directions are computed between the two halves of the update. */
#include "optim/optimizer.h"

static void direction(struct exec *x, const struct optimizer_step *s)
{
    x->ops->lamb_direction(x, s->own_sums, s->buffers, s->spans, s->n_spans, s->norm, s->scalars);
}

static void apply(struct exec *x, const struct optimizer_step *s)
{
    x->ops->lamb_apply(x, s->buffers, s->spans, s->n_spans, s->sums, s->norm, s->scalars);
}

const struct optimizer_kind optimizer_lamb = {
    .name = "lamb",
    .n_sums = 2,
    .direction = direction,
    .apply = apply,
};

/* The experimental LAMB of the replaced DeepSpeed script: all parameters have trust ratios, and these are
 * bounded. */
const struct optimizer_kind optimizer_nvlamb_exp = {
    .name = "nvlamb_exp",
    .n_sums = 2,
    .ratio_of_all = true,
    .min_ratio = 0.01,
    .max_ratio = 10,
    .direction = direction,
    .apply = apply,
};

/* DeepSpeed's own, its "Lamb": the same with bias correction of whole steps.  Source:
 * csrc/lamb/fused_lamb_cuda_kernel.cu. */
const struct optimizer_kind optimizer_ds_fused_lamb = {
    .name = "ds_fused_lamb",
    .n_sums = 2,
    .ratio_of_all = true,
    .min_ratio = 0.01,
    .max_ratio = 10,
    .corrects_steps = true,
    .direction = direction,
    .apply = apply,
};
