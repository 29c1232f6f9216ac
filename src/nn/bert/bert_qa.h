/* bert_qa: the question-answering head: where in the text an answer starts and ends.
 * Devlin et al. 2018 (arXiv:1810.04805) section 4.2. */
#ifndef KILN_NN_BERT_QA_H
#define KILN_NN_BERT_QA_H

#include "nn/layer.h"
#include "nn/weights.h"

struct bert_qa_weights {
    tensor w_qa, b_qa; /* [2, H], [2]: start, end */
};

extern const struct weight_row bert_qa_rows[]; /* under "qa_outputs." */
enum { BERT_QA_N_ROWS = sizeof(struct bert_qa_weights) / sizeof(tensor) };

struct bert_qa_acts {
    tensor logits;        /* [T, 2], in the dtype of vectors */
    tensor dlogits;       /* [T, 2] */
    tensor loss, correct; /* [B, 2] */
};

/* Carves the activations of one batch. */
void bert_qa_carve_acts(struct bert_qa_acts *a, struct arena *arena, enum dtype dtype, int64_t n_tokens,
                        int64_t n_sequences);

/* Computes a->logits from the last layer's output h [T, H]. */
void bert_qa_forward(struct exec *x, const struct bert_qa_acts *a, tensor h, const struct bert_qa_weights *w);

/* Adds the losses of start and end and the number of correct ones to `sums`, f64 [2], and computes
 * a->dlogits, times scale, f64 [1].  A sequence's softmax runs over its own tokens. */
void bert_qa_loss(struct exec *x, tensor sums, const struct bert_qa_acts *a, tensor scale,
                  const struct layer_call *call);

/* Assigns dh, the gradient of h.  The gradients of the weights are added to g; without `adds` the matrix's is
 * assigned. */
void bert_qa_backward(struct exec *x, tensor dh, const struct bert_qa_weights *g,
                      const struct bert_qa_acts *a, tensor h, const struct bert_qa_weights *w, bool adds);

#endif
