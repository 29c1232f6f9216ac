#include "nn/bert/bert_config.h"

#include "core/buf.h"
#include "core/log.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The "model_type" that is written for pre-LN layers, which other programs' "bert" does not have: they must
 * stop at it and not compute a different model. */
static const char PRE_LN_TYPE[] = "bert_pre_ln";

const char *const bert_config_model_types[] = {"bert", PRE_LN_TYPE, NULL};

static const struct config_constant constants[] = {
    {"position_embedding_type", "\"absolute\"", "relative positions are not built"},
    {"is_decoder", "false", "causal attention is not built"},
    {"is_encoder_decoder", "false", "decoders are not built"},
    {"add_cross_attention", "false", "cross attention is not built"},
    {"tie_word_embeddings", "true", "the decoder's weight is that of the word embedding"},
    {"pruned_heads", "{}", "every layer has the same heads"},
    {"quantization_config", "null", "quantized weights are not read"},
};

static struct status check_constants(const struct bert_kind *kind, const json_t *object, const char *source)
{
    const struct config_constant activation = {
        kind->activation, "\"gelu\"", "which is the exact form by erf; other activations are not built"};
    TRY(config_constants_check(&activation, 1, object, source));
    return config_constants_check(constants, sizeof constants / sizeof constants[0], object, source);
}

static struct status check_type(const struct bert_config *c, const json_t *object, const char *source)
{
    const char *type = NULL, *own = c->kind->model_type;
    if (json_is_null(json_object_get(object, "model_type"))) {
        return status_ok();
    }
    TRY(json_get_string(object, source, "model_type", false, &type));
    return type == NULL || strcmp(type, own) == 0 ||
                   (c->layer_norm_large_model && strcmp(type, PRE_LN_TYPE) == 0)
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s: \"model_type\" is \"%.60s\", but must be \"%s\" or absent: other models "
                              "are not built",
                              source, type, own);
}

/* Positions are counted behind the padding token by some kinds, as Hugging Face's models do. */
static struct status parse_positions(struct bert_config *c, const json_t *object, const char *source)
{
    int64_t pad = 1;
    if (!c->kind->counts_behind_padding) {
        return status_ok();
    }
    if (!json_is_null(json_object_get(object, "pad_token_id"))) {
        TRY(json_get_int(object, source, "pad_token_id", false, &pad));
    }
    c->first_position = pad + 1;
    return pad >= 0 && c->first_position < c->max_position_embeddings
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s: \"pad_token_id\" is %lld, and positions begin behind it, but "
                              "\"max_position_embeddings\" is %lld",
                              source, (long long)pad, (long long)c->max_position_embeddings);
}

/* Keys in files of Hugging Face, Google and NVIDIA that do not change what kiln computes. */
static bool is_harmless(const struct bert_kind *kind, const char *key)
{
    static const char *const keys[] = {"_name_or_path",
                                       "_num_labels",
                                       "architectures",
                                       "attn_implementation",
                                       "bos_token_id",
                                       "chunk_size_feed_forward",
                                       "classifier_dropout",
                                       "cls_token_id",
                                       "directionality",
                                       "dtype",
                                       "eos_token_id",
                                       "finetuning_task",
                                       "gated_layers",
                                       "gradient_checkpointing",
                                       "id2label",
                                       "label2id",
                                       "mask_token_id",
                                       "model_type",
                                       "num_labels",
                                       "output_all_encoded_layers",
                                       "output_attentions",
                                       "output_hidden_states",
                                       "output_past",
                                       "pad_token_id",
                                       "pooler_fc_size",
                                       "pooler_num_attention_heads",
                                       "pooler_num_fc_layers",
                                       "pooler_size_per_head",
                                       "pooler_type",
                                       "problem_type",
                                       "return_dict",
                                       "sep_token_id",
                                       "torch_dtype",
                                       "torchscript",
                                       "transformers_version",
                                       "unk_token_id",
                                       "use_bfloat16",
                                       "use_cache"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(key, keys[i]) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        if (strcmp(key, constants[i].key) == 0) {
            return true;
        }
    }
    for (int i = 0; i < kind->n_fields; i++) {
        if (strcmp(key, kind->fields[i].at.key) == 0) {
            return true;
        }
    }
    return strcmp(key, kind->activation) == 0;
}

/* Warns of unknown keys: they may be misspelt, or ask for something that kiln lacks. */
static void name_unknown_keys(const struct bert_kind *kind, const json_t *object, const char *source)
{
    struct buf names = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) /* jansson's macro takes no const, but only reads */
    {
        if (!is_harmless(kind, key)) {
            buf_printf(&names, "%s\"%s\"", names.n == 0 ? "" : ", ", key);
        }
    }
    if (names.n > 0) {
        log_warning("%s: unknown here and ignored: %s", source, buf_text(&names));
    }
    buf_fini(&names);
}

static struct status parse_labels(struct bert_config *c, const json_t *object, const char *source)
{
    TRY(model_labels_parse(&c->labels, object, source));
    if (!c->kind->names_dropouts) {
        c->classifier_dropout = c->hidden_dropout_prob;
    }
    if (!c->kind->names_dropouts && !json_is_null(json_object_get(object, "classifier_dropout"))) {
        TRY(json_get_real(object, source, "classifier_dropout", false, &c->classifier_dropout));
    }
    return status_ok();
}

/* ---- gated layers ---- */

bool bert_config_is_gated(const struct bert_config *c, int64_t number)
{
    return number >= 0 && number < BERT_CONFIG_MOST_LAYERS && (c->gated[number / 8] >> number % 8 & 1) != 0;
}

static int64_t count_gated(const struct bert_config *c)
{
    int64_t n = 0;
    for (int64_t i = 0; i < BERT_CONFIG_MOST_LAYERS; i++) {
        n += bert_config_is_gated(c, i);
    }
    return n;
}

static struct status refuse_gated(const json_t *list, const char *source, const char *why)
{
    char *text = json_dumps(list, JSON_ENCODE_ANY | JSON_COMPACT);
    struct status s = status_error(STATUS_DATA, "%s: \"gated_layers\" is %.60s, but must be %s", source,
                                   text == NULL ? "not that" : text, why);
    free(text);
    return s;
}

static struct status parse_gated(struct bert_config *c, const json_t *object, const char *source)
{
    const json_t *list = json_object_get(object, "gated_layers");
    if (list == NULL || json_is_null(list) || (json_is_array(list) && json_array_size(list) == 0)) {
        return status_ok();
    }
    if (!c->layer_norm_large_model) {
        return refuse_gated(list, source, "[] or absent without \"layer_norm_large_model\"");
    }
    bool is_good = json_is_array(list);
    for (size_t i = 0; i < json_array_size(list) && is_good; i++) {
        int64_t number = json_integer_value(json_array_get(list, i)); /* 0 if it is no integer */
        is_good = number > 0 && number < c->num_hidden_layers;
        if (is_good) {
            c->gated[number / 8] |= (unsigned char)(1U << number % 8);
        }
    }
    if (!is_good) {
        return refuse_gated(list, source, "a list of layers behind layer 0");
    }
    c->num_hidden_layers -= count_gated(c);
    return status_ok();
}

/* Adds the list, and the count of all layers; false if memory runs out. */
static bool add_gated(json_t *object, const struct bert_config *c)
{
    int64_t n = c->num_hidden_layers + count_gated(c);
    json_t *list = json_array();
    bool complete = list != NULL;
    for (int64_t i = 0; i < n && complete; i++) {
        complete = !bert_config_is_gated(c, i) || json_array_append_new(list, json_integer(i)) == 0;
    }
    complete = complete && (n == c->num_hidden_layers || json_object_set(object, "gated_layers", list) == 0);
    json_decref(list);
    return complete && (n == c->num_hidden_layers ||
                        json_object_set_new(object, "num_hidden_layers", json_integer(n)) == 0);
}

int64_t bert_config_layer_number(const struct bert_config *c, int64_t layer)
{
    int64_t number = 0;
    for (int64_t i = 0; i < layer || bert_config_is_gated(c, number); number++) {
        i += !bert_config_is_gated(c, number);
    }
    return number;
}

/* The key of a number of the configuration, by its place there. */
static const char *key_of(const struct bert_kind *kind, size_t place)
{
    int i = 0;
    while (i < kind->n_fields - 1 && kind->fields[i].at.offset != place) {
        i++;
    }
    return kind->fields[i].at.key;
}

struct status bert_config_parse_kind(struct bert_config *c, const struct bert_kind *kind,
                                     const json_t *object, const char *source)
{
    *c = *kind->defaults;
    c->kind = kind;
    TRY(config_fields_parse(c, kind->fields, kind->n_fields, true, object, source));
    TRY(check_constants(kind, object, source));
    TRY(check_type(c, object, source));
    TRY(parse_positions(c, object, source));
    FAIL_IF(c->hidden_size % c->num_attention_heads != 0, STATUS_DATA,
            "%s: \"%s\" %lld is not a multiple of \"%s\" %lld", source,
            key_of(kind, offsetof(struct bert_config, hidden_size)), (long long)c->hidden_size,
            key_of(kind, offsetof(struct bert_config, num_attention_heads)),
            (long long)c->num_attention_heads);
    TRY(parse_gated(c, object, source));
    TRY(parse_labels(c, object, source));
    name_unknown_keys(kind, object, source);
    return status_ok();
}

struct status bert_config_parse(struct bert_config *c, const json_t *object, const char *source)
{
    return bert_config_parse_kind(c, &bert_kind, object, source);
}

const struct bert_kind *bert_config_kind(const struct bert_config *c)
{
    return c->kind == NULL ? &bert_kind : c->kind;
}

int64_t bert_config_max_length(const struct bert_config *c)
{
    return c->max_position_embeddings - c->first_position;
}

/* Adds the keys of a model with a classifier; false if memory runs out. */
static bool add_labels(json_t *object, const struct bert_config *c)
{
    bool complete = model_labels_to_json(&c->labels, object);
    return bert_config_kind(c)->names_dropouts || c->classifier_dropout == c->hidden_dropout_prob
               ? complete
               : complete &&
                     json_object_set_new(object, "classifier_dropout", json_real(c->classifier_dropout)) == 0;
}

json_t *bert_config_to_json(const struct bert_config *c, const char *architecture)
{
    const struct bert_kind *kind = bert_config_kind(c);
    json_t *object = json_pack("{s:[s], s:s, s:s, s:s*, s:i}", "architectures", architecture, "model_type",
                               c->layer_norm_large_model ? PRE_LN_TYPE : kind->model_type, kind->activation,
                               "gelu", "position_embedding_type", kind->positions, "pad_token_id",
                               c->first_position > 0 ? (int)c->first_position - 1 : 0);
    if (object != NULL && (!config_fields_put(object, c, kind->fields, kind->n_fields) ||
                           !add_gated(object, c) || (c->labels.names != NULL && !add_labels(object, c)))) {
        json_decref(object);
        object = NULL;
    }
    return object;
}

struct status bert_config_same_architecture(const struct bert_config *a, const struct bert_config *b)
{
    const struct bert_kind *kind = bert_config_kind(a);
    TRY(config_fields_same(a, b, kind->fields, kind->n_fields));
    FAIL_IF(kind != bert_config_kind(b) || a->first_position != b->first_position, STATUS_DATA,
            "the kind of BERT, or its first position, is another");
    FAIL_IF(memcmp(a->gated, b->gated, sizeof a->gated) != 0, STATUS_DATA,
            "\"gated_layers\" are others there than here");
    return status_ok();
}

int64_t bert_config_padded_vocab(const struct bert_config *c)
{
    return (c->vocab_size + BERT_VOCAB_MULTIPLE - 1) / BERT_VOCAB_MULTIPLE * BERT_VOCAB_MULTIPLE;
}

int64_t bert_config_n_words(const struct bert_config *c)
{
    return c->n_words == 0 ? c->vocab_size : c->n_words;
}
