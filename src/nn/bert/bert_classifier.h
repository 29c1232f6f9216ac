/* bert_classifier: a head that gives each row its scores.  A row is the pooled [CLS] of a text, or the hidden
 * state of a token.  Devlin et al. 2018 (arXiv:1810.04805) sections 4.1 and 5.3; the dropout before it is
 * that of Hugging Face's BertForSequenceClassification and BertForTokenClassification. */
#ifndef KILN_NN_BERT_CLASSIFIER_H
#define KILN_NN_BERT_CLASSIFIER_H

#include "nn/bert/bert_config.h"
#include "nn/layer.h"
#include "nn/weights.h"

struct bert_classifier_weights {
    tensor w_cls, b_cls; /* [C, H], [C] */
};

extern const struct weight_row bert_classifier_rows[]; /* under "classifier." */
enum { BERT_CLASSIFIER_N_ROWS = sizeof(struct bert_classifier_weights) / sizeof(tensor) };

/* R rows, C scores. */
struct bert_classifier_acts {
    tensor dropped;       /* [R, H]; later its gradient */
    tensor logits;        /* [R, C], in the dtype of vectors */
    tensor dlogits;       /* [R, C] */
    tensor loss, correct; /* [R], or [R, C] if each score has a target */
};

/* Carves the activations of one batch. */
void bert_classifier_carve_acts(struct bert_classifier_acts *a, struct arena *arena,
                                const struct bert_config *c, enum dtype dtype, int64_t n_rows);

/* Computes a->logits from rows [R, H], whose dropout addresses are row_keys [R, 2]. */
void bert_classifier_forward(struct exec *x, const struct bert_classifier_acts *a, tensor rows,
                             tensor row_keys, const struct bert_classifier_weights *w,
                             const struct bert_config *c, const struct layer_call *call);

/* Adds the loss and the number of correct answers to `sums`, f64 [2], and computes a->dlogits, times scale,
 * f64 [1]. labels are classes [R], or for the config's other problem types targets [R, C]. */
void bert_classifier_loss(struct exec *x, tensor sums, const struct bert_classifier_acts *a, tensor labels,
                          tensor scale, const struct bert_config *c);

/* Assigns drows, the gradient of the rows, and adds the gradients of the weights to g. */
void bert_classifier_backward(struct exec *x, tensor drows, const struct bert_classifier_weights *g,
                              const struct bert_classifier_acts *a, tensor row_keys,
                              const struct bert_classifier_weights *w, const struct bert_config *c,
                              const struct layer_call *call);

#endif
