/* bert_config: the architecture of a BERT model, read from and written as Hugging Face's config.json. */
#ifndef KILN_NN_BERT_CONFIG_H
#define KILN_NN_BERT_CONFIG_H

#include "core/json.h"
#include "core/status.h"
#include "nn/bert/bert_kind.h"
#include "nn/label_names.h"

#include <stdint.h>

/* Rows of the vocabulary are padded to a multiple of this in memory, for full vectors and tiles; files never
 * have the padding. */
enum { BERT_VOCAB_MULTIPLE = 64 };

enum { BERT_CONFIG_MOST_LAYERS = 1024 };

struct bert_config {
    const struct bert_kind *kind; /* NULL: bert_kind */
    int64_t first_position;       /* row of the table of positions that is the first token's */
    int64_t vocab_size;
    int64_t hidden_size;
    int64_t num_hidden_layers; /* layers without the gated ones, which a file counts too */
    int64_t num_attention_heads;
    int64_t intermediate_size;
    int64_t max_position_embeddings;
    int64_t type_vocab_size;
    double hidden_dropout_prob;
    double attention_probs_dropout_prob;
    double initializer_range;
    double layer_norm_eps;
    bool layer_norm_large_model; /* pre-LN layers (nn/block_post_sums.c), not post-LN */
    /* "gated_layers" of the file, a bit for each of its numbers: pre-LN layers whose outputs count times
     * zero, so that they change nothing.  They are not computed and have no weights; names of weights keep
     * the file's numbers (bert_config_layer_number). */
    unsigned char gated[BERT_CONFIG_MOST_LAYERS / 8];
    bool sinusoidal_positions; /* position embeddings begin as sinusoids; not in the file */
    /* pieces in the vocabulary, not in the file: ids from there on are never predicted; 0: vocab_size */
    int64_t n_words;

    /* For a classifier (nn/bert/bert_heads.h); other models have the defaults. */
    struct model_labels labels;
    double classifier_dropout; /* hidden_dropout_prob if the file has none */
    double answer_dropout;     /* in front of scores of answers, which most kinds lack */
};

/* The values that BERT's "model_type" may have, ended by NULL. */
extern const char *const bert_config_model_types[];

/* The kind that a configuration is of. */
const struct bert_kind *bert_config_kind(const struct bert_config *c);

/* Tokens of the longest text: the rows of the table of positions that tokens have. */
int64_t bert_config_max_length(const struct bert_config *c);

/* Reads a configuration from a JSON object; `source` names it in messages.  Absent keys get the kind's
 * defaults; vocab_size may be absent or 0, and then the vocabulary file decides.  STATUS_DATA for
 * impossible values, or a model that kiln does not compute.  A warning names unknown keys. */
struct status bert_config_parse(struct bert_config *c, const json_t *object, const char *source);
struct status bert_config_parse_kind(struct bert_config *c, const struct bert_kind *kind,
                                     const json_t *object, const char *source);

/* The config.json of a Hugging Face class, e.g. "BertForPreTraining"; the caller json_decref's it.  NULL
 * without memory. */
json_t *bert_config_to_json(const struct bert_config *c, const char *architecture);

/* STATUS_DATA naming the first field in which two architectures differ; dropout and initialisation may
 * differ. */
struct status bert_config_same_architecture(const struct bert_config *a, const struct bert_config *b);

/* Whether the file's layer of this number is gated; false where there is no such layer. */
bool bert_config_is_gated(const struct bert_config *c, int64_t number);

/* The number that a layer has in the file and in names of weights. */
int64_t bert_config_layer_number(const struct bert_config *c, int64_t layer);

/* Rows of the word table in memory: the vocabulary, padded for products. */
int64_t bert_config_padded_vocab(const struct bert_config *c);

/* The number of ids that can be predicted. */
int64_t bert_config_n_words(const struct bert_config *c);

#endif
