#include "nn/gpt/gpt_config.h"

#include <string.h>

/* Keys of a number in one format. */
struct field_key {
    const char *name, *other; /* NULL: the format has no such key; `other` is one that published files have */
    double standard;          /* default of `transformers`, where a file has neither key */
};

/* One row a number: its keys, where it is kept, and its limits. */
struct field {
    struct field_key gpt2, bloom;
    size_t offset;
    bool is_real;
    double min, max;
    bool architecture; /* two models that differ here are two networks: they cannot share weights */
};

#define KEY(name, other, standard)                                                                           \
    {                                                                                                        \
        name, other, standard                                                                                \
    }
#define NO_KEY                                                                                               \
    {                                                                                                        \
        NULL, NULL, 0                                                                                        \
    }
#define INT(gpt2, bloom, field, min, max)                                                                    \
    {                                                                                                        \
        gpt2, bloom, offsetof(struct gpt_config, field), false, min, max, true                               \
    }
#define REAL(gpt2, bloom, field, min, max)                                                                   \
    {                                                                                                        \
        gpt2, bloom, offsetof(struct gpt_config, field), true, min, max, false                               \
    }

static const struct field fields[] = {
    INT(KEY("vocab_size", NULL, 0), KEY("vocab_size", NULL, 0), vocab_size, 0, 1 << 24),
    INT(KEY("n_positions", "max_position_embeddings", 1024), KEY("seq_length", NULL, 2048), n_positions, 1,
        65536),
    INT(KEY("n_embd", "hidden_size", 768), KEY("hidden_size", "n_embed", 64), hidden_size, 8, 1 << 16),
    INT(KEY("n_layer", "num_hidden_layers", 12), KEY("n_layer", "num_hidden_layers", 2), n_layers, 1, 1024),
    INT(KEY("n_head", "num_attention_heads", 12), KEY("n_head", "num_attention_heads", 8), n_heads, 1, 1024),
    INT(KEY("n_inner", NULL, 0), NO_KEY, feed_forward_size, 0, 1 << 18),
    REAL(KEY("embd_pdrop", NULL, 0.1), NO_KEY, embedding_dropout, 0, 0.99),
    REAL(KEY("resid_pdrop", NULL, 0.1), KEY("hidden_dropout", NULL, 0), hidden_dropout, 0, 0.99),
    REAL(KEY("attn_pdrop", NULL, 0.1), KEY("attention_dropout", NULL, 0), attention_dropout, 0, 0.99),
    {KEY("layer_norm_epsilon", NULL, 1e-5), KEY("layer_norm_epsilon", NULL, 1e-5),
     offsetof(struct gpt_config, norm_eps), true, 0, 1, true},
    REAL(KEY("initializer_range", NULL, 0.02), KEY("initializer_range", NULL, 0.02), initializer_range, 0,
         10),
};

enum { N_FIELDS = sizeof fields / sizeof fields[0] };

static double *real_field(const struct gpt_config *c, const struct field *f)
{
    return (double *)((char *)c + f->offset);
}

static int64_t *int_field(const struct gpt_config *c, const struct field *f)
{
    return (int64_t *)((char *)c + f->offset);
}

/* null counts as absent. */
static bool has(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value != NULL && !json_is_null(value);
}

static const struct field_key *key_of(const struct field *f, const struct gpt_config *c)
{
    return c->alibi ? &f->bloom : &f->gpt2;
}

static struct status parse_field(struct gpt_config *c, const struct field *f, const json_t *object,
                                 const char *source)
{
    const struct field_key *k = key_of(f, c);
    const char *key = k->name != NULL && k->other != NULL && !has(object, k->name) ? k->other : k->name;
    double value = k->standard;
    bool given = key != NULL && has(object, key);
    if (f->is_real) {
        *real_field(c, f) = k->standard;
        TRY(given ? json_get_real(object, source, key, true, real_field(c, f)) : status_ok());
        value = *real_field(c, f);
    } else {
        *int_field(c, f) = (int64_t)k->standard;
        TRY(given ? json_get_int(object, source, key, true, int_field(c, f)) : status_ok());
        value = (double)*int_field(c, f);
    }
    return value >= f->min && value <= f->max
               ? status_ok()
               : status_error(STATUS_DATA, "%s: \"%s\" is %g, but must lie between %g and %g", source, key,
                              value, f->min, f->max);
}

/* Keys with one supported value: another one is another network, which must not be computed silently. */
struct constant {
    const char *key;
    bool wanted;
    const char *why;
};

static const struct constant gpt2_constants[] = {
    {"scale_attn_weights", true, "scores that are not divided by the root of a head's size"},
    {"scale_attn_by_inverse_layer_idx", false, "scores that are divided by the layer's number"},
    {"add_cross_attention", false, "attention to another network"},
    {"tie_word_embeddings", true, "a decoder of its own"},
};

static const struct constant bloom_constants[] = {
    {"apply_residual_connection_post_layernorm", false, "a residual stream behind the norm"},
    {"tie_word_embeddings", true, "a decoder of its own"},
};

static struct status check_constants(const struct constant *rows, size_t n, const json_t *object,
                                     const char *source)
{
    for (size_t i = 0; i < n; i++) {
        bool value = rows[i].wanted;
        if (has(object, rows[i].key)) {
            TRY(json_get_bool(object, source, rows[i].key, false, &value));
        }
        FAIL_IF(value != rows[i].wanted, STATUS_DATA, "%s: \"%s\" is %s: kiln has no decoder with %s", source,
                rows[i].key, value ? "true" : "false", rows[i].why);
    }
    return status_ok();
}

static struct status parse_numbers(struct gpt_config *c, const json_t *object, const char *source)
{
    for (int i = 0; i < N_FIELDS; i++) {
        TRY(parse_field(c, &fields[i], object, source));
    }
    if (c->feed_forward_size == 0) {
        c->feed_forward_size = 4 * c->hidden_size;
    }
    return c->hidden_size % c->n_heads == 0
               ? status_ok()
               : status_error(STATUS_DATA, "%s: a width of %lld does not divide into %lld heads", source,
                              (long long)c->hidden_size, (long long)c->n_heads);
}

struct status gpt2_config_parse(struct gpt_config *c, const json_t *object, const char *source)
{
    const char *activation = "gelu_new";
    *c = (struct gpt_config){0};
    TRY(parse_numbers(c, object, source));
    TRY(check_constants(gpt2_constants, sizeof gpt2_constants / sizeof gpt2_constants[0], object, source));
    TRY(json_get_string(object, source, "activation_function", false, &activation));
    bool is_exact = strcmp(activation, "gelu") == 0;
    FAIL_IF(!is_exact && strcmp(activation, "gelu_new") != 0 && strcmp(activation, "gelu_pytorch_tanh") != 0,
            STATUS_DATA, "%s: \"activation_function\" is \"%.40s\": kiln has \"gelu\" and \"gelu_new\"",
            source, activation);
    c->gelu = is_exact ? LAYER_GELU_EXACT : LAYER_GELU_TANH;
    return status_ok();
}

struct status bloom_config_parse(struct gpt_config *c, const json_t *object, const char *source)
{
    *c = (struct gpt_config){.alibi = true};
    TRY(check_constants(bloom_constants, sizeof bloom_constants / sizeof bloom_constants[0], object, source));
    TRY(parse_numbers(c, object, source));
    c->gelu = LAYER_GELU_TANH;
    return status_ok();
}

static json_t *numbers_to_json(const struct gpt_config *c)
{
    json_t *root = json_object();
    bool complete = root != NULL;
    for (int i = 0; i < N_FIELDS; i++) {
        const struct field *f = &fields[i];
        const char *key = key_of(f, c)->name;
        json_t *value = f->is_real ? json_real(*real_field(c, f)) : json_integer(*int_field(c, f));
        if (key == NULL) {
            json_decref(value);
        } else {
            complete &= json_object_set_new(root, key, value) == 0;
        }
    }
    if (!complete) {
        json_decref(root);
        return NULL;
    }
    return root;
}

/* Adds what `more` has; takes it. */
static json_t *with(json_t *root, json_t *more)
{
    bool complete = root != NULL && more != NULL && json_object_update(root, more) == 0;
    json_decref(more);
    if (!complete) {
        json_decref(root);
        return NULL;
    }
    return root;
}

json_t *gpt2_config_to_json(const struct gpt_config *c)
{
    const char *activation = c->gelu == LAYER_GELU_EXACT ? "gelu" : "gelu_new";
    return with(numbers_to_json(c),
                json_pack("{s:s, s:[s], s:s, s:I, s:b}", "model_type", "gpt2", "architectures",
                          "GPT2LMHeadModel", "activation_function", activation, "n_ctx",
                          (json_int_t)c->n_positions, "tie_word_embeddings", 1));
}

json_t *bloom_config_to_json(const struct gpt_config *c)
{
    return with(numbers_to_json(c),
                json_pack("{s:s, s:[s], s:b, s:b}", "model_type", "bloom", "architectures",
                          "BloomForCausalLM", "apply_residual_connection_post_layernorm", 0,
                          "tie_word_embeddings", 1));
}

struct status gpt_config_same_architecture(const struct gpt_config *a, const struct gpt_config *b)
{
    for (int i = 0; i < N_FIELDS; i++) {
        const struct field *f = &fields[i];
        /* kiln's own limit */
        bool is_limit = f->offset == offsetof(struct gpt_config, n_positions) && a->alibi;
        if (!f->architecture || is_limit || f->offset == offsetof(struct gpt_config, vocab_size)) {
            continue;
        }
        double of_a = f->is_real ? *real_field(a, f) : (double)*int_field(a, f);
        double of_b = f->is_real ? *real_field(b, f) : (double)*int_field(b, f);
        if ((float)of_a != (float)of_b) { /* GGUF has real numbers in fp32 */
            return status_error(STATUS_DATA, "\"%s\" is %.9g there and %.9g here", key_of(f, a)->name, of_a,
                                of_b);
        }
    }
    return a->gelu == b->gelu && a->alibi == b->alibi
               ? status_ok()
               : status_error(STATUS_DATA, "the activation or the positions differ");
}
