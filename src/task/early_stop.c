#include "task/early_stop.h"

#include <math.h>

bool early_stop_take(struct early_stop_state *s, const struct early_stop_options *o, int64_t step,
                     double loss)
{
    if (o->patience == 0) {
        return false;
    }
    bool first = s->best_step == 0 && isfinite(loss);
    bool improved = first || (s->best_step > 0 && loss < s->best_loss - o->delta);
    bool best = first || (s->best_step > 0 && loss < s->best_loss);
    s->n_worse = improved ? 0 : s->n_worse + 1;
    if (best) {
        s->best_loss = loss;
        s->best_step = step;
    }
    return best;
}

bool early_stop_is_over(const struct early_stop_state *s, const struct early_stop_options *o)
{
    return o->patience > 0 && s->n_worse >= o->patience;
}
