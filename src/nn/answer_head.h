/* answer_head: where in a text an answer starts and ends (Devlin et al. 2018, arXiv:1810.04805, section
 * 4.2), of rows h, one a token:
 *
 *     [start end] logits = dropout(h) W_qa^T + b_qa; a softmax over the tokens of each sequence for either */
#ifndef KILN_NN_ANSWER_HEAD_H
#define KILN_NN_ANSWER_HEAD_H

#include "core/arena.h"
#include "nn/head_rows.h"
#include "nn/model.h"
#include "nn/weights.h"

struct answer_head_weights {
    tensor w_qa, b_qa; /* [2, H], [2]: start, end */
};

extern const struct weight_row answer_head_rows[]; /* "weight" and "bias" */
enum { ANSWER_HEAD_N_ROWS = sizeof(struct answer_head_weights) / sizeof(tensor) };

struct answer_head_acts {
    tensor dropped;       /* [T, H]; null without a dropout, or a backward */
    tensor logits;        /* [T, 2], in the dtype of vectors */
    tensor dlogits;       /* [T, 2] */
    tensor loss, correct; /* [B, 2] */
};

/* Carves the activations of one batch of a model of this hidden size; drops: there is a dropout in front. */
void answer_head_carve(struct answer_head_acts *a, struct arena *arena, struct model_memory memory,
                       int64_t hidden, bool drops, const struct batch *sizes);

/* Computes a->logits from the last layer's output, `in` [T, H]. */
void answer_head_forward(struct exec *x, const struct answer_head_acts *a, const struct head_rows *in,
                         const struct answer_head_weights *w);

/* Adds the losses of start and end and the number of correct ones to `sums`, f64 [2], and computes
 * a->dlogits, times scale, f64 [1].  A sequence's softmax runs over its own tokens. */
void answer_head_loss(struct exec *x, tensor sums, const struct answer_head_acts *a, tensor scale,
                      const struct layer_call *call);

/* Assigns dh, the gradient of the rows.  The gradients of the weights are added to g; without `adds` the
 * matrix's is assigned. */
void answer_head_backward(struct exec *x, tensor dh, const struct answer_head_weights *g,
                          const struct answer_head_acts *a, const struct head_rows *in,
                          const struct answer_head_weights *w, bool adds);

#endif
