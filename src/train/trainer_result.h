/* trainer_result: the numbers that a step or an evaluation leaves: the model's sums over labels, and the norm
 * of the gradients.
 *
 * It is read from the device once, at the end of a step.  Sums and counts are those of all ranks; a rank's
 * own are never reported. */
#ifndef KILN_TRAIN_TRAINER_RESULT_H
#define KILN_TRAIN_TRAINER_RESULT_H

#include "nn/model.h"

struct trainer_result {
    int n_sums;
    struct trainer_sum {
        const struct model_sum *of;
        double sum;
        int64_t count;       /* labels in the sum */
    } sums[MODEL_MOST_SUMS]; /* [n_sums] sums in the order of the model's */
    double grad_norm;        /* norm before clipping, without the loss scale; steps only */
    int64_t n_zeros;         /* zeros among the elements of the gradients; 0 unless they are counted */
    /* norm of all weights that are not frozen, after the update; 0 unless measured */
    double weight_norm;
    double loss_scale; /* used in this step; 1 except in fp16 */
    int64_t skipped;   /* 1: something was not finite at this scale, so nothing was updated */
    bool abandoned; /* the step ended before its last micro-batch: nothing was updated, no sum is complete */
};

/* The mean of a sum over its labels, 0 without labels. */
double trainer_sum_mean(const struct trainer_sum *sum);

/* The name of a sum for people: "answer loss". */
struct trainer_sum_words {
    char text[48];
} trainer_sum_words(const struct trainer_sum *sum);

/* The minimised loss: the sum of the means of all losses. */
double trainer_result_loss(const struct trainer_result *r);

#endif
