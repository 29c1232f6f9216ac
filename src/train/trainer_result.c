#include "train/trainer_result.h"

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
