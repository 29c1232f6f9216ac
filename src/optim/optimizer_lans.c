/* LANS: the gradient of each parameter is normalised, and a step is the sum of two directions, each with its
 * own trust ratio (docs/math/optimizers.md). */
#include "optim/optimizer.h"

static void direction(struct exec *x, const struct optimizer_step *s)
{
    x->ops->lans_direction(x, s->own_sums, s->buffers, s->spans, s->n_spans, s->squares, s->norm, s->scalars);
}

static void apply(struct exec *x, const struct optimizer_step *s)
{
    x->ops->lans_apply(x, s->buffers, s->spans, s->n_spans, s->sums, s->norm, s->scalars);
}

const struct optimizer_kind optimizer_lans = {
    .name = "lans",
    .n_sums = 3,
    .ratio_of_all = true,
    .direction = direction,
    .apply = apply,
};
