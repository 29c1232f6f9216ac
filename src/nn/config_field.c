#include "nn/config_field.h"

#include <stdlib.h>

static bool has(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value != NULL && !json_is_null(value);
}

struct status config_fields_parse(void *config, const struct config_field *rows, int n, bool strict,
                                  const json_t *object, const char *source)
{
    for (int i = 0; i < n; i++) {
        struct json_field at = rows[i].at;
        at.key = rows[i].other != NULL && !has(object, at.key) ? rows[i].other : at.key;
        if (has(object, at.key) || (strict && at.kind != JSON_FIELD_BOOL)) {
            TRY(json_field_get(config, &at, object, source, false));
        }
        double value = json_field_number(config, &at);
        FAIL_IF(!(value >= rows[i].min && value <= rows[i].max), STATUS_DATA,
                "%s: \"%s\" is %g, but must lie between %g and %g", source, at.key, value, rows[i].min,
                rows[i].max);
    }
    return status_ok();
}

bool config_fields_put(json_t *object, const void *config, const struct config_field *rows, int n)
{
    bool complete = true;
    for (int i = 0; i < n && complete; i++) {
        const struct json_field *at = &rows[i].at;
        bool unsaid = at->kind == JSON_FIELD_BOOL && json_field_number(config, at) == 0;
        complete = unsaid || json_object_set_new(object, at->key, json_field_value(config, at)) == 0;
    }
    return complete;
}

struct status config_fields_same(const void *a, const void *b, const struct config_field *rows, int n)
{
    for (int i = 0; i < n; i++) {
        const struct json_field *at = &rows[i].at;
        /* some files, and GGUF, have real numbers in fp32 */
        bool same = (float)json_field_number(a, at) == (float)json_field_number(b, at);
        FAIL_IF(rows[i].architecture && !same, STATUS_DATA, "\"%s\" is %s there and %s here", at->key,
                json_field_text(a, at, 9).text, json_field_text(b, at, 9).text);
    }
    return status_ok();
}

static struct status check_constant(const struct config_constant *c, const json_t *object, const char *source)
{
    const json_t *value = json_object_get(object, c->key);
    json_t *wanted = json_loads(c->wanted, JSON_DECODE_ANY, NULL);
    bool same = value == NULL || json_is_null(value) || json_equal(value, wanted) ||
                (json_is_number(value) && json_is_number(wanted) &&
                 json_number_value(value) == json_number_value(wanted));
    json_decref(wanted);
    if (same) {
        return status_ok();
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    struct status s = status_error(STATUS_DATA, "%s: \"%s\" is %.60s, but must be %s or absent: %s", source,
                                   c->key, text == NULL ? "not that" : text, c->wanted, c->why);
    free(text);
    return s;
}

struct status config_constants_check(const struct config_constant *rows, int n, const json_t *object,
                                     const char *source)
{
    for (int i = 0; i < n; i++) {
        TRY(check_constant(&rows[i], object, source));
    }
    return status_ok();
}
