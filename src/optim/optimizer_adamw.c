/* AdamW, and Adam as torch has it: no norm but that of all gradients, so its update is one op (docs/math/optimizers.md). */
#include "optim/optimizer.h"

static void apply(struct exec *x, const struct optimizer_step *s)
{
    x->ops->adamw(x, s->buffers, s->spans, s->n_spans, s->norm, s->scalars);
}

const struct optimizer_kind optimizer_adamw = {
    .name = "adamw",
    .apply = apply,
};

const struct optimizer_kind optimizer_adam = {
    .name = "adam",
    .couples_decay = true,
    .corrects_eps = true,
    .apply = apply,
};
