#include "train/trainer_result.h"

#include "pass/culprit.h"
#include "train/trainer_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double trainer_sum_mean(const struct trainer_sum *sum)
{
    return sum->count > 0 ? sum->sum * (1.0 / (double)sum->count) : 0;
}

struct trainer_sum_words trainer_sum_words(const struct trainer_sum *sum)
{
    struct trainer_sum_words words;
    snprintf(words.text, sizeof words.text, "%s", sum->of->name);
    for (char *at = words.text; *at != '\0'; at++) {
        *at = (char)(*at == '_' ? ' ' : *at);
    }
    return words;
}

double trainer_result_loss(const struct trainer_result *r)
{
    double loss = 0;
    for (int i = 0; i < r->n_sums; i++) {
        loss += r->sums[i].of->is_loss ? trainer_sum_mean(&r->sums[i]) : 0;
    }
    return loss;
}

struct status trainer_read_results(struct trainer *t, const struct batch_step *batch,
                                   struct trainer_result *r)
{
    const struct model *m = t->config.net.model;
    double results[TRAINER_N_RESULTS] = {0}, zeros;
    exec_copy_out(&t->net.x, results, t->results.data, sizeof results);
    zeros = results[TRAINER_ZEROS] * results[TRAINER_ZEROS];
    *r = (struct trainer_result){.n_sums = m->n_sums,
                                 .grad_norm = results[TRAINER_NORM] / t->loss_scale.value,
                                 .n_zeros = llround(zeros),
                                 .weight_norm = results[TRAINER_WEIGHT_NORM],
                                 .loss_scale = t->loss_scale.value};
    for (int i = 0; i < m->n_sums; i++) {
        r->sums[i] =
            (struct trainer_sum){&m->sums[i], results[TRAINER_SUMS + i], batch->n_labels[m->sums[i].labels]};
    }
    return t->net.x.status;
}

/* Looks at the gradients of all shards, a bucket at a time, through the bucket's room: from the input layer
 * up, as they are in one buffer. */
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

struct status trainer_name_nonfinite(struct trainer *t, int64_t step, const struct trainer_result *r)
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
