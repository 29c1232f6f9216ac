#include "nn/modernbert/modernbert_config.h"

#include "nn/config_field.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define ROW(key, kind, field, min, max, architecture)                                                        \
    {                                                                                                        \
        {key, JSON_FIELD_##kind, offsetof(struct modernbert_config, field)}, NULL, min, max, architecture    \
    }

static const struct config_field fields[] = {
    ROW("vocab_size", INT, vocab_size, 0, 1 << 24, false),
    ROW("hidden_size", INT, hidden_size, 8, 1 << 16, true),
    ROW("intermediate_size", INT, feed_forward_size, 1, 1 << 18, true),
    ROW("num_hidden_layers", INT, n_layers, 1, 1024, true),
    ROW("num_attention_heads", INT, n_heads, 1, 1024, true),
    ROW("max_position_embeddings", INT, n_positions, 1, 1 << 16, false),
    ROW("local_attention", INT, local_attention, 2, 1 << 20, true),
    ROW("global_attn_every_n_layers", INT, global_every, 1, 1024, true),
    ROW("global_rope_theta", REAL, global_theta, 1, 1e12, true),
    ROW("local_rope_theta", REAL, local_theta, 1, 1e12, true),
    ROW("norm_eps", REAL, norm_eps, 0, 1, true),
    ROW("embedding_dropout", REAL, embedding_dropout, 0, 0.99, false),
    ROW("classifier_dropout", REAL, classifier_dropout, 0, 0.99, false),
    ROW("initializer_range", REAL, initializer_range, 0, 10, false),
};

enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/* ModernBERT-base. */
static const struct modernbert_config defaults = {.hidden_size = 768,
                                                  .feed_forward_size = 1152,
                                                  .n_layers = 22,
                                                  .n_heads = 12,
                                                  .n_positions = 8192,
                                                  .local_attention = 128,
                                                  .global_every = 3,
                                                  .global_theta = 160000,
                                                  .local_theta = 10000,
                                                  .norm_eps = 1e-5,
                                                  .initializer_range = 0.02};

#define NO_BIAS "the model is without biases but the decoder's"

static const struct config_constant constants[] = {
    {"hidden_activation", "\"gelu\"", "the gate's function is the exact GELU"},
    {"classifier_activation", "\"gelu\"", "the heads' activation is the exact GELU"},
    {"attention_bias", "false", NO_BIAS},
    {"mlp_bias", "false", NO_BIAS},
    {"norm_bias", "false", NO_BIAS},
    {"classifier_bias", "false", NO_BIAS},
    {"decoder_bias", "true", NO_BIAS},
    {"tie_word_embeddings", "true", "the decoder's weight is that of the word embedding"},
    {"rope_scaling", "null", "its rotary positions are not scaled"},
    {"attention_dropout", "0", "dropouts inside its layers are not built"},
    {"mlp_dropout", "0", "dropouts inside its layers are not built"},
    {"quantization_config", "null", "quantized weights are not read"},
};

enum { N_CONSTANTS = sizeof constants / sizeof constants[0] };

/* Where transformers 5 has the thetas: an object of each kind of layer in "rope_parameters". */
static struct status parse_theta(double *theta, const json_t *parameters, const char *kind,
                                 const char *source)
{
    const json_t *of_kind = json_object_get(parameters, kind);
    const char *type = "default";
    if (!json_is_object(of_kind)) {
        return status_ok();
    }
    TRY(json_get_string(of_kind, source, "rope_type", false, &type));
    FAIL_IF(strcmp(type, "default") != 0, STATUS_DATA,
            "%s: \"rope_type\" of \"%s\" is \"%.40s\", but must be \"default\": ModernBERT's rotary "
            "positions are "
            "not scaled",
            source, kind, type);
    TRY(json_get_real(of_kind, source, "rope_theta", false, theta));
    FAIL_IF(!(*theta > 1), STATUS_DATA, "%s: \"rope_theta\" of \"%s\" is %g, but must be above 1", source,
            kind, *theta);
    return status_ok();
}

static bool is_global(const json_t *types, int64_t layer)
{
    const char *type = json_string_value(json_array_get(types, (size_t)layer));
    return type != NULL && strcmp(type, "full_attention") == 0;
}

static bool is_local(const json_t *types, int64_t layer)
{
    const char *type = json_string_value(json_array_get(types, (size_t)layer));
    return type != NULL && strcmp(type, "sliding_attention") == 0;
}

/* "layer_types" of transformers 5: global layers are every n-th, from the first on. */
static struct status parse_layer_types(struct modernbert_config *c, const json_t *object, const char *source)
{
    const json_t *types = json_object_get(object, "layer_types");
    int64_t every = 1, n = c->n_layers;
    if (types == NULL || json_is_null(types)) {
        return status_ok();
    }
    while (every < n && !is_global(types, every)) {
        every++;
    }
    bool fits = json_is_array(types) && (int64_t)json_array_size(types) == n;
    for (int64_t i = 0; i < n && fits; i++) {
        fits = i % every == 0 ? is_global(types, i) : is_local(types, i);
    }
    FAIL_IF(!fits, STATUS_DATA,
            "%s: \"layer_types\" must have \"full_attention\" for layer 0 and every n-th of %lld, and "
            "\"sliding_attention\" for the others: kiln computes no other order",
            source, (long long)n);
    c->global_every = every;
    return status_ok();
}

static struct status parse_pooling(struct modernbert_config *c, const json_t *object, const char *source)
{
    const char *pooling = "cls";
    TRY(json_get_string(object, source, "classifier_pooling", false, &pooling));
    c->pools_mean = strcmp(pooling, "mean") == 0;
    return c->pools_mean || strcmp(pooling, "cls") == 0
               ? status_ok()
               : status_error(STATUS_DATA,
                              "%s: \"classifier_pooling\" is \"%.40s\", but must be \"cls\" or \"mean\"",
                              source, pooling);
}

/* Ids that other programs read, kept as they are: null where they are no number. */
static const char *const kept_ids[MODERNBERT_N_IDS] = {"pad_token_id", "bos_token_id", "eos_token_id",
                                                       "cls_token_id", "sep_token_id"};

static void parse_ids(struct modernbert_config *c, const json_t *object)
{
    for (int i = 0; i < MODERNBERT_N_IDS; i++) {
        const json_t *id = json_object_get(object, kept_ids[i]);
        c->ids[i] =
            json_is_integer(id) && json_integer_value(id) < c->vocab_size ? json_integer_value(id) : -1;
    }
}

static bool put_ids(json_t *object, const struct modernbert_config *c)
{
    bool complete = true;
    for (int i = 0; i < MODERNBERT_N_IDS && complete; i++) {
        json_t *id = c->ids[i] < 0 ? json_null() : json_integer(c->ids[i]);
        complete = json_object_set_new(object, kept_ids[i], id) == 0;
    }
    return complete;
}

struct status modernbert_config_parse(struct modernbert_config *c, const json_t *object, const char *source)
{
    const json_t *parameters = json_object_get(object, "rope_parameters");
    *c = defaults;
    TRY(config_fields_parse(c, fields, N_FIELDS, false, object, source));
    TRY(config_constants_check(constants, N_CONSTANTS, object, source));
    TRY(parse_theta(&c->global_theta, parameters, "full_attention", source));
    TRY(parse_theta(&c->local_theta, parameters, "sliding_attention", source));
    TRY(parse_layer_types(c, object, source));
    TRY(parse_pooling(c, object, source));
    parse_ids(c, object);
    FAIL_IF(c->hidden_size % c->n_heads != 0 || c->hidden_size / c->n_heads % 2 != 0, STATUS_DATA,
            "%s: \"hidden_size\" %lld does not divide into %lld heads of an even number of columns, of which "
            "rotary positions turn pairs",
            source, (long long)c->hidden_size, (long long)c->n_heads);
    return model_labels_parse(&c->labels, object, source);
}

/* The keys of transformers 4, which transformers 5 reads too. */
json_t *modernbert_config_to_json(const struct modernbert_config *c, const char *architecture)
{
    json_t *object = json_pack("{s:[s], s:s, s:s, s:s, s:s}", "architectures", architecture, "model_type",
                               "modernbert", "hidden_activation", "gelu", "classifier_activation", "gelu",
                               "classifier_pooling", c->pools_mean ? "mean" : "cls");
    bool complete = object != NULL && config_fields_put(object, c, fields, N_FIELDS) && put_ids(object, c) &&
                    model_labels_to_json(&c->labels, object);
    if (!complete) {
        json_decref(object);
        return NULL;
    }
    return object;
}

struct status modernbert_config_same(const struct modernbert_config *a, const struct modernbert_config *b)
{
    return config_fields_same(a, b, fields, N_FIELDS);
}
