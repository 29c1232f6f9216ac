#include "model/modernbert/modernbert_family.h"

#include "nn/modernbert/modernbert_model.h"

static struct status parse_config(void *config, const json_t *object, const char *source)
{
    return modernbert_config_parse(config, object, source);
}

static json_t *config_to_json(const void *config, enum model_task task)
{
    return modernbert_config_to_json(config, modernbert_class(task));
}

static struct model_family_sizes sizes(const void *config)
{
    const struct modernbert_config *c = config;
    return (struct model_family_sizes){c->vocab_size, c->n_positions,
                                       c->n_layers,   {c->n_heads, c->hidden_size / c->n_heads, 0},
                                       c->norm_eps,   true};
}

static void set_words(void *config, int64_t vocab_size, int64_t n_words)
{
    struct modernbert_config *c = config;
    c->vocab_size = vocab_size;
    c->n_words = n_words;
}

static struct model_labels *labels(void *config)
{
    struct modernbert_config *c = config;
    return &c->labels;
}

static struct status same_architecture(const void *a, const void *b)
{
    return modernbert_config_same(a, b);
}

/* Scores of texts, of tokens and of answers have the same name. */
static enum model_task task_of(const bool has[NAMES_N_PARTS], const json_t *config)
{
    return has[NAMES_CLASSIFIER] && model_family_names_class(config, "ForTokenClassification")
               ? MODEL_TASK_TOKEN_CLASSIFICATION
           : has[NAMES_CLASSIFIER] && model_family_names_class(config, "ForQuestionAnswering")
               ? MODEL_TASK_QUESTION_ANSWERING
           : has[NAMES_CLASSIFIER] ? MODEL_TASK_SEQUENCE_CLASSIFICATION
           : has[NAMES_MLM]        ? MODEL_TASK_MASKED_LM
                                   : MODEL_TASK_ENCODER;
}

static const char *const types[] = {"modernbert", NULL};
static const char *const bare[] = {"embeddings.", "layers.", "final_norm.", NULL};
static const char *const tied[][2] = {
    {"decoder.weight", "model.embeddings.tok_embeddings.weight"},
    {NULL, NULL},
};
static const struct model_family_join joins[] = {
    {".attn.Wqkv.weight", {".attn.query.weight", ".attn.key.weight", ".attn.value.weight"}, false, false},
    {".mlp.Wi.weight", {".mlp.input.weight", ".mlp.gate.weight"}, false, false},
    {NULL, {NULL}, false, false},
};

const struct model_family modernbert_family = {
    .name = "ModernBERT",
    .model_types = types,
    .config_bytes = sizeof(struct modernbert_config),
    .usual_words = 50368,
    .parse_config = parse_config,
    .config_to_json = config_to_json,
    .sizes = sizes,
    .set_words = set_words,
    .labels = labels,
    .create = modernbert_model_create,
    .same_architecture = same_architecture,
    .class_of = modernbert_class,
    .task_of = task_of,
    .bare_task = MODEL_TASK_ENCODER,
    .root = "model.",
    .bare = bare,
    .joins = joins,
    .tied = tied,
    .tied_pattern = "decoder.weight",
    .tied_part = NAMES_MLM,
    .words = "model.embeddings.tok_embeddings.weight",
    .parts = {[NAMES_EMBEDDINGS] = "model.embeddings.",
              [NAMES_ENCODER] = "model.",
              [NAMES_POOLER] = "head.",
              [NAMES_MLM] = "decoder.",
              [NAMES_CLASSIFIER] = "classifier."},
};
