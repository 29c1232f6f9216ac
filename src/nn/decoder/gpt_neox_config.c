/* config.json of GPT-NeoX, as `transformers` 4 and 5 write it. */
#include "nn/decoder/decoder_config.h"

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
    ROW("max_position_embeddings", INT, n_positions, 1, 1 << 20, false),
    ROW("layer_norm_eps", REAL, norm_eps, 0, 1, true),
    ROW("hidden_dropout", REAL, hidden_dropout, 0, 0.99, false),
    ROW("attention_dropout", REAL, attention_dropout, 0, 0.99, false),
    ROW("initializer_range", REAL, initializer_range, 0, 10, false),
};

enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/* The defaults of `transformers`. */
static const struct decoder_config defaults = {.n_positions = 2048,
                                               .hidden_size = 6144,
                                               .feed_forward_size = 24576,
                                               .n_layers = 44,
                                               .n_heads = 64,
                                               .norm_eps = 1e-5,
                                               .initializer_range = 0.02,
                                               .positions = LAYER_POSITIONS_ROTARY,
                                               .rotary = {.theta = 10000}};

static const struct decoder_constant constants[] = {
    {"attention_bias", true, "attention without biases beside a feed-forward that has them"},
};

static const struct decoder_rotary_keys rotary_keys = {
    .theta = "rotary_emb_base", .part = "rotary_pct", .usual_part = 0.25};

/* The approximations have one formula in `transformers`. */
static struct status parse_activation(struct decoder_config *c, const json_t *object, const char *source)
{
    const char *name = "gelu";
    TRY(json_get_string(object, source, "hidden_act", false, &name));
    bool is_exact = strcmp(name, "gelu") == 0;
    FAIL_IF(!is_exact && strcmp(name, "gelu_fast") != 0 && strcmp(name, "gelu_new") != 0 &&
                strcmp(name, "gelu_pytorch_tanh") != 0,
            STATUS_DATA, "%s: \"hidden_act\" is \"%.40s\": kiln has \"gelu\", \"gelu_fast\" and \"gelu_new\"",
            source, name);
    c->activation = is_exact ? LAYER_GELU_EXACT : LAYER_GELU_TANH;
    return status_ok();
}

struct status gpt_neox_config_parse(struct decoder_config *c, const json_t *object, const char *source)
{
    *c = defaults;
    c->is_parallel = true;
    TRY(config_fields_parse(c, fields, N_FIELDS, false, object, source));
    FAIL_IF(c->hidden_size % c->n_heads != 0, STATUS_DATA,
            "%s: \"hidden_size\" %lld does not divide into %lld heads", source, (long long)c->hidden_size,
            (long long)c->n_heads);
    c->embedding_dropout = c->hidden_dropout;
    TRY(decoder_config_check(constants, sizeof constants / sizeof constants[0], object, source));
    TRY(parse_activation(c, object, source));
    TRY(json_get_bool(object, source, "use_parallel_residual", false, &c->is_parallel));
    c->own_decoder = !json_is_true(json_object_get(object, "tie_word_embeddings"));
    return decoder_rotary_parse(c, &rotary_keys, object, source);
}

json_t *gpt_neox_config_to_json(const struct decoder_config *c)
{
    const char *activation = c->activation == LAYER_GELU_EXACT ? "gelu" : "gelu_fast";
    return decoder_config_numbers(
        c, fields, N_FIELDS,
        json_pack("{s:s, s:[s], s:s, s:b, s:b, s:b, s:f, s:f, s:o}", "model_type", "gpt_neox",
                  "architectures", "GPTNeoXForCausalLM", "hidden_act", activation, "use_parallel_residual",
                  c->is_parallel, "attention_bias", 1, "tie_word_embeddings", !c->own_decoder,
                  "rotary_emb_base", c->rotary.theta, "rotary_pct", decoder_rotary_part(c), "rope_scaling",
                  decoder_rotary_to_json(&c->rotary)));
}

struct status gpt_neox_config_same(const struct decoder_config *a, const struct decoder_config *b)
{
    return config_fields_same(a, b, fields, N_FIELDS);
}
