#include "train/loss_scale.h"

struct loss_scale loss_scale_of(double fixed, double first)
{
    return (struct loss_scale){.value = fixed > 0 ? fixed : first, .dynamic = !(fixed > 0)};
}

void loss_scale_raise(struct loss_scale *s)
{
    if (!s->dynamic || ++s->n_good < LOSS_SCALE_WINDOW) {
        return;
    }
    s->n_good = 0;
    if (2 * s->value <= LOSS_SCALE_MOST) {
        s->value *= 2;
    }
}

bool loss_scale_lower(struct loss_scale *s)
{
    if (!s->dynamic || s->value / 2 < LOSS_SCALE_LEAST) {
        return false;
    }
    s->value /= 2;
    s->n_good = 0;
    return true;
}
