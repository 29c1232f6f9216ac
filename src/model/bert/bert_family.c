#include "model/bert/bert_family.h"

#include "nn/bert/bert_model.h"

static struct status check_encoder(const json_t *object, const char *source)
{
    bool decoder = false, cross = false;
    TRY(json_get_bool(object, source, "is_decoder", false, &decoder));
    TRY(json_get_bool(object, source, "add_cross_attention", false, &cross));
    return decoder || cross
               ? status_error(
                     STATUS_DATA,
                     "%s: \"is_decoder\" or \"add_cross_attention\" is true; kiln's BERT is an encoder",
                     source)
               : status_ok();
}

/* The functions of a family that know its kind, which is `of`_kind. */
#define FUNCTIONS_OF(of)                                                                                     \
    static struct status of##_parse(void *config, const json_t *object, const char *source)                  \
    {                                                                                                        \
        TRY(bert_config_parse_kind(config, &of##_kind, object, source));                                     \
        return check_encoder(object, source);                                                                \
    }                                                                                                        \
    static const char *of##_class(enum model_task task)                                                      \
    {                                                                                                        \
        return of##_kind.classes[task];                                                                      \
    }

FUNCTIONS_OF(bert)
FUNCTIONS_OF(roberta)
FUNCTIONS_OF(xlm_roberta)
FUNCTIONS_OF(camembert)
FUNCTIONS_OF(distilbert)

static json_t *config_to_json(const void *config, enum model_task task)
{
    return bert_config_to_json(config, bert_config_kind(config)->classes[task]);
}

static struct model_family_sizes sizes(const void *config)
{
    const struct bert_config *c = config;
    return (struct model_family_sizes){
        c->vocab_size,        bert_config_max_length(c),
        c->num_hidden_layers, {c->num_attention_heads, c->hidden_size / c->num_attention_heads, 0},
        c->layer_norm_eps,    c->type_vocab_size == 1};
}

static void set_words(void *config, int64_t vocab_size, int64_t n_words)
{
    struct bert_config *c = config;
    c->vocab_size = vocab_size;
    c->n_words = n_words;
}

/* The heads in the files decide, since programs forget to update "architectures".  But a classifier may be of
 * sequences or of tokens: "architectures" says which; if it does not, there is a pooler only for
 * sequences. */
static enum model_task task_of(const bool has[NAMES_N_PARTS], const json_t *config)
{
    if (has[NAMES_CLASSIFIER]) {
        bool tokens = model_family_names_class(config, "ForTokenClassification") ||
                      (!model_family_names_class(config, "ForSequenceClassification") && !has[NAMES_POOLER]);
        return tokens ? MODEL_TASK_TOKEN_CLASSIFICATION : MODEL_TASK_SEQUENCE_CLASSIFICATION;
    }
    if (has[NAMES_QA]) {
        return MODEL_TASK_QUESTION_ANSWERING;
    }
    if (has[NAMES_MLM]) {
        return has[NAMES_NSP] && has[NAMES_POOLER] ? MODEL_TASK_PRETRAINING : MODEL_TASK_MASKED_LM;
    }
    return MODEL_TASK_ENCODER;
}

static struct model_labels *labels(void *config)
{
    struct bert_config *c = config;
    return &c->labels;
}

/* A file's number of words may include rows that pad the vocabulary. */
static struct status same_architecture(const void *a, const void *b)
{
    struct bert_config of_a = *(const struct bert_config *)a;
    of_a.vocab_size = ((const struct bert_config *)b)->vocab_size;
    return bert_config_same_architecture(&of_a, b);
}

static bool is_off(const void *config, const char *name)
{
    int number;
    return sscanf(name, "bert.encoder.layer.%4d.", &number) == 1 && bert_config_is_gated(config, number);
}

static const char *const bare[] = {"embeddings.", "encoder.", "transformer.", "pooler.", NULL};
static const char *const buffers[] = {"bert.embeddings.position_ids", "bert.embeddings.token_type_ids", NULL};
/* Optimizers of google-research/bert and of NVIDIA's scripts for TensorFlow. */
static const char *const states[] = {"adam_m", "adam_v", "LAMB", "global_step", NULL};
static const char *const tied[][2] = {
    {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
    {"cls.predictions.decoder.bias", "cls.predictions.bias"},
    {NULL, NULL},
};

/* Names of TensorFlow's LayerNorms, of NVIDIA's layers that contain their activation, and of
 * google-research/bert, whose matrices are [in, out]. */
static const struct model_family_rename renames[] = {
    {"LayerNorm.gamma", "LayerNorm.weight", true, false, false},
    {"LayerNorm.beta", "LayerNorm.bias", true, false, false},
    {".dense_act.", ".dense.", false, false, false},
    {".layer_", ".layer.", false, false, false},
    {".kernel", ".weight", true, true, false},
    {"_embeddings", "_embeddings.weight", true, false, false},
    {"cls.predictions.output_bias", "cls.predictions.bias", true, false, false},
    {"cls.seq_relationship.output_weights", "cls.seq_relationship.weight", true, false, false},
    {"cls.seq_relationship.output_bias", "cls.seq_relationship.bias", true, false, false},
    {"cls.squad.output_weights", "qa_outputs.weight", true, false, false},
    {"cls.squad.output_bias", "qa_outputs.bias", true, false, false},
    {NULL, NULL, false, false, false},
};

/* LinearActivation of NVIDIA's modeling.py, which also has the decoder's weight next to the embeddings. */
static const struct model_family_rename script_renames[] = {
    {".intermediate.dense.", ".intermediate.dense_act.", false, false, false},
    {".pooler.dense.", ".pooler.dense_act.", false, false, false},
    {".transform.dense.", ".transform.dense_act.", false, false, false},
    {NULL, NULL, false, false, false},
};
static const char *const script_copies[][2] = {
    {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
    {NULL, NULL},
};
static const struct model_family_script script = {script_renames, script_copies, 8};

/* Fields that are the same in all kinds. */
#define ENCODER(root_)                                                                                       \
    .config_bytes = sizeof(struct bert_config), .config_to_json = config_to_json, .sizes = sizes,            \
    .set_words = set_words, .create = bert_model_create, .same_architecture = same_architecture,             \
    .task_of = task_of, .labels = labels, .bare_task = MODEL_TASK_ENCODER, .root = root_, .bare = bare,      \
    .tied_part = NAMES_MLM, .words = root_ "embeddings.word_embeddings.weight"

const struct model_family bert_family = {
    .name = "BERT",
    .model_types = bert_config_model_types,
    .old_config = "bert_config.json",
    .old_prefix = "bert_model.ckpt",
    .usual_words = 30522, /* Google's uncased vocabulary */
    .parse_config = bert_parse,
    .class_of = bert_class,
    .renames = renames,
    .tied = tied,
    .tied_pattern = "cls.predictions.decoder.*",
    .buffers = buffers,
    .is_off = is_off,
    .states = states,
    .parts = {[NAMES_EMBEDDINGS] = "bert.embeddings.",
              [NAMES_ENCODER] = "bert.encoder.",
              [NAMES_POOLER] = "bert.pooler.",
              [NAMES_MLM] = "cls.predictions.",
              [NAMES_NSP] = "cls.seq_relationship.",
              [NAMES_QA] = "qa_outputs.",
              [NAMES_CLASSIFIER] = "classifier."},
    .script = &script,
    ENCODER("bert."),
};

/* ---- RoBERTa ---- */

static const char *const roberta_types[] = {"roberta", NULL};
static const char *const roberta_buffers[] = {"roberta.embeddings.position_ids",
                                              "roberta.embeddings.token_type_ids", NULL};
static const char *const roberta_tied[][2] = {
    {"lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"},
    {"lm_head.decoder.bias", "lm_head.bias"},
    {NULL, NULL},
};

/* Names of parts, for messages, that do not differ. */
#define OTHER_PATTERNS                                                                                       \
    [NAMES_QA] = "qa_outputs.*", [NAMES_CLASSIFIER] = "classifier.*", [NAMES_BUFFER] = "buffers",            \
    [NAMES_STATE] = "states", [NAMES_OTHER] = "others"

/* A family of RoBERTa's network, for the kind `of`_kind. */
#define LIKE_ROBERTA(of)                                                                                     \
    .parse_config = of##_parse, .class_of = of##_class, .tied = roberta_tied,                                \
    .tied_pattern = "lm_head.decoder.*", .buffers = roberta_buffers,                                         \
    .parts = {[NAMES_EMBEDDINGS] = "roberta.embeddings.",                                                    \
              [NAMES_ENCODER] = "roberta.encoder.",                                                          \
              [NAMES_POOLER] = "roberta.pooler.",                                                            \
              [NAMES_MLM] = "lm_head.",                                                                      \
              [NAMES_QA] = "qa_outputs.",                                                                    \
              [NAMES_CLASSIFIER] = "classifier."},                                                           \
    ENCODER("roberta.")

static const char *const xlm_roberta_types[] = {"xlm-roberta", NULL};
static const char *const camembert_types[] = {"camembert", NULL};

const struct model_family roberta_family = {
    .name = "RoBERTa", .model_types = roberta_types, .usual_words = 50265, LIKE_ROBERTA(roberta)};
const struct model_family xlm_roberta_family = {
    .name = "XLM-R", .model_types = xlm_roberta_types, .usual_words = 250002, LIKE_ROBERTA(xlm_roberta)};
const struct model_family camembert_family = {
    .name = "CamemBERT", .model_types = camembert_types, .usual_words = 32005, LIKE_ROBERTA(camembert)};

/* ---- DistilBERT ---- */

static const char *const distilbert_types[] = {"distilbert", NULL};
static const char *const distilbert_buffers[] = {"distilbert.embeddings.position_ids", NULL};
static const char *const distilbert_tied[][2] = {
    {"vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"},
    {NULL, NULL},
};

const struct model_family distilbert_family = {
    .name = "DistilBERT",
    .model_types = distilbert_types,
    .usual_words = 30522,
    .parse_config = distilbert_parse,
    .class_of = distilbert_class,

    .tied = distilbert_tied,
    .tied_pattern = "vocab_projector.weight",
    .buffers = distilbert_buffers,

    .parts = {[NAMES_EMBEDDINGS] = "distilbert.embeddings.",
              [NAMES_ENCODER] = "distilbert.transformer.",
              [NAMES_POOLER] = "pre_classifier.",
              [NAMES_MLM] = "vocab_",
              [NAMES_QA] = "qa_outputs.",
              [NAMES_CLASSIFIER] = "classifier."},
    ENCODER("distilbert."),
};
