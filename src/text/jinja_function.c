#include "text/jinja_function.h"

#include "text/jinja_text.h"

#include <ctype.h>
#include <string.h>

/* Ends of a text: `how` of functions that look at one, or strip both. */
enum { AT_BEGIN, AT_END };
enum { STRIP_LEFT = 1, STRIP_RIGHT = 2 };

/* ---- white space and letter case ---- */

static json_t *call_strip(struct jinja_renderer *r, const struct jinja_call *c)
{
    const json_t *set = c->arguments[0];
    const char *text = json_string_value(c->x), *characters = json_string_value(set);
    size_t n = json_string_length(c->x), n_set = json_string_length(set);
    if (set != NULL && !json_is_string(set) && !json_is_null(set)) {
        return jinja_renderer_fail(r, "what is stripped must be a string");
    }
    if (!jinja_renderer_spend(r, n * (1 + n_set))) {
        return NULL;
    }
    size_t begin = (c->how & STRIP_LEFT) != 0 ? jinja_text_left(text, n, characters, n_set) : 0;
    size_t end =
        (c->how & STRIP_RIGHT) != 0 ? n - jinja_text_right(text + begin, n - begin, characters, n_set) : n;
    return jinja_renderer_made_text(r, text + begin, end - begin);
}

static json_t *call_case(struct jinja_renderer *r, const struct jinja_call *c)
{
    struct buf text = {0};
    if (!jinja_renderer_spend(r, json_string_length(c->x))) {
        return NULL;
    }
    jinja_text_case(&text, json_string_value(c->x), json_string_length(c->x), (enum jinja_case)c->how);
    return jinja_renderer_take_text(r, &text);
}

/* ---- parts of texts ---- */

static json_t *call_replace(struct jinja_renderer *r, const struct jinja_call *c)
{
    const char *text = json_string_value(c->x), *old = json_string_value(c->arguments[0]);
    size_t n = json_string_length(c->x), n_old = json_string_length(c->arguments[0]), at = 0;
    struct buf made = {0};
    if (n_old == 0 || !json_is_string(c->arguments[1])) {
        return jinja_renderer_fail(r, "replace wants a string that is not empty, and another in its place");
    }
    while (at < n && jinja_renderer_spend(r, made.n)) {
        size_t found = jinja_text_find(text + at, n - at, old, n_old);
        buf_append(&made, text + at, found);
        at += found;
        if (at < n) {
            buf_append(&made, json_string_value(c->arguments[1]), json_string_length(c->arguments[1]));
            at += n_old;
        }
    }
    return jinja_renderer_take_text(r, &made);
}

/* Splits at white space, or at a string, at most the number of times that is asked for. */
static json_t *call_split(struct jinja_renderer *r, const struct jinja_call *c)
{
    const char *text = json_string_value(c->x), *by = json_string_value(c->arguments[0]);
    size_t n = json_string_length(c->x), n_by = json_string_length(c->arguments[0]), at = 0, found;
    int64_t most = json_is_integer(c->arguments[1]) ? json_integer_value(c->arguments[1]) : -1;
    if (n_by == 0) {
        return jinja_renderer_fail(r, "split wants a string that is not empty");
    }
    json_t *list = jinja_renderer_made(r, json_array());
    do {
        found = most == 0 ? n - at : jinja_text_find(text + at, n - at, by, n_by);
        json_t *part = jinja_renderer_made_text(r, text + at, found);
        if (part == NULL || json_array_append_new(list, part) != 0) {
            break;
        }
        at += found + n_by;
        most--;
    } while (at <= n);
    return list;
}

/* Whether a text or, of several, one is at the begin or the end of x. */
static json_t *call_has_edge(struct jinja_renderer *r, const struct jinja_call *c)
{
    const json_t *part = c->arguments[0];
    size_t n = json_string_length(c->x), n_part = json_string_length(part);
    if (!json_is_string(part)) {
        return jinja_renderer_fail(r, "startswith and endswith want a string");
    }
    bool has = n_part <= n && memcmp(json_string_value(c->x) + (c->how == AT_END ? n - n_part : 0),
                                     json_string_value(part), n_part) == 0;
    return json_boolean(has);
}

/* ---- lists and dicts ---- */

static json_t *call_length(struct jinja_renderer *r, const struct jinja_call *c)
{
    if (!jinja_renderer_spend(r, json_string_length(c->x))) {
        return NULL;
    }
    if (c->x != NULL && !json_is_string(c->x) && !json_is_array(c->x) && !json_is_object(c->x)) {
        return jinja_renderer_fail(r, "length wants a string, a list or a dict");
    }
    int64_t n = json_is_string(c->x) ? jinja_text_length(json_string_value(c->x), json_string_length(c->x))
                                     : (int64_t)(json_array_size(c->x) + json_object_size(c->x));
    return jinja_renderer_made(r, json_integer(n));
}

static json_t *call_end_item(struct jinja_renderer *r, const struct jinja_call *c)
{
    const json_t *x = c->x;
    bool is_last = c->how == AT_END;
    const char *text = json_string_value(x);
    size_t n = json_is_string(x) ? json_string_length(x) : json_array_size(x), at = 0;
    if (x != NULL && !json_is_string(x) && !json_is_array(x)) {
        return jinja_renderer_fail(r, "first and last want a list or a string");
    }
    if (n == 0 || json_is_array(x)) {
        return n == 0 ? NULL : json_incref(json_array_get(x, is_last ? n - 1 : 0));
    }
    at = is_last ? jinja_text_at(text, n, jinja_text_length(text, n) - 1) : 0;
    return jinja_renderer_made_text(r, text + at, jinja_text_at(text + at, n - at, 1));
}

static json_t *call_join(struct jinja_renderer *r, const struct jinja_call *c)
{
    struct buf text = {0};
    size_t i;
    json_t *item;
    if ((c->x != NULL && !json_is_array(c->x)) ||
        (c->arguments[0] != NULL && !json_is_string(c->arguments[0]))) {
        return jinja_renderer_fail(r, "join wants a list, and a string to put between its items");
    }
    json_array_foreach(c->x, i, item)
    {
        json_t *part = jinja_renderer_text_of(r, item);
        if (part == NULL ||
            !jinja_renderer_spend(r, json_string_length(part) + json_string_length(c->arguments[0]))) {
            json_decref(part);
            break;
        }
        buf_append(&text, json_string_value(c->arguments[0]),
                   i == 0 ? 0 : json_string_length(c->arguments[0]));
        buf_append(&text, json_string_value(part), json_string_length(part));
        json_decref(part);
    }
    return jinja_renderer_take_text(r, &text);
}

static json_t *call_items(struct jinja_renderer *r, const struct jinja_call *c)
{
    const char *key;
    json_t *value, *list;
    if (c->x != NULL && !json_is_object(c->x)) {
        return jinja_renderer_fail(r, "items wants a dict");
    }
    list = jinja_renderer_made(r, json_array());
    json_object_foreach(c->x, key, value)
    {
        if (!jinja_renderer_spend(r, strlen(key)) ||
            json_array_append_new(list, json_pack("[s, O]", key, value)) != 0) {
            break;
        }
    }
    return list;
}

static json_t *call_get(struct jinja_renderer *r, const struct jinja_call *c)
{
    if (!json_is_string(c->arguments[0])) {
        return jinja_renderer_fail(r, "get wants the name of a key");
    }
    json_t *value = json_object_get(c->x, json_string_value(c->arguments[0]));
    return value != NULL             ? json_incref(value)
           : c->arguments[1] != NULL ? json_incref(c->arguments[1])
                                     : json_null();
}

/* ---- any value ---- */

static json_t *call_default(struct jinja_renderer *r, const struct jinja_call *c)
{
    bool is_kept = c->x != NULL && (jinja_renderer_is_true(c->x) || !jinja_renderer_is_true(c->arguments[1]));
    return is_kept                   ? json_incref(c->x)
           : c->arguments[0] != NULL ? json_incref(c->arguments[0])
                                     : jinja_renderer_made_text(r, "", 0);
}

static json_t *call_string(struct jinja_renderer *r, const struct jinja_call *c)
{
    (void)r;
    return json_incref(c->x);
}

/* The target of json_dump_callback. */
struct dump {
    struct jinja_renderer *r;
    struct buf text;
};

static int dump(const char *bytes, size_t n, void *self)
{
    struct dump *d = self;
    buf_append(&d->text, bytes, n);
    return jinja_renderer_spend(d->r, n) ? 0 : -1;
}

/* The digits of \u00XX are small, as json.dumps of Python writes them. */
static void lower_escapes(struct buf *text)
{
    for (size_t i = 0; i + 1 < text->n; i++) {
        if (text->data[i] != '\\') {
            continue;
        }
        for (size_t k = i + 2; text->data[i + 1] == 'u' && k < i + 6 && k < text->n; k++) {
            text->data[k] = (char)tolower((unsigned char)text->data[k]);
        }
        i++;
    }
}

/* json.dumps(x, ensure_ascii=False, indent=indent) of Python. */
static json_t *call_tojson(struct jinja_renderer *r, const struct jinja_call *c)
{
    enum { MOST_INDENT = 8 };
    struct dump d = {.r = r};
    json_int_t indent = json_integer_value(c->arguments[0]);
    if (c->x == NULL || (c->arguments[0] != NULL && (indent < 1 || indent > MOST_INDENT))) {
        return jinja_renderer_fail(r, "tojson wants a value, and an indent from 1 to %d if there is one",
                                   MOST_INDENT);
    }
    if (json_dump_callback(c->x, dump, &d, JSON_ENCODE_ANY | JSON_INDENT((size_t)indent)) != 0) {
        jinja_renderer_fail(r, "tojson has failed");
    }
    lower_escapes(&d.text);
    return jinja_renderer_take_text(r, &d.text);
}

/* ---- tables ---- */

static const struct jinja_function functions[] = {
    {"trim", true, false, true, 0, 1, {"chars"}, call_strip, STRIP_LEFT | STRIP_RIGHT},
    {"strip", false, true, true, 0, 1, {0}, call_strip, STRIP_LEFT | STRIP_RIGHT},
    {"lstrip", false, true, true, 0, 1, {0}, call_strip, STRIP_LEFT},
    {"rstrip", false, true, true, 0, 1, {0}, call_strip, STRIP_RIGHT},
    {"lower", true, true, true, 0, 0, {0}, call_case, JINJA_LOWER},
    {"upper", true, true, true, 0, 0, {0}, call_case, JINJA_UPPER},
    {"capitalize", true, true, true, 0, 0, {0}, call_case, JINJA_CAPITALIZED},
    {"title", false, true, true, 0, 0, {0}, call_case, JINJA_TITLE},
    {"replace", true, true, true, 2, 2, {"old", "new"}, call_replace, 0},
    {"split", false, true, true, 1, 2, {"sep", "maxsplit"}, call_split, 0},
    {"startswith", false, true, true, 1, 1, {0}, call_has_edge, AT_BEGIN},
    {"endswith", false, true, true, 1, 1, {0}, call_has_edge, AT_END},
    {"string", true, false, true, 0, 0, {0}, call_string, 0},
    {"length", true, false, false, 0, 0, {0}, call_length, 0},
    {"count", true, false, false, 0, 0, {0}, call_length, 0},
    {"first", true, false, false, 0, 0, {0}, call_end_item, AT_BEGIN},
    {"last", true, false, false, 0, 0, {0}, call_end_item, AT_END},
    {"join", true, false, false, 0, 1, {"d"}, call_join, 0},
    {"items", true, true, false, 0, 0, {0}, call_items, 0},
    {"get", false, true, false, 1, 2, {0}, call_get, 0},
    {"default", true, false, false, 0, 2, {"default_value", "boolean"}, call_default, 0},
    {"d", true, false, false, 0, 2, {"default_value", "boolean"}, call_default, 0},
    {"tojson", true, false, false, 0, 0, {"indent"}, call_tojson, 0},
};

const struct jinja_function *jinja_function_find(const char *name, size_t n, bool is_filter)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const struct jinja_function *f = &functions[i];
        if ((is_filter ? f->is_filter : f->is_method) && strlen(f->name) == n &&
            memcmp(f->name, name, n) == 0) {
            return f;
        }
    }
    return NULL;
}

json_t *jinja_function_call(struct jinja_renderer *r, const struct jinja_function *f, bool is_method,
                            json_t *x, json_t *const *arguments)
{
    if (is_method && !(f->of_text ? json_is_string(x) : json_is_object(x))) {
        return jinja_renderer_fail(r, "%s is asked of what has no such method", f->name);
    }
    json_t *text = f->of_text ? jinja_renderer_text_of(r, x) : json_incref(x);
    const struct jinja_call call = {.x = text, .arguments = arguments, .how = f->how};
    json_t *made = f->of_text && text == NULL ? NULL : f->call(r, &call);
    json_decref(text);
    return made;
}

/* The kinds of values, a bit each. */
enum {
    IS_UNDEFINED = 1 << 0,
    IS_NONE = 1 << 1,
    IS_STRING = 1 << 2,
    IS_LIST = 1 << 3,
    IS_DICT = 1 << 4,
    IS_TRUE = 1 << 5,
    IS_FALSE = 1 << 6,
    IS_NUMBER = 1 << 7,
    IS_SEQUENCE = IS_UNDEFINED | IS_STRING | IS_LIST | IS_DICT /* Jinja's undefined has a length and items */
};

static const struct jinja_test tests[] = {
    {"defined", ~(unsigned)IS_UNDEFINED},
    {"undefined", IS_UNDEFINED},
    {"none", IS_NONE},
    {"string", IS_STRING},
    {"mapping", IS_DICT},
    {"sequence", IS_SEQUENCE},
    {"iterable", IS_SEQUENCE},
    {"boolean", IS_TRUE | IS_FALSE},
    {"true", IS_TRUE},
    {"false", IS_FALSE},
    {"number", IS_NUMBER | IS_TRUE | IS_FALSE},
};

bool jinja_function_holds(const struct jinja_test *test, const json_t *x)
{
    static const unsigned kinds[] = {
        [JSON_OBJECT] = IS_DICT,    [JSON_ARRAY] = IS_LIST,  [JSON_STRING] = IS_STRING,
        [JSON_INTEGER] = IS_NUMBER, [JSON_REAL] = IS_NUMBER, [JSON_TRUE] = IS_TRUE,
        [JSON_FALSE] = IS_FALSE,    [JSON_NULL] = IS_NONE};
    return (test->kinds & (x == NULL ? IS_UNDEFINED : kinds[json_typeof(x)])) != 0;
}

const struct jinja_test *jinja_function_find_test(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (strlen(tests[i].name) == n && memcmp(tests[i].name, name, n) == 0) {
            return &tests[i];
        }
    }
    return NULL;
}
