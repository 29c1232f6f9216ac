/* bert_visit: what BERT shows of a pass to those who look: logs of tensors, the search for what is not
 * finite. */
#ifndef KILN_NN_BERT_VISIT_H
#define KILN_NN_BERT_VISIT_H

#include "nn/model.h"

/* model_type.visit and visit_gradients.  A tensor of picked rows (nn/row_picks.h) is visited list by list:
 * the name of the list, a field of the batch, follows the module's. */
void bert_visit(const struct model *m, const void *acts, int64_t layer, model_visitor *visitor,
                void *context);
void bert_visit_gradients(const struct model *m, const void *acts, int64_t layer, tensor dx,
                          model_gradient_visitor *visitor, void *context);

#endif
