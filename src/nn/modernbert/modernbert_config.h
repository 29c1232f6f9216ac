/* modernbert_config: the architecture of a ModernBERT model (Warner et al. 2024, arXiv:2412.13663), read
 * from and written as Hugging Face's config.json. */
#ifndef KILN_NN_MODERNBERT_CONFIG_H
#define KILN_NN_MODERNBERT_CONFIG_H

#include "core/json.h"
#include "nn/label_names.h"

#include <stdint.h>

enum { MODERNBERT_N_IDS = 5 };

struct modernbert_config {
    int64_t vocab_size; /* 0: the vocabulary file decides */
    int64_t n_words;    /* pieces in the vocabulary, not in the file; 0: vocab_size */
    int64_t hidden_size, n_layers, n_heads, feed_forward_size;
    int64_t n_positions;     /* tokens of the longest text */
    int64_t local_attention; /* twice the greatest distance of a key from its query in a local layer */
    int64_t global_every; /* layers 0, global_every, 2 global_every ... see all keys, the others are local */
    int64_t ids[MODERNBERT_N_IDS];    /* ids of padding and other tokens, which only files have; -1: none */
    double global_theta, local_theta; /* thetas of the positions of either layers */
    double embedding_dropout, classifier_dropout;
    double initializer_range, norm_eps;
    bool pools_mean; /* a text's labels are of the mean of its tokens, not of [CLS] */
    struct model_labels labels;
};

/* Parses a config.json.  STATUS_DATA for impossible values, or a form that kiln does not compute. */
struct status modernbert_config_parse(struct modernbert_config *c, const json_t *object, const char *source);

/* The config.json of a class, "ModernBertForMaskedLM"; the caller json_decref's it.  NULL without memory. */
json_t *modernbert_config_to_json(const struct modernbert_config *c, const char *architecture);

/* STATUS_DATA names the first field in which two architectures differ. */
struct status modernbert_config_same(const struct modernbert_config *a, const struct modernbert_config *b);

#endif
