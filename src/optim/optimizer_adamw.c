/* AdamW, and Adam as in PyTorch (docs/math/optimizers.md).  The only norm is that of all gradients, so an
 * update is one op. */
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
