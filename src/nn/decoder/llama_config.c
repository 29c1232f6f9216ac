/* config.json of Llama's relatives, as `transformers` writes it. */
#include "nn/decoder/decoder_config.h"

#include "nn/config_field.h"

#include <stddef.h>
#include <string.h>

#define ROW(key, kind, field, min, max, architecture)                                                        \
    {                                                                                                        \
        {key, JSON_FIELD_##kind, offsetof(struct decoder_config, field)}, NULL, min, max, architecture       \
    }

static const struct config_field fields[] = {
    ROW("vocab_size", INT, vocab_size, 0, 1 << 24, false),
    ROW("hidden_size", INT, hidden_size, 8, 1 << 16, true),
    ROW("intermediate_size", INT, feed_forward_size, 1, 1 << 18, true),
    ROW("num_hidden_layers", INT, n_layers, 1, 1024, true),
    ROW("num_attention_heads", INT, n_heads, 1, 1024, true),
    ROW("num_key_value_heads", INT, n_kv_heads, 0, 1024, true),
    ROW("head_dim", INT, head_size, 0, 256, true),
    ROW("max_position_embeddings", INT, n_positions, 1, 1 << 20, false),
    ROW("rms_norm_eps", REAL, norm_eps, 0, 1, true),
    ROW("attention_dropout", REAL, attention_dropout, 0, 0.99, false),
    ROW("initializer_range", REAL, initializer_range, 0, 10, false),
};

enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/* Dropout of each sublayer's output, under kiln's own key; and Phi-3's, of the embeddings too. */
static const struct config_field own_dropouts[] = {
    ROW("hidden_dropout", REAL, hidden_dropout, 0, 0.99, false)};
static const struct config_field phi3_dropouts[] = {
    ROW("resid_pdrop", REAL, hidden_dropout, 0, 0.99, false),
    ROW("embd_pdrop", REAL, embedding_dropout, 0, 0.99, false)};

/* The names of classes begin alike. */
#define NAMES_AND(type, classes, rows)                                                                       \
    .model_type = type, .class_name = classes "ForCausalLM", .bare_class = classes "Model",                  \
    .dropouts = rows, .n_dropouts = sizeof rows / sizeof rows[0]
#define NAMES(type, classes) NAMES_AND(type, classes, own_dropouts)

static const struct llama_kind kinds[] = {
    {NAMES("llama", "Llama")},
    {NAMES("mistral", "Mistral"), .has_window = true, .usual_window = 4096},
    {NAMES("qwen2", "Qwen2"), .qkv_bias = true},
    {NAMES("qwen3", "Qwen3"), .qk_norm = LAYER_QK_NORM_HEADS, .usual_head_size = 128},
    {NAMES("olmo2", "Olmo2"), .qk_norm = LAYER_QK_NORM_ALL, .usual_eps = 1e-5},
    {NAMES_AND("phi3", "Phi3", phi3_dropouts), .has_window = true, .usual_eps = 1e-5},
    {NAMES("smollm3", "SmolLM3"), .usually_tied = true, .has_unturned = true, .usual_theta = 2e6},
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static const struct decoder_config defaults = {.n_positions = 2048,
                                               .hidden_size = 4096,
                                               .feed_forward_size = 11008,
                                               .n_layers = 32,
                                               .n_heads = 32,
                                               .norm_eps = 1e-6,
                                               .initializer_range = 0.02,
                                               .activation = LAYER_SWIGLU,
                                               .norm = LAYER_NORM_RMS,
                                               .positions = LAYER_POSITIONS_ROTARY,
                                               .rotary = {.theta = 10000}};

static const struct decoder_rotary_keys rotary_keys = {.theta = "rope_theta",
                                                       .part = "partial_rotary_factor"};

/* ---- the forms that kiln has ---- */

/* Sizes that a file does not have follow from others. */
static struct status set_heads(struct decoder_config *c, const char *source)
{
    c->head_size = c->head_size > 0 ? c->head_size : c->llama->usual_head_size;
    FAIL_IF(c->head_size == 0 && c->hidden_size % c->n_heads != 0, STATUS_DATA,
            "%s: \"hidden_size\" %lld does not divide into %lld heads, and there is no \"head_dim\"", source,
            (long long)c->hidden_size, (long long)c->n_heads);
    FAIL_IF(c->n_kv_heads > 0 && c->n_heads % c->n_kv_heads != 0, STATUS_DATA,
            "%s: \"num_attention_heads\" %lld does not divide into \"num_key_value_heads\" %lld", source,
            (long long)c->n_heads, (long long)c->n_kv_heads);
    c->n_kv_heads = c->n_kv_heads > 0 ? c->n_kv_heads : c->n_heads;
    c->head_size = c->head_size > 0 ? c->head_size : c->hidden_size / c->n_heads;
    return status_ok();
}

/* The greatest distance of a key from its query is one less than "sliding_window", which counts both.  A
 * window that no text is longer than is none.  Qwen 2's is of some layers alone, and off unless a key says
 * so. */
static struct status parse_window(struct decoder_config *c, const json_t *object, const char *source)
{
    const json_t *given = json_object_get(object, "sliding_window");
    int64_t window = c->llama->usual_window;
    bool used = false;
    TRY(json_get_bool(object, source, "use_sliding_window", false, &used));
    FAIL_IF(used && !c->llama->has_window, STATUS_DATA,
            "%s: \"use_sliding_window\" is true: kiln has no %s model with windows", source,
            c->llama->model_type);
    if (c->llama->has_window && given != NULL && !json_is_null(given)) {
        TRY(json_get_int(object, source, "sliding_window", true, &window));
        FAIL_IF(window < 2, STATUS_DATA, "%s: \"sliding_window\" is %lld, but must be at least 2", source,
                (long long)window);
    }
    bool is_off = !c->llama->has_window || window == 0 || (given != NULL && json_is_null(given));
    c->window = is_off || window >= c->n_positions ? 0 : window - 1;
    return status_ok();
}

/* "layer_types" of transformers 5, of relatives without windows. */
static struct status check_types(const struct decoder_config *c, const json_t *object, const char *source)
{
    const json_t *types = json_object_get(object, "layer_types"), *type;
    size_t i;
    json_array_foreach(types, i, type)
    {
        const char *text = json_string_value(type);
        FAIL_IF(
            !c->llama->has_window && (text == NULL || strcmp(text, "full_attention") != 0), STATUS_DATA,
            "%s: \"layer_types\" of layer %zu is %s: kiln has \"full_attention\" in all layers of a %s model",
            source, i, text == NULL ? "no text" : text, c->llama->model_type);
    }
    return status_ok();
}

/* ---- layers without positions ---- */

/* The cycle of the layers whose number in a list is 0. */
static struct status find_cycle(struct decoder_config *c, const json_t *list, const char *source)
{
    int64_t first = -1, second = -1, n = c->n_layers;
    FAIL_IF(!json_is_array(list) || (int64_t)json_array_size(list) < n, STATUS_DATA,
            "%s: \"no_rope_layers\" is not a list of a number for each of the %lld layers", source,
            (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const json_t *number = json_array_get(list, (size_t)i);
        json_int_t value = json_integer_value(number);
        FAIL_IF(!json_is_integer(number) || value < 0 || value > 1, STATUS_DATA,
                "%s: \"no_rope_layers\" of layer %lld must be 1, or 0 for a layer without positions", source,
                (long long)i);
        first = value == 0 && first < 0 ? i : first;
        second = value == 0 && first >= 0 && first < i && second < 0 ? i : second;
    }
    int64_t every = first < 0 ? 0 : second < 0 ? n : second - first;
    c->unturned = (struct layer_cycle){every, every > 0 ? first % every : 0};
    for (int64_t i = 0; i < n; i++) {
        bool is_one = json_integer_value(json_array_get(list, (size_t)i)) == 0;
        FAIL_IF(is_one != layer_cycle_has(&c->unturned, i), STATUS_DATA,
                "%s: \"no_rope_layers\" of layer %lld is %d: kiln has layers without positions at equal "
                "distances, here %lld",
                source, (long long)i, !is_one, (long long)every);
    }
    return status_ok();
}

/* Every interval-th layer, or those of a list. */
static struct status parse_unturned(struct decoder_config *c, const json_t *object, const char *source)
{
    int64_t every = 4;
    json_t *list = json_object_get(object, "no_rope_layers");
    if (list != NULL && !json_is_null(list)) {
        return find_cycle(c, list, source);
    }
    TRY(json_get_int(object, source, "no_rope_layer_interval", false, &every));
    FAIL_IF(every < 1, STATUS_DATA, "%s: \"no_rope_layer_interval\" is %lld, but must be at least 1", source,
            (long long)every);
    if (every <= c->n_layers) {
        c->unturned = (struct layer_cycle){2 * every > c->n_layers ? c->n_layers : every, every - 1};
    }
    return status_ok();
}

/* "no_rope_layers"; NULL if memory runs out. */
static json_t *turned_to_json(const struct decoder_config *c)
{
    json_t *list = json_array();
    bool complete = list != NULL;
    for (int64_t i = 0; complete && i < c->n_layers; i++) {
        complete = json_array_append_new(list, json_integer(!layer_cycle_has(&c->unturned, i))) == 0;
    }
    if (!complete) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static struct status check_forms(const json_t *object, const char *source)
{
    const char *activation = "silu";
    bool mlp_bias = false;
    TRY(json_get_string(object, source, "hidden_act", false, &activation));
    TRY(json_get_bool(object, source, "mlp_bias", false, &mlp_bias));
    FAIL_IF(strcmp(activation, "silu") != 0, STATUS_DATA,
            "%s: \"hidden_act\" is \"%.40s\": kiln's gate of these models is \"silu\"", source, activation);
    FAIL_IF(mlp_bias, STATUS_DATA, "%s: \"mlp_bias\" is true: kiln has no such feed-forward with biases",
            source);
    return status_ok();
}

static struct status find_kind(const struct llama_kind **kind, const json_t *object, const char *source)
{
    const char *type = kinds[0].model_type;
    TRY(json_get_string(object, source, "model_type", false, &type));
    int i = 0;
    while (i < N_KINDS && strcmp(type, kinds[i].model_type) != 0) {
        i++;
    }
    FAIL_IF(i == N_KINDS, STATUS_DATA, "%s: \"model_type\" is \"%.40s\", which is no relative of Llama",
            source, type);
    *kind = &kinds[i];
    return status_ok();
}

/* Llama's bias of attention would be one of the output too. */
static struct status parse_bias(struct decoder_config *c, const json_t *object, const char *source)
{
    bool bias = false;
    TRY(json_get_bool(object, source, "attention_bias", false, &bias));
    FAIL_IF(bias && !c->llama->qkv_bias, STATUS_DATA,
            "%s: \"attention_bias\" is true: kiln's attention of %s models has no biases", source,
            c->llama->model_type);
    c->qkv_bias = c->llama->qkv_bias;
    return status_ok();
}

bool llama_config_is_tied(const json_t *object)
{
    const struct llama_kind *kind = &kinds[0];
    struct status found = find_kind(&kind, object, "config.json");
    const json_t *tied = json_object_get(object, "tie_word_embeddings");
    return json_is_boolean(tied) ? json_is_true(tied) : found.code == STATUS_OK && kind->usually_tied;
}

struct status llama_config_parse(struct decoder_config *c, const json_t *object, const char *source)
{
    *c = defaults;
    TRY(find_kind(&c->llama, object, source));
    bool tied = c->llama->usually_tied;
    c->qk_norm = c->llama->qk_norm;
    c->norm_eps = c->llama->usual_eps > 0 ? c->llama->usual_eps : c->norm_eps;
    c->rotary.theta = c->llama->usual_theta > 0 ? c->llama->usual_theta : c->rotary.theta;
    TRY(config_fields_parse(c, fields, N_FIELDS, false, object, source));
    TRY(config_fields_parse(c, c->llama->dropouts, c->llama->n_dropouts, false, object, source));
    TRY(set_heads(c, source));
    TRY(check_forms(object, source));
    TRY(parse_bias(c, object, source));
    TRY(parse_window(c, object, source));
    TRY(check_types(c, object, source));
    if (c->llama->has_unturned) {
        TRY(parse_unturned(c, object, source));
    }
    TRY(json_get_bool(object, source, "tie_word_embeddings", false, &tied));
    c->own_decoder = !tied;
    return decoder_rotary_parse(c, &rotary_keys, object, source);
}

json_t *llama_config_to_json(const struct decoder_config *c)
{
    /* absent, the padding would be a piece that few vocabularies have */
    json_t *root = json_pack("{s:s, s:[s], s:s, s:n, s:b, s:f, s:o}", "model_type", c->llama->model_type,
                             "architectures", c->llama->class_name, "hidden_act", "silu", "pad_token_id",
                             "tie_word_embeddings", !c->own_decoder, "rope_theta", c->rotary.theta,
                             "rope_scaling", decoder_rotary_to_json(&c->rotary));
    bool complete = root != NULL && config_fields_put(root, c, fields, N_FIELDS) &&
                    config_fields_put(root, c, c->llama->dropouts, c->llama->n_dropouts);
    if (complete && c->llama->has_window) { /* null, where absence would be a window */
        json_t *window = c->window > 0 ? json_integer(c->window + 1) : json_null();
        complete = json_object_set_new(root, "sliding_window", window) == 0;
    }
    if (complete && c->llama->has_unturned) {
        complete = json_object_set_new(root, "no_rope_layers", turned_to_json(c)) == 0;
    }
    if (!complete) {
        json_decref(root);
        return NULL;
    }
    return root;
}

struct status llama_config_same(const struct decoder_config *a, const struct decoder_config *b)
{
    return config_fields_same(a, b, fields, N_FIELDS);
}
