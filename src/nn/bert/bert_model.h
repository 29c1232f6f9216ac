/* bert_model: BERT, as the engine sees a model (nn/model.h): layers of one wiring, and the heads of a
 * task. */
#ifndef KILN_NN_BERT_MODEL_H
#define KILN_NN_BERT_MODEL_H

#include "nn/answer_head.h"
#include "nn/bert/bert_heads.h"
#include "nn/block_model.h"
#include "nn/label_head.h"
#include "nn/text_batch_layout.h"
#include "nn/vector_head.h"

/* Weights of all parts, or their gradients: views into flat buffers.  Heads that the task lacks are null
 * tensors. */
struct bert_weights {
    struct block_weight_table table; /* first */
    struct bert_embed_weights embed;
    struct bert_head_weights heads;
    struct answer_head_weights qa;
    struct label_head_weights classifier;
};

struct bert_model {
    struct block_model blocks; /* first; block_post, or block_post_sums by the configuration */
    struct bert_config config;
};

/* The sums of MODEL_TASK_PRETRAINING; a task with one loss has the loss as sum 0 and its correct answers as
 * sum 1. */
enum bert_sum { BERT_MLM_LOSS, BERT_MLM_CORRECT, BERT_NSP_LOSS, BERT_NSP_CORRECT };

/* The model of a configuration, for a task; struct model is its first member. */
struct bert_model bert_model(const struct bert_config *config, enum model_task task);

/* Creates the model of bert_model on the heap; `config` is a struct bert_config, and the caller frees
 * the model.  STATUS_MEMORY. */
struct status bert_model_create(struct model **model, const void *config, enum model_task task);

/* model_type.visit and visit_gradients: the tensors of a pass that logs of tensors and the search for the
 * first tensor that is not finite see (bert_visit.c).  A tensor of selected rows (nn/row_picks.h) is visited
 * list by list: the name of the list, a field of the batch, follows the module's. */
void bert_visit(const struct model *m, const void *acts, int64_t layer, model_visitor *visitor,
                void *context);
void bert_visit_gradients(const struct model *m, const void *acts, int64_t layer, tensor dx,
                          model_gradient_visitor *visitor, void *context);

/* ---- the activations of a micro-batch, for nn/bert/bert_model.c and bert_visit.c ---- */

struct bert_acts {
    struct block_stack stack; /* first; picks: rows that the heads read, none without a backward */
    struct bert_embed_acts embed;
    struct bert_head_acts heads; /* activations of the task's heads: the others are null tensors */
    struct answer_head_acts qa;
    struct label_head_acts classifier;
    struct vector_head_acts vectors;
};

/* The unit of the classifier's rows: sequences or tokens. */
static inline enum batch_rows bert_acts_classified(enum model_task task)
{
    return task == MODEL_TASK_TOKEN_CLASSIFICATION ? BATCH_OF_TOKENS : BATCH_OF_SEQUENCES;
}

#endif
