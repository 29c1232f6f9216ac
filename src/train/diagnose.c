#include "train/diagnose.h"

#include "pass/culprit.h"

#include <stdio.h>

struct status diagnose_nonfinite(struct trainer *t, int64_t step, const struct trainer_result *r)
{
    struct culprit c = culprit_find(&t->net, t->config.training);
    char losses[200] = "";
    size_t used = 0;
    culprit_look_at_params(&c, &t->net.params, t->grad, "gradient of");
    for (int i = 0; i < r->n_sums && used < sizeof losses; i++) {
        if (r->sums[i].of->is_loss) {
            used += (size_t)snprintf(losses + used, sizeof losses - used, "%s %g, ", r->sums[i].of->text,
                                     trainer_sum_mean(&r->sums[i]));
        }
    }
    return status_error(
        STATUS_NUMERIC,
        "step %lld: %sgradient norm %g; the first tensor that is not "
        "finite is the %s (element %lld); the last checkpoint is intact: lower the learning rate or lengthen "
        "the warm-up",
        (long long)step, losses, r->grad_norm, c.index < 0 ? "loss alone" : c.name, (long long)c.index);
}
