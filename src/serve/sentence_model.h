/* sentence_model: how a model makes a vector of a text, by the files that sentence-transformers writes with
 * it: modules.json, sentence_bert_config.json, N_Pooling/config.json, N_Dense,
 * config_sentence_transformers.json.
 *
 * The rule: whatever kiln would compute differently is refused by name.  Keys are read in the spelling of
 * every version up to 6.2.  Source: sbert.net, "Creating Custom Models"; Reimers & Gurevych 2019
 * (arXiv:1908.10084). */
#ifndef KILN_SERVE_SENTENCE_MODEL_H
#define KILN_SERVE_SENTENCE_MODEL_H

#include "core/json.h"
#include "model/checkpoint.h"

/* How a vector is made of the last layer's rows h_0..h_(n-1), [CLS] and [SEP] included. */
enum sentence_pooling {
    SENTENCE_CLS,           /* h_0 */
    SENTENCE_MAX,           /* the largest of each column */
    SENTENCE_MEAN,          /* sum h_i / n */
    SENTENCE_MEAN_SQRT_LEN, /* sum h_i / sqrt n */
    SENTENCE_WEIGHTED_MEAN, /* sum (i + 1) h_i / sum (i + 1) */
    SENTENCE_LAST_TOKEN,    /* h_(n-1) */
    SENTENCE_N_POOLINGS,
};

/* The name that sentence-transformers uses. */
const char *sentence_pooling_name(enum sentence_pooling p);

/* The pooling of this name; SENTENCE_N_POOLINGS: there is none. */
enum sentence_pooling sentence_pooling_find(const char *name);

enum sentence_activation { SENTENCE_IDENTITY, SENTENCE_TANH, SENTENCE_RELU, SENTENCE_GELU, SENTENCE_SIGMOID };

/* The activation of a PyTorch class, "torch.nn.modules.activation.Tanh"; false: kiln has none of this
 * name. */
bool sentence_activation_find(enum sentence_activation *a, const char *name);
double sentence_activation_of(enum sentence_activation a, double x);

/* A module after the pooling: x / |x|, or the first n_out numbers of x, or f(W x + b), plus x or R x if the
 * file says so. */
struct sentence_layer {
    bool normalize, truncates;
    enum sentence_activation activation;
    int64_t n_in, n_out;
    float *weight;   /* [n_out, n_in]; owned, like the others */
    float *bias;     /* [n_out]; NULL: none */
    float *residual; /* [n_out, n_in]; NULL: none, or x itself */
    bool adds_input;
};

enum { SENTENCE_MAX_LAYERS = 8 };

struct sentence_model {
    bool found; /* there is a modules.json; else everything below is kiln's default */
    char transformer[CHECKPOINT_PATH_BYTES];             /* the directory of the model */
    enum sentence_pooling poolings[SENTENCE_N_POOLINGS]; /* poolings, whose vectors are concatenated */
    int n_poolings;
    bool skips_prompt; /* the tokens of a prompt, [CLS] included, are not pooled */
    struct sentence_layer layers[SENTENCE_MAX_LAYERS];
    int n_layers;
    int64_t max_length; /* tokens of a text, special ones included; 0: not given */
    bool lower_case;    /* texts are lower-cased before the tokenizer, which may keep case */
    json_t *config;     /* config_sentence_transformers.json, or NULL */
};

/* Reads the files in the model directory `path`; without a modules.json: the mean.
 * STATUS_DATA names the file, the key and what is not supported; STATUS_NUMERIC names the weight that is not
 * finite. */
struct status sentence_model_open(struct sentence_model *m, const char *path);

/* Writes these files next to the model in `path`, whose vectors have `width` numbers: a model without further
 * modules. */
struct status sentence_model_write(const char *path, enum sentence_pooling pooling, int64_t width,
                                   int64_t max_length);

/* Safe on a zeroed struct and after a failed open. */
void sentence_model_close(struct sentence_model *m);

/* The text of a prompt, borrowed.  `name` NULL: the default prompt, "" if there is none.  STATUS_USAGE lists
 * the names of all prompts. */
struct status sentence_model_prompt(const struct sentence_model *m, const char *name, const char **text);

/* Numbers that a layer makes of `width`. */
int64_t sentence_layer_width(const struct sentence_layer *l, int64_t width);

/* Numbers in a vector of this model, whose rows have `hidden_size`. */
int64_t sentence_model_width(const struct sentence_model *m, int64_t hidden_size);

#endif
