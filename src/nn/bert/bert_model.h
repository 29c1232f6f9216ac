/* bert_model: BERT, as the engine sees a model (nn/model.h): layers of one wiring, and the heads of a
 * task. */
#ifndef KILN_NN_BERT_MODEL_H
#define KILN_NN_BERT_MODEL_H

#include "nn/bert/bert.h"
#include "nn/text_batch_layout.h"
#include "nn/model.h"

struct bert_model {
    struct model model; /* first */
    struct bert_config config;
    struct layer_form form;
    enum model_task task;
    const struct bert_layer_wiring *wiring; /* post-LN or pre-LN, by the configuration */
};

/* The sums of MODEL_TASK_PRETRAINING; a task with one loss has the loss as sum 0 and its correct answers as
 * sum 1. */
enum bert_sum { BERT_MLM_LOSS, BERT_MLM_CORRECT, BERT_NSP_LOSS, BERT_NSP_CORRECT };

/* The model of a configuration, for a task; struct model is its first member. */
struct bert_model bert_model(const struct bert_config *config, enum model_task task);

/* Creates the model of bert_model on the heap; `config` is a struct bert_config, and model_type.destroy frees
 * the model.  STATUS_MEMORY. */
struct status bert_model_create(struct model **model, const void *config, enum model_task task);

/* model_type.visit and visit_gradients: the tensors of a pass that logs of tensors and the search for the
 * first tensor that is not finite see (bert_visit.c).  A tensor of selected rows (nn/row_picks.h) is visited
 * list by list: the name of the list, a field of the batch, follows the module's. */
void bert_visit(const struct model *m, const void *acts, int64_t layer, model_visitor *visitor,
                void *context);
void bert_visit_gradients(const struct model *m, const void *acts, int64_t layer, tensor dx,
                          model_gradient_visitor *visitor, void *context);

#endif
