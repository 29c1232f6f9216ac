#include "train/trainer_result.h"

#include <string.h>

double trainer_sum_mean(const struct trainer_sum *sum)
{
    return sum->count > 0 ? sum->sum * (1.0 / (double)sum->count) : 0;
}

static int sum_named(const struct trainer_result *r, const char *name)
{
    int i = 0;
    while (i < r->n_sums && strcmp(r->sums[i].of->name, name) != 0) {
        i++;
    }
    return i;
}

bool trainer_result_has(const struct trainer_result *r, const char *name)
{
    return sum_named(r, name) < r->n_sums;
}

double trainer_result_mean(const struct trainer_result *r, const char *name)
{
    int i = sum_named(r, name);
    CHECK(i < r->n_sums, "a step has no sum named %s", name);
    return trainer_sum_mean(&r->sums[i]);
}

double trainer_result_loss(const struct trainer_result *r)
{
    double loss = 0;
    for (int i = 0; i < r->n_sums; i++) {
        loss += r->sums[i].of->is_loss ? trainer_sum_mean(&r->sums[i]) : 0;
    }
    return loss;
}
