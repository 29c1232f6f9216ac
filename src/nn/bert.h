/* bert: the whole model - its parameter table, and its weights as the equations see them. */
#ifndef KILN_NN_BERT_H
#define KILN_NN_BERT_H

#include "nn/bert_heads.h"

/* Weights of all parts, or their gradients: views into flat buffers. */
struct bert_weights {
    struct bert_embed_weights embed;
    struct bert_layer_weights *layers; /* [num_hidden_layers] */
    struct bert_head_weights heads;
};

/* Declares BertForPreTraining in `table` (zeroed), under Hugging Face's names; the decoder is the word
 * embeddings. */
struct status bert_declare(struct param_table *table, const struct bert_config *c);

/* Points the weights into flat buffers of the table's layout: matrices into `matrices`, vectors into
 * `vectors`. Owns the array of layers until bert_weights_fini. */
struct status bert_weights_init(struct bert_weights *w, const struct param_table *table,
                                const struct bert_config *c, tensor matrices, tensor vectors);
void bert_weights_fini(struct bert_weights *w);

/* Fills `flat` (fp32 or fp64, host memory) with the initial parameters under `seed`; gaps and padded rows are
 * zero. */
void bert_initialize(tensor flat, const struct param_table *table, uint64_t seed);

#endif
