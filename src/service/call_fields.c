/* call_fields: reads the fields of a request. */
#include "service/call.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const json_t *call_field(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    return json_is_null(value) ? NULL : value;
}

static bool fail_type(struct call *c, const char *key, const char *wanted, const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    call_fail_value(c, key, "\"%s\" must be %s, but is %s", key, wanted, names[json_typeof(value)]);
    return false;
}

bool call_int(struct call *c, const json_t *o, const char *key, int64_t min, int64_t max, int64_t *value)
{
    const json_t *found = call_field(o, key);
    if (found == NULL) {
        return true;
    }
    double number = json_number_value(found);
    if (!json_is_number(found) || (json_is_real(found) && number != floor(number))) {
        return fail_type(c, key, "a whole number", found);
    }
    if (number < (double)min || number > (double)max) {
        call_fail_value(c, key, "\"%s\" is %.17g; it must be from %lld to %lld", key, number, (long long)min,
                        (long long)max);
        return false;
    }
    *value = json_is_integer(found) ? json_integer_value(found) : (int64_t)number;
    return true;
}

bool call_real(struct call *c, const json_t *o, const char *key, double min, double max, double *value)
{
    const json_t *found = call_field(o, key);
    if (found == NULL) {
        return true;
    }
    double number = json_number_value(found);
    if (!json_is_number(found)) {
        return fail_type(c, key, "a number", found);
    }
    if (!(number >= min && number <= max)) {
        call_fail_value(c, key, "\"%s\" is %.9g; it must be from %g to %g", key, number, min, max);
        return false;
    }
    *value = number;
    return true;
}

bool call_bool(struct call *c, const json_t *o, const char *key, bool *value)
{
    const json_t *found = call_field(o, key);
    if (found != NULL && !json_is_boolean(found)) {
        return fail_type(c, key, "true or false", found);
    }
    *value = found == NULL ? *value : json_is_true(found);
    return true;
}

bool call_string(struct call *c, const json_t *o, const char *key, const char **value)
{
    const json_t *found = call_field(o, key);
    if (found != NULL && !json_is_string(found)) {
        return fail_type(c, key, "a string", found);
    }
    *value = found == NULL ? *value : json_string_value(found);
    return true;
}

bool call_object(struct call *c, const json_t *o, const char *key, const json_t **value)
{
    const json_t *found = call_field(o, key);
    if (found != NULL && !json_is_object(found)) {
        return fail_type(c, key, "an object", found);
    }
    *value = found;
    return true;
}

bool call_choice(struct call *c, const json_t *o, const char *key, const char *const *names,
                 const char *wanted, int64_t *value)
{
    const char *name = names[*value];
    int64_t i = 0;
    if (!call_string(c, o, key, &name)) {
        return false;
    }
    while (names[i] != NULL && strcmp(name, names[i]) != 0) {
        i++;
    }
    if (names[i] == NULL) {
        call_fail_value(c, key, "\"%s\" is \"%.40s\", but must be %s", key, name, wanted);
        return false;
    }
    *value = i;
    return true;
}

bool call_cut(struct call *c, const json_t *o, enum text_cut *cut)
{
    static const char *const directions[] = {"right", "Right", "left", "Left", NULL};
    bool truncates = true;
    int64_t direction = 0;
    if (!call_bool(c, o, "truncate", &truncates) ||
        !call_choice(c, o, "truncation_direction", directions, "\"left\" or \"right\"", &direction)) {
        return false;
    }
    *cut = !truncates ? TEXT_CUT_NOTHING : direction >= 2 ? TEXT_CUT_BEGINNING : TEXT_CUT_END;
    return true;
}

struct text_bytes call_text(const json_t *string)
{
    return (struct text_bytes){json_string_value(string), json_string_length(string)};
}

static bool take_text(struct call *c, const char *key, size_t i, const json_t *value, struct text_bytes *to)
{
    if (!json_is_string(value)) {
        char name[96];
        snprintf(name, sizeof name, "%s[%zu]", key, i);
        return fail_type(c, name, "a string", value);
    }
    *to = call_text(value);
    return true;
}

bool call_texts(struct call *c, const json_t *o, const char *key, int64_t most, struct text_bytes **texts,
                size_t *n)
{
    const json_t *value = call_field(o, key);
    bool one = json_is_string(value);
    *n = one ? 1 : json_array_size(value);
    if (value == NULL) {
        call_fail_value(c, key, "\"%s\" is missing: a string, or an array of strings", key);
        return false;
    }
    if (!one && !json_is_array(value)) {
        return fail_type(c, key, "a string or an array of strings", value);
    }
    if ((int64_t)*n > most) {
        call_fail_value(c, key, "\"%s\" has %zu texts; this server takes at most %lld in a request", key, *n,
                        (long long)most);
        return false;
    }
    *texts = calloc(*n + 1, sizeof **texts);
    if (*texts == NULL) {
        call_fail(c, 503, NULL, "out of memory for %zu texts", *n);
        return false;
    }
    for (size_t i = 0; i < *n; i++) {
        if (!take_text(c, key, i, one ? value : json_array_get(value, i), &(*texts)[i])) {
            free(*texts);
            *texts = NULL;
            return false;
        }
    }
    return true;
}

static bool read_id(struct call *c, int32_t *id, const struct served_model *m, const json_t *value,
                    const char *name, size_t i)
{
    int32_t n_pieces = m->model.tokenizer->n;
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value)) {
        call_fail_value(c, name, "%s[%zu] must be an integer, the id of a token", name, i);
        return false;
    }
    if (number < 0 || number >= n_pieces) {
        call_fail_value(c, name,
                        "%s[%zu] is the id %lld, but the vocabulary of %s has the ids 0 to %d: these are ids "
                        "of another model's tokenizer; send texts (langchain's OpenAIEmbeddings does with "
                        "check_embedding_ctx_length=False)",
                        name, i, (long long)number, m->name, n_pieces - 1);
        return false;
    }
    *id = (int32_t)number;
    return true;
}

bool call_ids(struct call *c, struct id_list *to, const struct served_model *m, const json_t *ids,
              const char *name)
{
    for (size_t i = 0; i < json_array_size(ids); i++) {
        int32_t id;
        if (!read_id(c, &id, m, json_array_get(ids, i), name, i)) {
            return false;
        }
        if (!id_list_append(to, id)) {
            call_fail_status(c, NULL, status_error(STATUS_MEMORY, "out of memory for ids"));
            return false;
        }
    }
    return true;
}
