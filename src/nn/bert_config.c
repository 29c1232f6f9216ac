#include "nn/bert_config.h"

#include <stddef.h>
#include <string.h>

/* One row per number: key, field, kind, default, limits.  Parsing, writing and comparing all go by this
 * table. */
struct field {
    const char *key;
    size_t offset;
    bool real;
    double standard, min, max;
    bool architecture; /* two models that differ here cannot share weights */
};

#define INT(key, standard, min, max)                                                                         \
    {                                                                                                        \
#        key, offsetof(struct bert_config, key), false, standard, min, max, true                             \
    }
#define REAL(key, standard, min, max)                                                                        \
    {                                                                                                        \
#        key, offsetof(struct bert_config, key), true, standard, min, max, false                             \
    }

static const struct field fields[] = {
    INT(vocab_size, 0, 0, 1 << 24),
    INT(hidden_size, 768, 8, 1 << 16),
    INT(num_hidden_layers, 12, 1, 1024),
    INT(num_attention_heads, 12, 1, 1024),
    INT(intermediate_size, 3072, 1, 1 << 18),
    INT(max_position_embeddings, 512, 1, 65536),
    INT(type_vocab_size, 2, 1, 1024),
    REAL(hidden_dropout_prob, 0.1, 0, 0.99),
    REAL(attention_probs_dropout_prob, 0.1, 0, 0.99),
    REAL(initializer_range, 0.02, 0, 10),
    REAL(layer_norm_eps, 1e-12, 0, 1),
};

enum { N_FIELDS = sizeof fields / sizeof fields[0] };

static int64_t *int_field(const struct bert_config *c, const struct field *f)
{
    return (int64_t *)((char *)c + f->offset);
}

static double *real_field(const struct bert_config *c, const struct field *f)
{
    return (double *)((char *)c + f->offset);
}

static double field_value(const struct bert_config *c, const struct field *f)
{
    return f->real ? *real_field(c, f) : (double)*int_field(c, f);
}

static struct status parse_field(struct bert_config *c, const struct field *f, const json_t *object,
                                 const char *source)
{
    if (f->real) {
        *real_field(c, f) = f->standard;
        TRY(json_get_real(object, source, f->key, false, real_field(c, f)));
    } else {
        *int_field(c, f) = (int64_t)f->standard;
        TRY(json_get_int(object, source, f->key, false, int_field(c, f)));
    }
    double value = field_value(c, f);
    if (!(value >= f->min && value <= f->max)) {
        return status_error(STATUS_DATA, "%s: \"%s\" is %g, but must lie between %g and %g", source, f->key,
                            value, f->min, f->max);
    }
    return status_ok();
}

/* Keys with one value that kiln computes; another value would silently make another model. */
static struct status check_constant(const json_t *object, const char *source, const char *key,
                                    const char *wanted)
{
    const char *value = wanted;
    TRY(json_get_string(object, source, key, false, &value));
    if (strcmp(value, wanted) != 0) {
        return status_error(STATUS_DATA, "%s: \"%s\" is \"%s\"; only \"%s\" is supported", source, key, value,
                            wanted);
    }
    return status_ok();
}

struct status bert_config_parse(struct bert_config *c, const json_t *object, const char *source)
{
    *c = (struct bert_config){0};
    for (int i = 0; i < N_FIELDS; i++) {
        TRY(parse_field(c, &fields[i], object, source));
    }
    TRY(check_constant(object, source, "hidden_act", "gelu"));
    TRY(check_constant(object, source, "position_embedding_type", "absolute"));
    TRY(check_constant(object, source, "model_type", "bert"));
    bool pre_layer_norm = false;
    TRY(json_get_bool(object, source, "layer_norm_large_model", false, &pre_layer_norm));
    if (pre_layer_norm) {
        return status_error(
            STATUS_DATA, "%s: \"layer_norm_large_model\" (the pre-LN wiring) is not supported yet", source);
    }
    if (c->hidden_size % c->num_attention_heads != 0) {
        return status_error(STATUS_DATA,
                            "%s: \"hidden_size\" %lld is not a multiple of \"num_attention_heads\" %lld",
                            source, (long long)c->hidden_size, (long long)c->num_attention_heads);
    }
    return status_ok();
}

json_t *bert_config_to_json(const struct bert_config *c, const char *architecture)
{
    json_t *object =
        json_pack("{s:[s], s:s, s:s, s:s, s:i}", "architectures", architecture, "model_type", "bert",
                  "hidden_act", "gelu", "position_embedding_type", "absolute", "pad_token_id", 0);
    for (int i = 0; object != NULL && i < N_FIELDS; i++) {
        json_t *value =
            fields[i].real ? json_real(*real_field(c, &fields[i])) : json_integer(*int_field(c, &fields[i]));
        if (json_object_set_new(object, fields[i].key, value) != 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

struct status bert_config_same_architecture(const struct bert_config *a, const struct bert_config *b)
{
    for (int i = 0; i < N_FIELDS; i++) {
        const struct field *f = &fields[i];
        if (f->architecture && field_value(a, f) != field_value(b, f)) {
            return status_error(STATUS_DATA, "\"%s\" is %g in one and %g in the other", f->key,
                                field_value(a, f), field_value(b, f));
        }
    }
    return status_ok();
}

int64_t bert_config_padded_vocab(const struct bert_config *c)
{
    return (c->vocab_size + BERT_VOCAB_MULTIPLE - 1) / BERT_VOCAB_MULTIPLE * BERT_VOCAB_MULTIPLE;
}
