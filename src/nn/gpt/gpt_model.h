/* gpt_model: a decoder of GPT-2's or BLOOM's kind as a model of the engine (nn/model.h).
 *
 * The equations around the layers (nn/gpt/gpt_layer.c), E the word embeddings, P those of positions:
 *
 *     GPT-2:  x = dropout(E[id] + P[position])
 *     BLOOM:  x = LN(E[id])
 *     logits = LN_f(y) E^T, of the rows that have a label or are asked for */
#ifndef KILN_NN_GPT_MODEL_H
#define KILN_NN_GPT_MODEL_H

#include "nn/gpt/gpt_config.h"
#include "nn/model.h"

/* A model of a configuration, which it copies; the caller frees it.  Whatever the task, it predicts
 * the next token.  STATUS_MEMORY. */
struct status gpt2_model_create(struct model **model, const void *config, enum model_task task);
struct status bloom_model_create(struct model **model, const void *config, enum model_task task);

#endif
