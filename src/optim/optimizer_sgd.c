/* Gradient descent with momentum, as torch.optim.SGD has it:
 *
 *     g = g + wd w;   v = mu v + g;   w = w - lr v
 *
 * which is AdamW's op: its first moment is m = (1 - mu) v, so the rate is lr / (1 - mu); its second has a
 * decay of 1, so it stays 0, and an eps of 1 divides by 1.  mu is optimizer.beta1. */
#include "optim/optimizer.h"

static void apply(struct exec *x, const struct optimizer_step *s)
{
    x->ops->adamw(x, s->buffers, s->spans, s->n_spans, s->norm, s->scalars);
}

const struct optimizer_kind optimizer_sgd = {
    .name = "sgd",
    .couples_decay = true,
    .sums_gradients = true,
    .apply = apply,
};
