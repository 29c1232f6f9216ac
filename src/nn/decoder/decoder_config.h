/* decoder_config: the architecture of a decoder, its model, and its config.json in Hugging Face's format.
 * It is GPT-2 (Radford et al. 2019), BLOOM (arXiv:2211.05100), GPT-NeoX (arXiv:2204.06745; Pythia,
 * arXiv:2304.01373), or Llama (arXiv:2302.13971,
 * arXiv:2407.21783) with the relatives that have its equations: Mistral, Qwen 2, Qwen 3
 * (arXiv:2505.09388), OLMo 2 (arXiv:2501.00656), SmolLM 3 and Phi-3 (arXiv:2404.14219).
 *
 * All but OLMo 2, whose norms follow the sublayers, are pre-LN decoders.  GPT-2 learns its positions; BLOOM
 * has none: ALiBi biases the scores of attention, and a LayerNorm follows the embeddings.  Llama turns
 * queries and keys, has RMS norms, a gated feed-forward, fewer heads of keys and values than of queries, and
 * often a decoder of its own. */
#ifndef KILN_NN_DECODER_CONFIG_H
#define KILN_NN_DECODER_CONFIG_H

#include "core/json.h"
#include "nn/config_field.h"
#include "nn/label_names.h"
#include "nn/layer.h"
#include "nn/model.h"
#include "nn/rotary.h"

struct decoder_config {
    int64_t vocab_size; /* rows of the word embeddings; 0: not given */
    int64_t n_words;    /* rows that are pieces of the vocabulary; 0: all */
    /* tokens of the longest sequence; ALiBi has no limit of its own, and this one is kiln's */
    int64_t n_positions;
    int64_t window; /* greatest distance of a key from its query; 0: no bound */
    int64_t hidden_size, n_layers, n_heads;
    int64_t n_kv_heads, head_size; /* 0: as many as n_heads; hidden_size / n_heads */
    int64_t feed_forward_size;
    double embedding_dropout, hidden_dropout, attention_dropout;
    double initializer_range, norm_eps;
    enum layer_activation activation;
    enum layer_positions positions;
    enum layer_norm norm;
    enum layer_qk_norm qk_norm;
    struct rotary rotary;        /* of rotary positions */
    struct layer_cycle unturned; /* layers without them */
    bool embedding_norm;         /* a LayerNorm of the words' embeddings, BLOOM's */
    bool qkv_bias;    /* queries, keys and values have a bias; in GPT-2 and BLOOM every product has one */
    bool is_parallel; /* both sublayers read the layer's input (nn/block_parallel.c) */
    bool own_decoder; /* the last product has a matrix of its own, not the word embeddings */
    const struct llama_kind *llama; /* the relative of Llama that it is; NULL: none */
    struct model_labels labels;
};

/* A relative of Llama: its names in config.json. */
struct llama_kind {
    const char *model_type, *class_name, *bare_class;
    bool qkv_bias;   /* query, key and value have one */
    bool has_window; /* a window of usual_window tokens, unless a key says otherwise */
    int64_t usual_window;
    enum layer_qk_norm qk_norm;
    int64_t usual_head_size; /* head size of a file without "head_dim"; 0: hidden_size / n_heads */
    double usual_eps;        /* epsilon of a file without "rms_norm_eps"; 0: that of Llama */
    bool usually_tied;  /* the last product's matrix is the word embeddings, unless a key says otherwise */
    bool has_unturned;  /* every fourth layer has no positions, unless a key says otherwise */
    double usual_theta; /* theta of rotary positions; 0: 10,000 */
    const struct config_field *dropouts; /* [n_dropouts] those that are not of attention */
    int n_dropouts;
};

/* Parse and write a config.json.  STATUS_DATA names a field whose value makes another network. */
struct status gpt2_config_parse(struct decoder_config *c, const json_t *object, const char *source);
struct status bloom_config_parse(struct decoder_config *c, const json_t *object, const char *source);
struct status gpt_neox_config_parse(struct decoder_config *c, const json_t *object, const char *source);
struct status llama_config_parse(struct decoder_config *c, const json_t *object, const char *source);
json_t *gpt2_config_to_json(const struct decoder_config *c);
json_t *bloom_config_to_json(const struct decoder_config *c);
json_t *gpt_neox_config_to_json(const struct decoder_config *c);
json_t *llama_config_to_json(const struct decoder_config *c);

/* Whether the word embeddings of a relative of Llama are its last product's matrix, too. */
bool llama_config_is_tied(const json_t *object);

/* Columns of a head. */
int64_t decoder_config_head_size(const struct decoder_config *c);

/* STATUS_DATA names the first size, or the epsilon, in which the two differ.  With ALiBi the length of
 * sequences does not count: no weight depends on it (Press et al. 2022, arXiv:2108.12409). */
struct status decoder_config_same_architecture(const struct decoder_config *a,
                                               const struct decoder_config *b);

/* The same, of the numbers in the config.json of a family alone. */
struct status gpt2_config_same(const struct decoder_config *a, const struct decoder_config *b);
struct status bloom_config_same(const struct decoder_config *a, const struct decoder_config *b);
struct status gpt_neox_config_same(const struct decoder_config *a, const struct decoder_config *b);
struct status llama_config_same(const struct decoder_config *a, const struct decoder_config *b);

/* ---- what config.json of several families has ---- */

/* A key with one supported value: another one is another network, which must not be computed silently. */
struct decoder_constant {
    const char *key;
    bool wanted;
    const char *why;
};

/* STATUS_DATA names the first key with another value, and why.  null counts as absent. */
struct status decoder_config_check(const struct decoder_constant *rows, size_t n, const json_t *object,
                                   const char *source);

/* The numbers of the rows, and what `more` has, which it takes; NULL if memory runs out. */
json_t *decoder_config_numbers(const struct decoder_config *c, const struct config_field *rows, int n,
                               json_t *more);

/* The keys of rotary positions outside "rope_parameters": their theta, and the part of a head's columns that
 * turns; usual_part 0: all turn, and another part is refused. */
struct decoder_rotary_keys {
    const char *theta, *part;
    double usual_part;
};

/* Parses c->rotary, the sizes of heads known, from these keys, "rope_scaling" and "rope_parameters" of
 * transformers 5. */
struct status decoder_rotary_parse(struct decoder_config *c, const struct decoder_rotary_keys *keys,
                                   const json_t *object, const char *source);

/* The part of a head's columns that turns, of which parsing makes as many columns. */
double decoder_rotary_part(const struct decoder_config *c);

/* The value of "rope_scaling". */
json_t *decoder_rotary_to_json(const struct rotary *r);
bool decoder_rotary_same(const struct rotary *a, const struct rotary *b);

/* A decoder as a model of the engine (nn/model.h).  The equations around the layers (nn/block_pre.c, OLMo 2's
 * nn/block_reordered.c), E the
 * word embeddings, P those of positions:
 *
 *     GPT-2:  x = dropout(E[id] + P[position])
 *     BLOOM:  x = LN(E[id])
 *     Pythia: x = dropout(E[id])
 *     Llama:  x = E[id]; Phi-3: as Pythia
 *     logits = LN_f(y) E^T, of the rows that have a label or are asked for; with a matrix of its own for E
 *
 * A model of a configuration, which it copies; the caller frees it.  Whatever the task, it predicts the
 * next token.  STATUS_MEMORY. */
struct status gpt2_model_create(struct model **model, const void *config, enum model_task task);
struct status bloom_model_create(struct model **model, const void *config, enum model_task task);
struct status gpt_neox_model_create(struct model **model, const void *config, enum model_task task);
struct status llama_model_create(struct model **model, const void *config, enum model_task task);

#endif
