#include "corpus/json_fields.h"

#include "text/unicode.h"
#include "text/utf8.h"

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

/* Steps over a string, from its first quotation mark to behind the last. */
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

/* Four hexadecimal digits; -1: they are none. */
static int32_t unit_at(const char *text, const char *end)
{
    int32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        char digit = text + i < end ? text[i] : '\0', letter = (char)(digit | 32);
        bool is_digit = digit >= '0' && digit <= '9', is_letter = letter >= 'a' && letter <= 'f';
        if (!is_digit && !is_letter) {
            return -1;
        }
        unit = 16 * unit + (is_digit ? digit - '0' : letter - 'a' + 10);
    }
    return unit;
}

/* The character of \uXXXX, or of two for a surrogate pair; returns the bytes behind the first u that it
 * took. */
static size_t take_unicode(uint32_t *c, const char *text, const char *end)
{
    int32_t unit = unit_at(text, end);
    *c = UNICODE_REPLACEMENT;
    if (unit < 0) {
        return 0;
    }
    if (unit >= 0xD800 && unit < 0xDC00 && end - text >= 10 && text[4] == '\\' && text[5] == 'u') {
        int32_t low = unit_at(text + 6, end);
        if (low >= 0xDC00 && low < 0xE000) {
            *c = 0x10000 + ((uint32_t)(unit - 0xD800) << 10) + (uint32_t)(low - 0xDC00);
            return 10;
        }
    }
    *c = unit == 0 || (unit >= 0xD800 && unit < 0xE000) ? UNICODE_REPLACEMENT : (uint32_t)unit;
    return 4;
}

/* Appends what a backslash and the letter behind it stand for; returns where the next character is. */
static const char *put_escape(struct buf *out, const char *letter, const char *end)
{
    static const char letters[] = "bfnrt", controls[] = "\b\f\n\r\t";
    const char *known = strchr(letters, *letter);
    if (*letter == 'u') {
        char bytes[UTF8_MAX_BYTES];
        uint32_t c;
        size_t taken = take_unicode(&c, letter + 1, end);
        buf_append(out, bytes, (size_t)utf8_write(bytes, c));
        return letter + 1 + taken;
    }
    buf_putc(out, known != NULL && *letter != '\0' ? controls[known - letters] : *letter);
    return letter + 1;
}

bool json_fields_string(struct buf *out, struct json_slice value)
{
    if (value.text == NULL || value.n < 2 || value.text[0] != '"') {
        return false;
    }
    const char *end = value.text + value.n - 1;
    for (const char *at = value.text + 1; at < end;) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        buf_append(out, at, (size_t)((escape == NULL ? end : escape) - at));
        at = escape == NULL ? end : put_escape(out, escape + 1, end);
    }
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
