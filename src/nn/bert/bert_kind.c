#include "nn/bert/bert_kind.h"

#include "nn/bert/bert_heads.h"
#include "nn/block.h"

#include <stddef.h>

/* ---- keys ---- */

#define NAMED(key, field, kind, min, max, architecture)                                                      \
    {                                                                                                        \
        {key, JSON_FIELD_##kind, offsetof(struct bert_config, field)}, NULL, min, max, architecture          \
    }
#define ROW(key, kind, min, max, architecture) NAMED(#key, key, kind, min, max, architecture)

enum { MOST_ROWS = 65536 };

static const struct config_field bert_fields[] = {
    ROW(vocab_size, INT, 0, 1 << 24, true),
    ROW(hidden_size, INT, 8, 1 << 16, true),
    ROW(num_hidden_layers, INT, 1, BERT_CONFIG_MOST_LAYERS, true),
    ROW(num_attention_heads, INT, 1, 1024, true),
    ROW(intermediate_size, INT, 1, 1 << 18, true),
    ROW(max_position_embeddings, INT, 1, MOST_ROWS, true),
    ROW(type_vocab_size, INT, 1, 1024, true),
    ROW(hidden_dropout_prob, REAL, 0, 0.99, false),
    ROW(attention_probs_dropout_prob, REAL, 0, 0.99, false),
    ROW(initializer_range, REAL, 0, 10, false),
    ROW(layer_norm_eps, REAL, 0, 1, true),
    ROW(layer_norm_large_model, BOOL, 0, 1, true),
};

static const struct config_field distilbert_fields[] = {
    ROW(vocab_size, INT, 0, 1 << 24, true),
    NAMED("dim", hidden_size, INT, 8, 1 << 16, true),
    NAMED("n_layers", num_hidden_layers, INT, 1, BERT_CONFIG_MOST_LAYERS, true),
    NAMED("n_heads", num_attention_heads, INT, 1, 1024, true),
    NAMED("hidden_dim", intermediate_size, INT, 1, 1 << 18, true),
    ROW(max_position_embeddings, INT, 1, MOST_ROWS, true),
    NAMED("dropout", hidden_dropout_prob, REAL, 0, 0.99, false),
    NAMED("attention_dropout", attention_probs_dropout_prob, REAL, 0, 0.99, false),
    NAMED("qa_dropout", answer_dropout, REAL, 0, 0.99, false),
    NAMED("seq_classif_dropout", classifier_dropout, REAL, 0, 0.99, false),
    ROW(initializer_range, REAL, 0, 10, false),
    NAMED("sinusoidal_pos_embds", sinusoidal_positions, BOOL, 0, 1, false),
};

/* BERT-base, Devlin et al. 2018 (arXiv:1810.04805). */
static const struct bert_config bert_defaults = {.hidden_size = 768,
                                                 .num_hidden_layers = 12,
                                                 .num_attention_heads = 12,
                                                 .intermediate_size = 3072,
                                                 .max_position_embeddings = 512,
                                                 .type_vocab_size = 2,
                                                 .hidden_dropout_prob = 0.1,
                                                 .attention_probs_dropout_prob = 0.1,
                                                 .initializer_range = 0.02,
                                                 .layer_norm_eps = 1e-12};

/* Half the layers of BERT-base, Sanh et al. 2019 section 3; the dropouts of `transformers`, and its norms'
 * epsilon, which is no key. */
static const struct bert_config distilbert_defaults = {.hidden_size = 768,
                                                       .num_hidden_layers = 6,
                                                       .num_attention_heads = 12,
                                                       .intermediate_size = 3072,
                                                       .max_position_embeddings = 512,
                                                       .type_vocab_size = 1,
                                                       .hidden_dropout_prob = 0.1,
                                                       .attention_probs_dropout_prob = 0.1,
                                                       .answer_dropout = 0.1,
                                                       .classifier_dropout = 0.2,
                                                       .initializer_range = 0.02,
                                                       .layer_norm_eps = 1e-12};

/* ---- names of layers ---- */

#define WEIGHTS struct block_weights

/* The feed-forward input keeps the uniform initialisation of the replaced scripts (docs/quirks.md,
 * "LinearActivation"). */
static const struct weight_row bert_layer_rows[] = {
    WEIGHT_MATRIX(attention.w_qkv, HIDDEN, HIDDEN, NORMAL, BY_HEAD, "attention.self.query.weight",
                  "attention.self.key.weight", "attention.self.value.weight"),
    WEIGHT_BIAS(attention.b_qkv, HIDDEN, ZERO, BY_HEAD, "attention.self.query.bias",
                "attention.self.key.bias", "attention.self.value.bias"),
    WEIGHT_MATRIX(attention.w_o, HIDDEN, HIDDEN, NORMAL, BY_COL, "attention.output.dense.weight"),
    WEIGHT_VECTOR(attention.b_o, HIDDEN, ZERO, WHOLE, "attention.output.dense.bias"),
    WEIGHT_VECTOR(norm_1.gamma, HIDDEN, ONE, WHOLE, "attention.output.LayerNorm.weight"),
    WEIGHT_VECTOR(norm_1.beta, HIDDEN, ZERO, WHOLE, "attention.output.LayerNorm.bias"),
    WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, UNIFORM, BY_ROW, "intermediate.dense.weight"),
    WEIGHT_BIAS(ff.b_1, FEED_FORWARD, UNIFORM, BY_ROW, "intermediate.dense.bias"),
    WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, NORMAL, BY_COL, "output.dense.weight"),
    WEIGHT_VECTOR(ff.b_2, HIDDEN, ZERO, WHOLE, "output.dense.bias"),
    WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, WHOLE, "output.LayerNorm.weight"),
    WEIGHT_VECTOR(norm_2.beta, HIDDEN, ZERO, WHOLE, "output.LayerNorm.bias"),
};
_Static_assert(sizeof bert_layer_rows / sizeof bert_layer_rows[0] == BLOCK_N_ROWS, "a row for every field");

static const struct weight_row distilbert_layer_rows[] = {
    WEIGHT_MATRIX(attention.w_qkv, HIDDEN, HIDDEN, NORMAL, BY_HEAD, "attention.q_lin.weight",
                  "attention.k_lin.weight", "attention.v_lin.weight"),
    WEIGHT_BIAS(attention.b_qkv, HIDDEN, ZERO, BY_HEAD, "attention.q_lin.bias", "attention.k_lin.bias",
                "attention.v_lin.bias"),
    WEIGHT_MATRIX(attention.w_o, HIDDEN, HIDDEN, NORMAL, BY_COL, "attention.out_lin.weight"),
    WEIGHT_VECTOR(attention.b_o, HIDDEN, ZERO, WHOLE, "attention.out_lin.bias"),
    WEIGHT_VECTOR(norm_1.gamma, HIDDEN, ONE, WHOLE, "sa_layer_norm.weight"),
    WEIGHT_VECTOR(norm_1.beta, HIDDEN, ZERO, WHOLE, "sa_layer_norm.bias"),
    WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, NORMAL, BY_ROW, "ffn.lin1.weight"),
    WEIGHT_BIAS(ff.b_1, FEED_FORWARD, ZERO, BY_ROW, "ffn.lin1.bias"),
    WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, NORMAL, BY_COL, "ffn.lin2.weight"),
    WEIGHT_VECTOR(ff.b_2, HIDDEN, ZERO, WHOLE, "ffn.lin2.bias"),
    WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, WHOLE, "output_layer_norm.weight"),
    WEIGHT_VECTOR(norm_2.beta, HIDDEN, ZERO, WHOLE, "output_layer_norm.bias"),
};
_Static_assert(sizeof distilbert_layer_rows / sizeof distilbert_layer_rows[0] == BLOCK_N_ROWS,
               "a row for every field");

static const char *const bert_modules[BERT_N_MODULES] = {
    [BERT_MODULE_QUERY] = "attention.self.query",
    [BERT_MODULE_KEY] = "attention.self.key",
    [BERT_MODULE_VALUE] = "attention.self.value",
    [BERT_MODULE_ATTENTION] = "attention.self",
    [BERT_MODULE_ATTENTION_OUTPUT] = "attention.output",
    [BERT_MODULE_INTERMEDIATE] = "intermediate",
    [BERT_MODULE_INTERMEDIATE_PRODUCT] = "intermediate.dense",
    [BERT_MODULE_OUTPUT] = "output",
};

static const char *const distilbert_modules[BERT_N_MODULES] = {
    [BERT_MODULE_QUERY] = "attention.q_lin",          [BERT_MODULE_KEY] = "attention.k_lin",
    [BERT_MODULE_VALUE] = "attention.v_lin",          [BERT_MODULE_ATTENTION] = "attention",
    [BERT_MODULE_ATTENTION_OUTPUT] = "sa_layer_norm", [BERT_MODULE_INTERMEDIATE] = "ffn.activation",
    [BERT_MODULE_INTERMEDIATE_PRODUCT] = "ffn.lin1",  [BERT_MODULE_OUTPUT] = "output_layer_norm",
};

/* ---- kinds ---- */

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

/* Fields of the kinds whose configurations and layers have BERT's names. */
#define LIKE_BERT                                                                                            \
    .embed_rows = bert_embed_rows, .n_embed_rows = BERT_EMBED_N_ROWS, .layer_rows = bert_layer_rows,         \
    .modules = bert_modules, .fields = bert_fields, .n_fields = COUNT(bert_fields),                          \
    .defaults = &bert_defaults, .activation = "hidden_act", .positions = "absolute"

#define NAME(text) #text
#define CLASSES(of)                                                                                          \
    [MODEL_TASK_MASKED_LM] = NAME(of##ForMaskedLM), [MODEL_TASK_ENCODER] = NAME(of##Model),                  \
    [MODEL_TASK_QUESTION_ANSWERING] = NAME(of##ForQuestionAnswering),                                        \
    [MODEL_TASK_SEQUENCE_CLASSIFICATION] = NAME(of##ForSequenceClassification),                              \
    [MODEL_TASK_TOKEN_CLASSIFICATION] = NAME(of##ForTokenClassification)

const struct bert_kind bert_kind = {
    .model_type = "bert",
    .embeddings = "bert.embeddings.",
    .layers = "bert.encoder.layer.",
    .pooler = "bert.pooler.",
    .mlm = "cls.predictions.",
    .word = "bert.embeddings.word_embeddings.weight",
    .mlm_rows = bert_mlm_rows,
    .classes = {[MODEL_TASK_PRETRAINING] = "BertForPreTraining", CLASSES(Bert)},
    LIKE_BERT};

/* RoBERTa's network; `of` begins the names of its classes. */
#define LIKE_ROBERTA(of)                                                                                     \
    .embeddings = "roberta.embeddings.", .layers = "roberta.encoder.layer.", .pooler = "roberta.pooler.",    \
    .mlm = "lm_head.", .word = "roberta.embeddings.word_embeddings.weight", .mlm_rows = roberta_mlm_rows,    \
    .dense = "classifier.dense.", .scores = "classifier.out_proj.", .classes = {CLASSES(of)},                \
    .drops_before_dense = true, .counts_behind_padding = true, LIKE_BERT

const struct bert_kind roberta_kind = {.model_type = "roberta", LIKE_ROBERTA(Roberta)};
const struct bert_kind xlm_roberta_kind = {.model_type = "xlm-roberta", LIKE_ROBERTA(XLMRoberta)};
const struct bert_kind camembert_kind = {.model_type = "camembert", LIKE_ROBERTA(Camembert)};

const struct bert_kind distilbert_kind = {.model_type = "distilbert",
                                          .embeddings = "distilbert.embeddings.",
                                          .layers = "distilbert.transformer.layer.",
                                          .mlm = "vocab_",
                                          .word = "distilbert.embeddings.word_embeddings.weight",
                                          .dense = "pre_classifier.",
                                          .scores = "classifier.",
                                          .classes = {CLASSES(DistilBert)},
                                          .embed_rows = distilbert_embed_rows,
                                          .n_embed_rows = DISTILBERT_EMBED_N_ROWS,
                                          .layer_rows = distilbert_layer_rows,
                                          .mlm_rows = distilbert_mlm_rows,
                                          .modules = distilbert_modules,
                                          .fields = distilbert_fields,
                                          .n_fields = COUNT(distilbert_fields),
                                          .defaults = &distilbert_defaults,
                                          .activation = "activation",
                                          .has_no_types = true,
                                          .rectifies = true,
                                          .names_dropouts = true};
