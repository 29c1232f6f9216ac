/* pair_step: the first half of a step on pairs of texts whose loss is over all pairs of the global batch.
 *
 * The rule: the vectors of all micro-batches are computed first, with the dropout of the step, and shared
 * by all ranks; each computes the loss and the gradients of the vectors (task/pair_loss.h) and lays those
 * of its own sequences into its micro-batches (nn/vector_head.h), which the step then computes again.  So
 * the gradients are those of one large batch, whatever micro-batches and ranks it is cut into.  Source: Gao
 * et al. 2021 (arXiv:2101.06983). */
#ifndef KILN_TASK_PAIR_STEP_H
#define KILN_TASK_PAIR_STEP_H

#include "data/example_source.h"
#include "dist/comm.h"
#include "serve/sentence_model.h"
#include "train/trainer.h"

struct pair_step {
    double scale;                  /* factor of the cosines in the loss */
    bool is_scored;                /* CoSENT, else in-batch negatives */
    enum sentence_pooling pooling; /* SENTENCE_MEAN or SENTENCE_CLS */
    double loss;                   /* loss of the last step's global batch */
};

/* Pairs as examples of training: text 2 i and 2 i + 1 of `texts` are pair i, and scores [n / 2] what CoSENT
 * compares; NULL: none.  Borrowed. */
struct pair_source {
    const struct encoded_texts *texts;
    const float *scores;
};
struct example_source pair_step_source(const struct pair_source *s);

/* Fills the gradients of step `step` into this rank's part of a batch from pair_step_source, in which the
 * global batch has at most n_pairs; all ranks call it.  STATUS_NUMERIC: a vector is not finite. */
struct status pair_step_prepare(struct pair_step *p, struct trainer *t, struct batch_step *batch,
                                int64_t step, const struct comm *world, int64_t n_pairs);

/* v [width] = the vector of the rows [n, width] of a sequence. */
void pair_step_pool(float *v, tensor rows, enum sentence_pooling pooling);

#endif
