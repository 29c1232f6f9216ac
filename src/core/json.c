#include "core/json.h"

#include "core/buf.h"
#include "core/regular_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t MAX_FILE_BYTES = (size_t)256 << 20;

/* Without the name of jansson's flag that would allow a NUL; with its limit, which it does not say. */
static struct status not_json(const char *source, const json_error_t *error)
{
    enum { MAX_DEPTH = 2048 }; /* jansson's JSON_PARSER_MAX_DEPTH */
    FAIL_IF(json_error_code(error) == json_error_stack_overflow, STATUS_DATA,
            "%s is not valid JSON: it is deeper than %d arrays and objects", source, MAX_DEPTH);
    const char *flag = strstr(error->text, " without JSON_ALLOW_NUL");
    int n = flag == NULL ? (int)strlen(error->text) : (int)(flag - error->text);
    return status_error(STATUS_DATA, "%s is not valid JSON: line %d, column %d: %.*s", source, error->line,
                        error->column, n, error->text);
}

enum { MARK_BYTES = 3 };

/* The bytes of a byte order mark at the beginning. */
static size_t mark_bytes(const char *text, size_t n)
{
    return n >= MARK_BYTES && memcmp(text, "\xEF\xBB\xBF", MARK_BYTES) == 0 ? MARK_BYTES : 0;
}

static struct status parse(json_t **root, const char *text, size_t n, size_t flags, const char *source)
{
    json_error_t error;
    size_t skipped = mark_bytes(text, n);
    *root = json_loadb(text + skipped, n - skipped, JSON_REJECT_DUPLICATES | flags, &error);
    return *root != NULL ? status_ok() : not_json(source, &error);
}

struct status json_parse(json_t **root, const char *text, size_t n, const char *source)
{
    return parse(root, text, n, 0, source);
}

struct status json_parse_real(json_t **root, const char *text, size_t n, const char *source)
{
    return parse(root, text, n, JSON_DECODE_INT_AS_REAL, source);
}

/* The code unit of the escape \uXXXX at text[0..n); -1: there is none. */
static long code_unit(const char *text, size_t n)
{
    char digits[5] = {0};
    if (n < 6 || text[0] != '\\' || text[1] != 'u') {
        return -1;
    }
    memcpy(digits, text + 2, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtol(digits, NULL, 16) : -1;
}

/* The replacement of the escape at text[0..n), of the same length; NULL: the escape stays.  *n_escape is the
 * length of the escape. */
static const char *replacement(const char *text, size_t n, size_t *n_escape)
{
    long unit = code_unit(text, n);
    *n_escape = unit < 0 ? 2 : 6;
    if (unit != 0 && (unit < 0xD800 || unit > 0xDFFF)) {
        return NULL;
    }
    long next = code_unit(text + 6, n - 6);
    bool pair = unit != 0 && unit < 0xDC00 && next >= 0xDC00 && next <= 0xDFFF;
    *n_escape += pair ? 6 : 0;
    return pair ? NULL : "\\ufffd";
}

struct status json_parse_text(json_t **root, const char *text, size_t n, const char *source)
{
    struct buf changed = {0};
    const char *end = text + n, *kept = text, *at = text;
    for (size_t n_escape; (at = memchr(at, '\\', (size_t)(end - at))) != NULL && end - at >= 2;
         at += n_escape) {
        const char *other = replacement(at, (size_t)(end - at), &n_escape);
        if (other != NULL) {
            buf_append(&changed, kept, (size_t)(at - kept));
            buf_puts(&changed, other);
            kept = at + n_escape;
        }
    }
    if (kept > text) {
        buf_append(&changed, kept, (size_t)(end - kept));
    }
    struct status s = buf_status(&changed);
    if (!failed(s)) {
        s = json_parse(root, kept > text ? changed.data : text, n, source);
    }
    buf_fini(&changed);
    return s;
}

struct status json_read_object(json_t **root, const char *path)
{
    *root = NULL;
    int fd;
    size_t n;
    TRY(regular_file_open(&fd, &n, path));
    if (n > MAX_FILE_BYTES) {
        close(fd);
        return status_error(STATUS_DATA, "%s is larger than the limit of %zu MiB", path,
                            MAX_FILE_BYTES >> 20);
    }
    char begin[MARK_BYTES];
    ssize_t n_begin = pread(fd, begin, sizeof begin, 0);
    lseek(fd, n_begin < 0 ? 0 : (off_t)mark_bytes(begin, (size_t)n_begin), SEEK_SET);
    FILE *file = fdopen(fd, "rb");
    if (file == NULL) {
        close(fd);
        return status_error(STATUS_MEMORY, "out of memory for reading %s", path);
    }
    json_error_t error;
    *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    if (*root == NULL) {
        return not_json(path, &error);
    }
    if (!json_is_object(*root)) {
        json_decref(*root);
        *root = NULL;
        return status_error(STATUS_DATA, "%s: the file must hold one JSON object {...}", path);
    }
    return status_ok();
}

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array",     [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a real number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    return names[json_typeof(value)];
}

/* Finds a value of one of `types`, a bit for each, which messages call `wanted`; NULL if the key may be
 * absent and is. */
static struct status get(const json_t *object, const char *source, const char *key, bool required,
                         unsigned types, const char *wanted, const json_t **found)
{
    *found = json_object_get(object, key);
    FAIL_IF(*found == NULL && required, STATUS_DATA, "%s: the key \"%s\" is missing", source, key);
    FAIL_IF(*found != NULL && (types >> json_typeof(*found) & 1) == 0, STATUS_DATA,
            "%s: \"%s\" must be %s, but is %s", source, key, wanted, type_name(*found));
    return status_ok();
}

struct status json_get_int(const json_t *object, const char *source, const char *key, bool required,
                           int64_t *value)
{
    const json_t *found;
    TRY(get(object, source, key, required, 1U << JSON_INTEGER, "a whole number", &found));
    if (found != NULL) {
        *value = json_integer_value(found);
    }
    return status_ok();
}

struct status json_get_real(const json_t *object, const char *source, const char *key, bool required,
                            double *value)
{
    const json_t *found;
    TRY(get(object, source, key, required, 1U << JSON_INTEGER | 1U << JSON_REAL, "a number", &found));
    if (found != NULL) {
        *value = json_number_value(found);
    }
    return status_ok();
}

struct status json_get_bool(const json_t *object, const char *source, const char *key, bool required,
                            bool *value)
{
    const json_t *found;
    TRY(get(object, source, key, required, 1U << JSON_TRUE | 1U << JSON_FALSE, "true or false", &found));
    if (found != NULL) {
        *value = json_is_true(found);
    }
    return status_ok();
}

struct status json_get_string(const json_t *object, const char *source, const char *key, bool required,
                              const char **value)
{
    const json_t *found;
    TRY(get(object, source, key, required, 1U << JSON_STRING, "a string", &found));
    if (found != NULL) {
        *value = json_string_value(found);
    }
    return status_ok();
}

struct status json_field_get(void *to, const struct json_field *f, const json_t *object, const char *source,
                             bool required)
{
    void *at = (char *)to + f->offset;
    switch (f->kind) {
    case JSON_FIELD_INT: return json_get_int(object, source, f->key, required, at);
    case JSON_FIELD_REAL: return json_get_real(object, source, f->key, required, at);
    case JSON_FIELD_BOOL: return json_get_bool(object, source, f->key, required, at);
    case JSON_FIELD_TEXT: break;
    }
    return json_get_string(object, source, f->key, required, at);
}

double json_field_number(const void *from, const struct json_field *f)
{
    const void *at = (const char *)from + f->offset;
    switch (f->kind) {
    case JSON_FIELD_INT: return (double)*(const int64_t *)at;
    case JSON_FIELD_REAL: return *(const double *)at;
    case JSON_FIELD_BOOL: return *(const bool *)at;
    case JSON_FIELD_TEXT: break;
    }
    return *(const char *const *)at != NULL;
}

json_t *json_field_value(const void *from, const struct json_field *f)
{
    const void *at = (const char *)from + f->offset;
    switch (f->kind) {
    case JSON_FIELD_INT: return json_integer(*(const int64_t *)at);
    case JSON_FIELD_REAL: return json_real(*(const double *)at);
    case JSON_FIELD_BOOL: return json_boolean(*(const bool *)at);
    case JSON_FIELD_TEXT: break;
    }
    const char *text = *(const char *const *)at;
    return text == NULL ? json_null() : json_string(text);
}

struct json_field_text json_field_text(const void *from, const struct json_field *f, int digits)
{
    const void *at = (const char *)from + f->offset;
    struct json_field_text t;
    if (f->kind == JSON_FIELD_REAL) {
        snprintf(t.text, sizeof t.text, "%.*g", digits, *(const double *)at);
    } else if (f->kind == JSON_FIELD_INT) {
        snprintf(t.text, sizeof t.text, "%lld", (long long)*(const int64_t *)at);
    } else if (f->kind == JSON_FIELD_BOOL) {
        snprintf(t.text, sizeof t.text, "%s", *(const bool *)at ? "true" : "false");
    } else {
        const char *text = *(const char *const *)at;
        snprintf(t.text, sizeof t.text, "%s", text == NULL ? "nothing" : text);
    }
    return t;
}

/* Bytes of the code point at text[0..n), as jansson decodes it; 0 if they are not UTF-8. */
static size_t code_point_bytes(const char *text, size_t n)
{
    for (size_t bytes = 1; bytes <= 4 && bytes <= n; bytes++) {
        json_t *one = json_stringn(text, bytes);
        json_decref(one);
        if (one != NULL) {
            return bytes;
        }
    }
    return 0;
}

json_t *json_finite(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *json_text(const char *text)
{
    json_t *value = json_string(text);
    if (value != NULL) {
        return value;
    }
    struct buf escaped = {0};
    for (size_t i = 0, n = strlen(text); i < n;) {
        size_t bytes = text[i] == '\\' ? 0 : code_point_bytes(text + i, n - i);
        if (bytes == 0) {
            buf_printf(&escaped, "\\x%02x", (unsigned char)text[i]);
        }
        buf_append(&escaped, text + i, bytes);
        i += bytes == 0 ? 1 : bytes;
    }
    value = failed(buf_status(&escaped)) ? NULL : json_string(buf_text(&escaped));
    buf_fini(&escaped);
    return value;
}

struct status json_append_line(struct buf *b, json_t *root, unsigned digits)
{
    char *text = root == NULL ? NULL : json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(digits));
    json_decref(root);
    FAIL_IF(text == NULL, STATUS_MEMORY, "out of memory for a line of JSON");
    buf_puts(b, text);
    buf_putc(b, '\n');
    free(text);
    return buf_status(b);
}

char *json_to_text(const json_t *root)
{
    /* 15 digits: every decimal number of up to 15 digits is written as it was read */
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    if (text == NULL) {
        return NULL;
    }
    size_t n = strlen(text);
    char *line = realloc(text, n + 2);
    if (line == NULL) {
        free(text);
        return NULL;
    }
    memcpy(line + n, "\n", 2);
    return line;
}
