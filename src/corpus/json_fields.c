#include "corpus/json_fields.h"

#include "core/json.h"

#include <string.h>

struct cursor {
    const char *at, *end;
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && strchr(" \t\r\n", *c->at) != NULL && *c->at != '\0') {
        c->at++;
    }
}

static bool take(struct cursor *c, char wanted)
{
    skip_blanks(c);
    bool is = c->at < c->end && *c->at == wanted;
    c->at += is;
    return is;
}

/* Skips a string, from its first quotation mark to past the last. */
static bool skip_string(struct cursor *c)
{
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++) {
        c->at += *c->at == '\\' && c->at + 1 < c->end;
    }
    bool ends = c->at < c->end;
    c->at += ends;
    return ends;
}

/* Steps over an array or object, however deep. */
static bool skip_nested(struct cursor *c)
{
    size_t depth = 0;
    while (c->at < c->end) {
        char first = *c->at;
        if (first == '"') {
            if (!skip_string(c)) {
                return false;
            }
            continue;
        }
        c->at++;
        depth += first == '{' || first == '[';
        depth -= first == '}' || first == ']';
        if (depth == 0) {
            return true;
        }
    }
    return false;
}

/* A number, true, false, null, NaN or Infinity: letters, digits and signs. */
static bool skip_word(struct cursor *c)
{
    const char *begin = c->at;
    while (c->at < c->end &&
           (strchr("+-._", *c->at) != NULL
                ? *c->at != '\0'
                : (*c->at >= '0' && *c->at <= '9') || ((*c->at | 32) >= 'a' && (*c->at | 32) <= 'z'))) {
        c->at++;
    }
    return c->at > begin;
}

static bool take_value(struct cursor *c, struct json_slice *value)
{
    skip_blanks(c);
    const char *begin = c->at;
    if (begin == c->end) {
        return false;
    }
    bool is_value = *begin == '"'                    ? skip_string(c)
                    : *begin == '{' || *begin == '[' ? skip_nested(c)
                                                     : skip_word(c);
    *value = (struct json_slice){begin, (size_t)(c->at - begin)};
    return is_value;
}

/* Whether a key, as it stands in the line, is this one. */
static bool is_key(struct json_slice key, const char *wanted)
{
    struct buf text = {0};
    bool is = memchr(key.text, '\\', key.n) == NULL
                  ? key.n == strlen(wanted) + 2 && memcmp(key.text + 1, wanted, key.n - 2) == 0
                  : json_fields_string(&text, key) && strcmp(buf_text(&text), wanted) == 0;
    buf_fini(&text);
    return is;
}

bool json_fields_find(struct json_slice *values, const char *const *keys, int n, const char *line,
                      size_t n_line)
{
    struct cursor c = {line, line + n_line};
    for (int i = 0; i < n; i++) {
        values[i] = (struct json_slice){0};
    }
    if (!take(&c, '{')) {
        return false;
    }
    bool more = !take(&c, '}');
    while (more) {
        struct json_slice key, value;
        skip_blanks(&c);
        if (c.at == c.end || *c.at != '"' || !take_value(&c, &key) || !take(&c, ':') ||
            !take_value(&c, &value)) {
            return false;
        }
        for (int i = 0; i < n; i++) {
            values[i] = is_key(key, keys[i]) ? value : values[i];
        }
        more = take(&c, ',');
        if (!more && !take(&c, '}')) {
            return false;
        }
    }
    skip_blanks(&c);
    return c.at == c.end;
}

bool json_fields_string(struct buf *out, struct json_slice value)
{
    if (value.text == NULL || value.text[0] != '"') {
        return false;
    }
    struct buf array = {0};
    json_t *root = NULL;
    buf_putc(&array, '[');
    buf_append(&array, value.text, value.n);
    buf_putc(&array, ']');
    bool is = !array.failed && !failed(json_parse_text(&root, array.data, array.n, "a field"));
    if (is) {
        const json_t *string = json_array_get(root, 0);
        buf_append(out, json_string_value(string), json_string_length(string));
    }
    json_decref(root);
    buf_fini(&array);
    return is;
}

bool json_fields_exact(struct buf *out, struct json_slice value)
{
    if (value.text == NULL || value.text[0] != '"') {
        return false;
    }
    json_t *string = json_loadb(value.text, value.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (string == NULL) {
        return json_fields_string(out, value); /* half a surrogate pair, or no string */
    }
    buf_append(out, json_string_value(string), json_string_length(string));
    json_decref(string);
    return true;
}

bool json_fields_item(struct json_slice *item, struct json_slice array, size_t *at)
{
    struct cursor c = {array.text + *at, array.text + array.n};
    bool begins = *at == 0;
    if (array.text == NULL || array.text[0] != '[' || !take(&c, begins ? '[' : ',') ||
        !take_value(&c, item)) {
        return false;
    }
    *at = (size_t)(c.at - array.text);
    return true;
}
