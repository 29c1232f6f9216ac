#include "nn/decoder/decoder_config.h"

#include "nn/config_field.h"

#include <stddef.h>
#include <string.h>

#define ROW(key, other, kind, field, min, max, architecture)                                                 \
    {                                                                                                        \
        {key, JSON_FIELD_##kind, offsetof(struct decoder_config, field)}, other, min, max, architecture      \
    }
#define SIZE(key, other, field, min, max) ROW(key, other, INT, field, min, max, true)
#define PART(key, field)                  ROW(key, NULL, REAL, field, 0, 0.99, false)

/* The rows of the vocabulary, which may be padded, and probabilities make no other network. */
static const struct config_field gpt2_fields[] = {
    ROW("vocab_size", NULL, INT, vocab_size, 0, 1 << 24, false),
    SIZE("n_positions", "max_position_embeddings", n_positions, 1, 65536),
    SIZE("n_embd", "hidden_size", hidden_size, 8, 1 << 16),
    SIZE("n_layer", "num_hidden_layers", n_layers, 1, 1024),
    SIZE("n_head", "num_attention_heads", n_heads, 1, 1024),
    SIZE("n_inner", NULL, feed_forward_size, 0, 1 << 18),
    PART("embd_pdrop", embedding_dropout),
    PART("resid_pdrop", hidden_dropout),
    PART("attn_pdrop", attention_dropout),
    ROW("layer_norm_epsilon", NULL, REAL, norm_eps, 0, 1, true),
    ROW("initializer_range", NULL, REAL, initializer_range, 0, 10, false),
};

/* The number of positions is kiln's own limit. */
static const struct config_field bloom_fields[] = {
    ROW("vocab_size", NULL, INT, vocab_size, 0, 1 << 24, false),
    ROW("seq_length", NULL, INT, n_positions, 1, 65536, false),
    SIZE("hidden_size", "n_embed", hidden_size, 8, 1 << 16),
    SIZE("n_layer", "num_hidden_layers", n_layers, 1, 1024),
    SIZE("n_head", "num_attention_heads", n_heads, 1, 1024),
    PART("hidden_dropout", hidden_dropout),
    PART("attention_dropout", attention_dropout),
    ROW("layer_norm_epsilon", NULL, REAL, norm_eps, 0, 1, true),
    ROW("initializer_range", NULL, REAL, initializer_range, 0, 10, false),
};

enum {
    GPT2_N_FIELDS = sizeof gpt2_fields / sizeof gpt2_fields[0],
    BLOOM_N_FIELDS = sizeof bloom_fields / sizeof bloom_fields[0]
};

/* The defaults of `transformers`. */
static const struct decoder_config gpt2_defaults = {.n_positions = 1024,
                                                    .hidden_size = 768,
                                                    .n_layers = 12,
                                                    .n_heads = 12,
                                                    .embedding_dropout = 0.1,
                                                    .hidden_dropout = 0.1,
                                                    .attention_dropout = 0.1,
                                                    .norm_eps = 1e-5,
                                                    .initializer_range = 0.02},
                                   bloom_defaults = {.n_positions = 2048,
                                                     .hidden_size = 64,
                                                     .n_layers = 2,
                                                     .n_heads = 8,
                                                     .norm_eps = 1e-5,
                                                     .initializer_range = 0.02,
                                                     .activation = LAYER_GELU_TANH,
                                                     .positions = LAYER_POSITIONS_ALIBI,
                                                     .embedding_norm = true};

static const struct decoder_constant gpt2_constants[] = {
    {"scale_attn_weights", true, "scores that are not divided by the root of a head's size"},
    {"scale_attn_by_inverse_layer_idx", false, "scores that are divided by the layer's number"},
    {"add_cross_attention", false, "attention to another network"},
    {"tie_word_embeddings", true, "a decoder of its own"},
};

static const struct decoder_constant bloom_constants[] = {
    {"apply_residual_connection_post_layernorm", false, "a residual stream behind the norm"},
    {"tie_word_embeddings", true, "a decoder of its own"},
};

static struct status check_sizes(struct decoder_config *c, const char *source)
{
    c->feed_forward_size = c->feed_forward_size == 0 ? 4 * c->hidden_size : c->feed_forward_size;
    return c->hidden_size % c->n_heads == 0
               ? status_ok()
               : status_error(STATUS_DATA, "%s: a width of %lld does not divide into %lld heads", source,
                              (long long)c->hidden_size, (long long)c->n_heads);
}

struct status gpt2_config_parse(struct decoder_config *c, const json_t *object, const char *source)
{
    const char *activation = "gelu_new";
    *c = gpt2_defaults;
    TRY(config_fields_parse(c, gpt2_fields, GPT2_N_FIELDS, false, object, source));
    TRY(check_sizes(c, source));
    TRY(decoder_config_check(gpt2_constants, sizeof gpt2_constants / sizeof gpt2_constants[0], object,
                             source));
    TRY(json_get_string(object, source, "activation_function", false, &activation));
    bool is_exact = strcmp(activation, "gelu") == 0;
    FAIL_IF(!is_exact && strcmp(activation, "gelu_new") != 0 && strcmp(activation, "gelu_pytorch_tanh") != 0,
            STATUS_DATA, "%s: \"activation_function\" is \"%.40s\": kiln has \"gelu\" and \"gelu_new\"",
            source, activation);
    c->activation = is_exact ? LAYER_GELU_EXACT : LAYER_GELU_TANH;
    return status_ok();
}

struct status bloom_config_parse(struct decoder_config *c, const json_t *object, const char *source)
{
    *c = bloom_defaults;
    TRY(decoder_config_check(bloom_constants, sizeof bloom_constants / sizeof bloom_constants[0], object,
                             source));
    TRY(config_fields_parse(c, bloom_fields, BLOOM_N_FIELDS, false, object, source));
    return check_sizes(c, source);
}

json_t *gpt2_config_to_json(const struct decoder_config *c)
{
    const char *activation = c->activation == LAYER_GELU_EXACT ? "gelu" : "gelu_new";
    return decoder_config_numbers(c, gpt2_fields, GPT2_N_FIELDS,
                                  json_pack("{s:s, s:[s], s:s, s:I, s:b}", "model_type", "gpt2",
                                            "architectures", "GPT2LMHeadModel", "activation_function",
                                            activation, "n_ctx", (json_int_t)c->n_positions,
                                            "tie_word_embeddings", 1));
}

json_t *bloom_config_to_json(const struct decoder_config *c)
{
    return decoder_config_numbers(c, bloom_fields, BLOOM_N_FIELDS,
                                  json_pack("{s:s, s:[s], s:b, s:b}", "model_type", "bloom", "architectures",
                                            "BloomForCausalLM", "apply_residual_connection_post_layernorm", 0,
                                            "tie_word_embeddings", 1));
}

struct status gpt2_config_same(const struct decoder_config *a, const struct decoder_config *b)
{
    return config_fields_same(a, b, gpt2_fields, GPT2_N_FIELDS);
}

struct status bloom_config_same(const struct decoder_config *a, const struct decoder_config *b)
{
    return config_fields_same(a, b, bloom_fields, BLOOM_N_FIELDS);
}
