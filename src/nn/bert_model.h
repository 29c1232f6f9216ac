/* bert_model: BERT, as the engine sees a model (nn/model.h): layers of one wiring, and the heads of a task. */
#ifndef KILN_NN_BERT_MODEL_H
#define KILN_NN_BERT_MODEL_H

#include "nn/bert.h"
#include "nn/bert_batch_layout.h"
#include "nn/model.h"

struct bert_model {
    struct model model; /* first */
    struct bert_config config;
    struct layer_form form;
    enum bert_task task;
    const struct bert_layer_wiring *wiring; /* as the configuration says */
};

/* The outputs of head_output; null tensors if the task has no such head. */
enum bert_output {
    BERT_MLM_LOGITS,    /* [M, V] */
    BERT_NSP_LOGITS,    /* [B, 2] */
    BERT_SPAN_LOGITS,   /* [T, 2] */
    BERT_POOLED,        /* [B, H] */
    BERT_CLASS_LOGITS,  /* [B, C], or [T, C] for tokens */
    BERT_MASKED_LOSSES, /* [M] room for cross_entropy's loss and correct over the MLM logits */
    BERT_MASKED_CORRECT,
};

/* The sums of BERT_TASK_PRETRAINING; a task with one loss has the loss as sum 0 and its correct answers as
 * sum 1. */
enum bert_sum { BERT_MLM_LOSS, BERT_MLM_CORRECT, BERT_NSP_LOSS, BERT_NSP_CORRECT };

struct bert_model bert_model(const struct bert_config *config, enum bert_task task);

#endif
