/* label_head: a score of each label, for rows r of texts or of tokens:
 *
 *     logits = dropout(r) W^T + b
 *
 * Devlin et al. 2018 (arXiv:1810.04805) section 4. */
#ifndef KILN_NN_LABEL_HEAD_H
#define KILN_NN_LABEL_HEAD_H

#include "core/arena.h"
#include "nn/head_rows.h"
#include "nn/model.h"
#include "nn/weights.h"

struct label_head_weights {
    tensor w_cls, b_cls; /* [C, H], [C] */
};

extern const struct weight_row label_head_rows[]; /* "weight" and "bias" */
enum { LABEL_HEAD_N_ROWS = sizeof(struct label_head_weights) / sizeof(tensor) };

/* R rows, C scores. */
struct label_head_acts {
    tensor dropped;       /* [R, H]; later its gradient */
    tensor logits;        /* [R, C], in the dtype of vectors */
    tensor dlogits;       /* [R, C] */
    tensor loss, correct; /* [R], or [R, C] if each score has a target */
};

/* The field of labels of a batch, one for each of `rows`. */
struct batch_field label_head_field(const struct model_labels *labels, enum batch_rows rows);

/* Carves the activations of one batch of n_rows rows. */
void label_head_carve(struct label_head_acts *a, struct arena *arena, const struct model *m, enum dtype dtype,
                      int64_t n_rows);

/* Computes a->logits from rows [R, H]. */
void label_head_forward(struct exec *x, const struct label_head_acts *a, const struct head_rows *in,
                        const struct label_head_weights *w);

/* Adds the loss and the number of correct answers to `sums`, f64 [2], and computes a->dlogits, times scale,
 * f64 [1]. labels are classes [R], or for other problem types targets [R, C]. */
void label_head_loss(struct exec *x, tensor sums, const struct label_head_acts *a, tensor labels,
                     tensor scale, const struct model_labels *of);

/* Assigns drows, the gradient of the rows, and adds the gradients of the weights to g. */
void label_head_backward(struct exec *x, tensor drows, const struct label_head_weights *g,
                         const struct label_head_acts *a, const struct head_rows *in,
                         const struct label_head_weights *w, bool adds);

#endif
