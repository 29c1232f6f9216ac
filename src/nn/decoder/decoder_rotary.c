/* Rotary positions in the config.json of decoders. */
#include "nn/decoder/decoder_config.h"

#include <math.h>
#include <string.h>

static const char *const scalings[] = {
    [ROTARY_UNSCALED] = "default", [ROTARY_LINEAR] = "linear", [ROTARY_LLAMA3] = "llama3"};

enum { N_SCALINGS = sizeof scalings / sizeof scalings[0] };

static struct status parse_llama3(struct rotary *r, const json_t *object, const char *source)
{
    TRY(json_get_real(object, source, "low_freq_factor", true, &r->low_factor));
    TRY(json_get_real(object, source, "high_freq_factor", true, &r->high_factor));
    TRY(json_get_int(object, source, "original_max_position_embeddings", true, &r->original));
    FAIL_IF(!(r->low_factor > 0 && r->high_factor > r->low_factor) || r->original < 1, STATUS_DATA,
            "%s: \"low_freq_factor\" is %g, \"high_freq_factor\" %g and \"original_max_position_embeddings\" "
            "%lld: the first must be above 0, the second above the first, the third at least 1",
            source, r->low_factor, r->high_factor, (long long)r->original);
    return status_ok();
}

/* "rope_scaling", or "rope_parameters" of transformers 5. */
static struct status parse_scaling(struct rotary *r, const json_t *root, const char *key, const char *source)
{
    const json_t *object = json_object_get(root, key);
    const char *type = scalings[ROTARY_UNSCALED];
    int i = 0;
    TRY(json_get_string(object, source, "type", false, &type));
    TRY(json_get_string(object, source, "rope_type", false, &type));
    while (i < N_SCALINGS && strcmp(type, scalings[i]) != 0) {
        i++;
    }
    FAIL_IF(i == N_SCALINGS, STATUS_DATA,
            "%s: \"%s\": the scaling of rotary positions is \"%.40s\": kiln has \"default\", \"linear\" and "
            "\"llama3\"",
            source, key, type);
    r->scaling = (enum rotary_scaling)i;
    if (r->scaling != ROTARY_UNSCALED) {
        TRY(json_get_real(object, source, "factor", true, &r->factor));
        FAIL_IF(!(r->factor >= 1), STATUS_DATA,
                "%s: \"factor\" of the rotary positions is %g, but must be at least 1", source, r->factor);
    }
    return r->scaling == ROTARY_LLAMA3 ? parse_llama3(r, object, source) : status_ok();
}

/* Columns of a head that turn: a part of them, which rounds down as it does in `transformers`. */
static struct status parse_size(struct rotary *r, const struct decoder_rotary_keys *keys, double part,
                                int64_t head_size, const char *source)
{
    FAIL_IF(keys->usual_part == 0 && part != 1, STATUS_DATA,
            "%s: \"%s\" is %g: kiln turns all columns of a head of such a model", source, keys->part, part);
    FAIL_IF(!(part > 0 && part <= 1), STATUS_DATA, "%s: \"%s\" is %g, but must be above 0 and at most 1",
            source, keys->part, part);
    r->size = (int64_t)((double)head_size * part);
    FAIL_IF(r->size < 2 || r->size % 2 != 0, STATUS_DATA,
            "%s: rotary positions turn pairs of columns, but a head has %lld, of which %lld are to turn",
            source, (long long)head_size, (long long)r->size);
    return status_ok();
}

/* The usual key of a number, where a family has another for it, must not say otherwise. */
static struct status check_agrees(const json_t *object, const char *source, const char *usual,
                                  const char *own, double value)
{
    double other = value;
    TRY(json_get_real(object, source, usual, false, &other));
    return other == value
               ? status_ok()
               : status_error(STATUS_DATA, "%s: \"%s\" is %g, but \"%s\" is %g: they are one number", source,
                              usual, other, own, value);
}

struct status decoder_rotary_parse(struct decoder_config *c, const struct decoder_rotary_keys *keys,
                                   const json_t *object, const char *source)
{
    const json_t *scaling = json_object_get(object, "rope_scaling");
    const json_t *parameters = json_object_get(object, "rope_parameters");
    struct rotary *r = &c->rotary;
    double part = keys->usual_part > 0 ? keys->usual_part : 1;
    TRY(json_get_real(object, source, keys->part, false, &part));
    TRY(json_get_real(object, source, keys->theta, false, &r->theta));
    TRY(check_agrees(object, source, "partial_rotary_factor", keys->part, part));
    TRY(check_agrees(object, source, "rope_theta", keys->theta, r->theta));
    if (json_is_object(scaling)) {
        TRY(parse_scaling(r, object, "rope_scaling", source));
    }
    if (json_is_object(parameters)) {
        TRY(json_get_real(parameters, source, "partial_rotary_factor", false, &part));
        TRY(json_get_real(parameters, source, "rope_theta", false, &r->theta));
        TRY(parse_scaling(r, object, "rope_parameters", source));
    }
    FAIL_IF(!(r->theta > 1), STATUS_DATA, "%s: \"%s\" is %g, but must be above 1", source, keys->theta,
            r->theta);
    return parse_size(r, keys, part, decoder_config_head_size(c), source);
}

double decoder_rotary_part(const struct decoder_config *c)
{
    int64_t head_size = decoder_config_head_size(c);
    double part = (double)c->rotary.size / (double)head_size;
    return (int64_t)((double)head_size * part) < c->rotary.size ? nextafter(part, 1) : part;
}

bool decoder_rotary_same(const struct rotary *a, const struct rotary *b)
{
    return a->theta == b->theta && a->size == b->size && a->scaling == b->scaling && a->factor == b->factor &&
           a->low_factor == b->low_factor && a->high_factor == b->high_factor && a->original == b->original;
}

json_t *decoder_rotary_to_json(const struct rotary *r)
{
    const char *type = scalings[r->scaling];
    switch (r->scaling) {
    case ROTARY_LINEAR: return json_pack("{s:s, s:f}", "rope_type", type, "factor", r->factor);
    case ROTARY_LLAMA3:
        return json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", type, "factor", r->factor,
                         "low_freq_factor", r->low_factor, "high_freq_factor", r->high_factor,
                         "original_max_position_embeddings", (json_int_t)r->original);
    default: return json_null();
    }
}
