/* modernbert_model: ModernBERT (Warner et al. 2024, arXiv:2412.13663), as the engine sees a model
 * (nn/model.h): pre-LN layers without biases (nn/block_pre.c), of which most attend to a window of tokens
 * and every third to all.  The equations around the layers, E the word embeddings, h the last layer's
 * output, LN_out(y):
 *
 *     x = dropout(LN(E[id]))
 *     r = LN(gelu(h_i W^T)), h_i the rows that are read: masked tokens, [CLS] or a text's mean, or all
 *     logits of words = r E^T + b (nn/word_head.h)
 *     logits of labels, or of starts and ends = dropout(r) W_c^T + b_c (nn/label_head.h, nn/answer_head.h)
 *
 * Norms have no beta. */
#ifndef KILN_NN_MODERNBERT_MODEL_H
#define KILN_NN_MODERNBERT_MODEL_H

#include "nn/model.h"
#include "nn/modernbert/modernbert_config.h"

/* A model of a configuration, a struct modernbert_config, which it copies; the caller frees it.
 * STATUS_MEMORY. */
struct status modernbert_model_create(struct model **model, const void *config, enum model_task task);

/* The class of a task: "ModernBertForMaskedLM"; NULL: there is none. */
const char *modernbert_class(enum model_task task);

#endif
