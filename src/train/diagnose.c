#include "train/diagnose.h"

#include "pass/culprit.h"

#include <stdio.h>

/* The gradients of all shards, a bucket at a time, through the bucket's room: from the input layer up, as
 * they are in one buffer. */
static void look_at_shards(struct culprit *culprit, struct trainer *t)
{
    struct update *u = &t->update;
    for (int i = t->rooms.n_rooms - 1; i >= 0; i--) {
        const struct gradient_room *room = &t->rooms.rooms[i];
        struct param_table params = {.params = t->rooms.places.params + room->first_param,
                                     .n = (int)room->n_params};
        tensor all = gradient_rooms_view(&t->rooms, i), own, part;
        if (gradient_rooms_cut(&t->rooms, i, u, t->grad, &own, &part)) {
            t->net.x.ops->cast(&t->net.x, part, own); /* a copy */
        }
        comm_all_gather(&t->mesh.data, &t->net.x, all, u->cut);
        culprit_look_at_params(culprit, &params, t->rooms.flat, "gradient of");
    }
}

struct status diagnose_nonfinite(struct trainer *t, int64_t step, const struct trainer_result *r)
{
    struct culprit culprit = culprit_find(&t->net, t->config.net.learns);
    char losses[200] = "";
    size_t used = 0;
    if (trainer_shares_gradients(t)) {
        look_at_shards(&culprit, t);
        TRY(t->net.x.status);
    } else {
        culprit_look_at_params(&culprit, &t->net.params, t->grad, "gradient of");
    }
    for (int i = 0; i < r->n_sums && used < sizeof losses; i++) {
        if (r->sums[i].of->is_loss) {
            used += (size_t)snprintf(losses + used, sizeof losses - used, "%s %g, ", r->sums[i].of->text,
                                     trainer_sum_mean(&r->sums[i]));
        }
    }
    return status_error(
        STATUS_NUMERIC,
        "step %lld: %sgradient norm %g; the first tensor that is not finite is the %s (element %lld); the "
        "last checkpoint is intact: lower the learning rate or lengthen the warm-up",
        (long long)step, losses, r->grad_norm, culprit.index < 0 ? "loss alone" : culprit.name,
        (long long)culprit.index);
}
