/* bert: the complete model: its parameter table, and its weights as views for the equations. */
#ifndef KILN_NN_BERT_H
#define KILN_NN_BERT_H

#include "nn/bert/bert_classifier.h"
#include "nn/bert/bert_heads.h"
#include "nn/bert/bert_qa.h"
#include "nn/model.h"

/* "BertForPreTraining" and so on. */
const char *bert_task_class(enum model_task task);

/* Weights of all parts, or their gradients: views into flat buffers.  Heads that the task lacks are null
 * tensors. */
struct bert_weights {
    struct bert_embed_weights embed;
    struct bert_layer_weights *layers; /* [num_hidden_layers] */
    struct bert_head_weights heads;
    struct bert_qa_weights qa;
    struct bert_classifier_weights classifier;
};

/* Declares the task's model in `table` (zeroed), under the names of Hugging Face's classes with a head; the
 * decoder of the MLM head is the word embeddings. */
struct status bert_declare(struct param_table *table, const struct bert_config *c, enum model_task task);

/* Points the weights into flat buffers of the table's layout: matrices into `matrices`, vectors into
 * `vectors`, and biases that products add to activations into `biases`, which equals one of the two.  Owns
 * the array of layers until bert_weights_fini. */
struct status bert_weights_init(struct bert_weights *w, const struct param_table *table,
                                const struct bert_config *c, enum model_task task, tensor matrices,
                                tensor vectors, tensor biases);
void bert_weights_fini(struct bert_weights *w);

#endif
