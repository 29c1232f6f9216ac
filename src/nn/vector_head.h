/* vector_head: a head whose loss its caller computes, such as one over the vectors of all sequences of a
 * batch: the gradient of the last layer's output comes with the batch.
 *
 * The batch's field TEXT_CLASS_LABELS holds -g / 2 * n for each token, [H], where g is the gradient and n the
 * labels in that field of the complete global batch: the gradient of the mean of the squares of (0 - target)
 * is then g.  So losses are scaled, and gradients of micro-batches and ranks added, as those of other heads.
 * Source: Gao et al. 2021 (arXiv:2101.06983), the gradient cache. */
#ifndef KILN_NN_VECTOR_HEAD_H
#define KILN_NN_VECTOR_HEAD_H

#include "core/arena.h"
#include "nn/model.h"

struct vector_head_acts {
    tensor zero, loss, correct; /* [T, H] */
};

/* Gives a model of MODEL_TASK_ENCODER this head.  STATUS_USAGE: its family has none. */
struct status vector_head_add(struct model *m);
bool vector_head_is_of(const struct model *m);

/* Carves the activations of one batch of n_tokens tokens. */
void vector_head_carve(struct vector_head_acts *a, struct arena *arena, const struct model *m,
                       enum dtype dtype, int64_t n_tokens);

/* Sets dx, the gradient of the last layer's output. */
void vector_head_learn(const struct model_pass *p, tensor dx, const struct vector_head_acts *a);

#endif
