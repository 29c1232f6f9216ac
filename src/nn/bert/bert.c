#include "nn/bert/bert_model.h"

#include <stdio.h>
#include <stdlib.h>

static struct weight_sizes sizes_of(const struct bert_config *c)
{
    struct weight_sizes s = {
        .real =
            {
                [DIM_ONE] = 1,
                [DIM_BIAS] = 1,
                [DIM_HIDDEN] = c->hidden_size,
                [DIM_FEED_FORWARD] = c->intermediate_size,
                [DIM_VOCAB] = c->vocab_size,
                [DIM_POSITIONS] = c->max_position_embeddings,
                [DIM_TYPES] = c->type_vocab_size,
                [DIM_TWO] = 2,
                [DIM_LABELS] = c->labels.n,
            },
        .initializer_range = c->initializer_range,
        .sinusoidal_positions = c->sinusoidal_positions,
    };
    for (int d = 0; d < DIM_COUNT; d++) {
        s.padded[d] = s.real[d];
    }
    s.padded[DIM_VOCAB] = bert_config_padded_vocab(c);
    return s;
}

const char *bert_task_class(enum model_task task)
{
    switch (task) {
    case MODEL_TASK_PRETRAINING: return "BertForPreTraining";
    case MODEL_TASK_MASKED_LM: return "BertForMaskedLM";
    case MODEL_TASK_CAUSAL_LM: break; /* no task of BERT's */
    case MODEL_TASK_QUESTION_ANSWERING: return "BertForQuestionAnswering";
    case MODEL_TASK_ENCODER: return "BertModel";
    case MODEL_TASK_SEQUENCE_CLASSIFICATION: return "BertForSequenceClassification";
    case MODEL_TASK_TOKEN_CLASSIFICATION: return "BertForTokenClassification";
    }
    return NULL;
}

/* A part of the model: its weights, their rows, the prefix of their names, and the number of their layer. */
typedef void visit_part(void *context, void *part, const char *prefix, int64_t layer,
                        const struct weight_row *rows, int n_rows);

static void for_each_part(const struct bert_config *c, enum model_task task, struct bert_weights *w,
                          visit_part *visit, void *context)
{
    int64_t heads = c->num_hidden_layers;
    visit(context, &w->embed, "bert.embeddings.", MODEL_INPUT_LAYER, bert_embed_rows, BERT_EMBED_N_ROWS);
    for (int64_t i = 0; i < c->num_hidden_layers; i++) {
        char prefix[48];
        snprintf(prefix, sizeof prefix, "bert.encoder.layer.%lld.",
                 (long long)bert_config_layer_number(c, i));
        visit(context, w->layers == NULL ? NULL : &w->layers[i], prefix, i, bert_layer_rows,
              BERT_LAYER_N_ROWS);
    }
    if (model_task_has(task, MODEL_POOLED)) {
        visit(context, &w->heads, "bert.pooler.", heads, bert_pooler_rows, BERT_POOLER_N_ROWS);
    }
    if (model_task_has(task, MODEL_WORD_LOGITS)) {
        visit(context, &w->heads, "cls.predictions.", heads, bert_mlm_rows, BERT_MLM_N_ROWS);
    }
    if (model_task_has(task, MODEL_PAIR_LOGITS)) {
        visit(context, &w->heads, "cls.seq_relationship.", heads, bert_nsp_rows, BERT_NSP_N_ROWS);
    }
    if (model_task_has(task, MODEL_SPAN_LOGITS)) {
        visit(context, &w->qa, "qa_outputs.", heads, bert_qa_rows, BERT_QA_N_ROWS);
    }
    if (model_task_has_labels(task)) {
        visit(context, &w->classifier, "classifier.", heads, bert_classifier_rows, BERT_CLASSIFIER_N_ROWS);
    }
}

struct status bert_declare(struct param_table *table, const struct bert_config *c, enum model_task task)
{
    struct weight_declaration d = {table, sizes_of(c)};
    struct bert_weights none = {.layers = NULL};
    for_each_part(c, task, &none, weights_declare, &d);
    return param_table_status(table);
}

struct status bert_create_weights(const struct model *m, void **weights, const struct param_table *table,
                                  tensor matrices, tensor vectors, tensor biases)
{
    const struct bert_config *c = &((const struct bert_model *)m)->config;
    struct bert_weights *w = *weights = calloc(1, sizeof *w);
    if (w != NULL) {
        w->layers = calloc((size_t)c->num_hidden_layers, sizeof *w->layers);
    }
    FAIL_IF(w == NULL || w->layers == NULL, STATUS_MEMORY, "out of memory for the views of %lld layers",
            (long long)c->num_hidden_layers);
    struct weight_view v = {table, sizes_of(c), matrices, vectors, biases};
    for_each_part(c, m->task, w, weights_view, &v);
    return status_ok();
}

void bert_destroy_weights(void *weights)
{
    struct bert_weights *w = weights;
    if (w != NULL) {
        free(w->layers);
        free(w);
    }
}
