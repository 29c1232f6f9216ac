/* gpt_config: the architecture of a decoder, its model, and its config.json in Hugging Face's format, of
 * GPT-2 (Radford et al. 2019) and of BLOOM (arXiv:2211.05100).
 *
 * Both are pre-LN decoders with tied embeddings.  GPT-2 learns its positions; BLOOM has none: ALiBi biases
 * the scores of attention, and a LayerNorm follows the embeddings. */
#ifndef KILN_NN_GPT_CONFIG_H
#define KILN_NN_GPT_CONFIG_H

#include "core/json.h"
#include "nn/label_names.h"
#include "nn/layer.h"
#include "nn/model.h"

struct gpt_config {
    int64_t vocab_size; /* rows of the word embeddings; 0: not given */
    int64_t n_words;    /* rows that are pieces of the vocabulary; 0: all */
    /* tokens of the longest sequence; ALiBi has no limit of its own, and this one is kiln's */
    int64_t n_positions;
    int64_t hidden_size, n_layers, n_heads;
    int64_t feed_forward_size;
    double embedding_dropout, hidden_dropout, attention_dropout;
    double initializer_range, norm_eps;
    enum layer_gelu gelu;
    enum layer_positions positions;
    bool embedding_norm; /* a LayerNorm of the words' embeddings, BLOOM's */
    struct model_labels labels;
};

/* Parse and write the config.json of either.  STATUS_DATA names a field whose value makes another network. */
struct status gpt2_config_parse(struct gpt_config *c, const json_t *object, const char *source);
struct status bloom_config_parse(struct gpt_config *c, const json_t *object, const char *source);
json_t *gpt2_config_to_json(const struct gpt_config *c);
json_t *bloom_config_to_json(const struct gpt_config *c);

/* STATUS_DATA names the first size, or the epsilon, in which the two differ.  With ALiBi the length of
 * sequences does not count: no weight depends on it (Press et al. 2022, arXiv:2108.12409). */
struct status gpt_config_same_architecture(const struct gpt_config *a, const struct gpt_config *b);

/* A decoder of GPT-2's or BLOOM's kind as a model of the engine (nn/model.h).  The equations around the
 * layers (nn/block_pre.c), E the word embeddings, P those of positions:
 *
 *     GPT-2:  x = dropout(E[id] + P[position])
 *     BLOOM:  x = LN(E[id])
 *     logits = LN_f(y) E^T, of the rows that have a label or are asked for
 *
 * A model of a configuration, which it copies; the caller frees it.  Whatever the task, it predicts
 * the next token.  STATUS_MEMORY. */
struct status gpt2_model_create(struct model **model, const void *config, enum model_task task);
struct status bloom_model_create(struct model **model, const void *config, enum model_task task);

#endif
