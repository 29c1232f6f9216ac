#include "text/jinja_function.h"

#include "text/jinja_text.h"

#include <ctype.h>
#include <string.h>

/* ---- white space and letter case ---- */

static json_t *stripped(struct jinja_renderer *r, const json_t *x, const json_t *set, bool left, bool right)
{
    const char *text = json_string_value(x), *characters = json_string_value(set);
    size_t n = json_string_length(x), n_set = json_string_length(set);
    if (set != NULL && !json_is_string(set) && !json_is_null(set)) {
        return jinja_renderer_fail(r, "what is stripped must be a string");
    }
    if (!jinja_renderer_spend(r, n * (1 + n_set))) {
        return NULL;
    }
    size_t begin = left ? jinja_text_left(text, n, characters, n_set) : 0;
    size_t end = right ? n - jinja_text_right(text + begin, n - begin, characters, n_set) : n;
    return jinja_renderer_made_text(r, text + begin, end - begin);
}

static json_t *call_strip(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    return stripped(r, x, a[0], true, true);
}

static json_t *call_lstrip(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    return stripped(r, x, a[0], true, false);
}

static json_t *call_rstrip(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    return stripped(r, x, a[0], false, true);
}

static json_t *in_case(struct jinja_renderer *r, const json_t *x, enum jinja_case to)
{
    struct buf text = {0};
    if (!jinja_renderer_spend(r, json_string_length(x))) {
        return NULL;
    }
    jinja_text_case(&text, json_string_value(x), json_string_length(x), to);
    return jinja_renderer_take_text(r, &text);
}

static json_t *call_lower(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    (void)a;
    return in_case(r, x, JINJA_LOWER);
}

static json_t *call_upper(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    (void)a;
    return in_case(r, x, JINJA_UPPER);
}

static json_t *call_capitalize(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    (void)a;
    return in_case(r, x, JINJA_CAPITALIZED);
}

static json_t *call_title(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    (void)a;
    return in_case(r, x, JINJA_TITLE);
}

/* ---- parts of texts ---- */

static json_t *call_replace(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    const char *text = json_string_value(x), *old = json_string_value(a[0]);
    size_t n = json_string_length(x), n_old = json_string_length(a[0]), at = 0;
    struct buf made = {0};
    if (n_old == 0 || !json_is_string(a[1])) {
        return jinja_renderer_fail(r, "replace wants a string that is not empty, and another in its place");
    }
    while (at < n && jinja_renderer_spend(r, made.n)) {
        size_t found = jinja_text_find(text + at, n - at, old, n_old);
        buf_append(&made, text + at, found);
        at += found;
        if (at < n) {
            buf_append(&made, json_string_value(a[1]), json_string_length(a[1]));
            at += n_old;
        }
    }
    return jinja_renderer_take_text(r, &made);
}

/* Splits at white space, or at a string, at most the number of times that is asked for. */
static json_t *call_split(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    const char *text = json_string_value(x), *by = json_string_value(a[0]);
    size_t n = json_string_length(x), n_by = json_string_length(a[0]), at = 0, found;
    int64_t most = json_is_integer(a[1]) ? json_integer_value(a[1]) : -1;
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
static json_t *has_edge(struct jinja_renderer *r, const json_t *x, const json_t *part, bool at_end)
{
    size_t n = json_string_length(x), n_part = json_string_length(part);
    if (!json_is_string(part)) {
        return jinja_renderer_fail(r, "startswith and endswith want a string");
    }
    bool has = n_part <= n &&
               memcmp(json_string_value(x) + (at_end ? n - n_part : 0), json_string_value(part), n_part) == 0;
    return json_boolean(has);
}

static json_t *call_startswith(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    return has_edge(r, x, a[0], false);
}

static json_t *call_endswith(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    return has_edge(r, x, a[0], true);
}

/* ---- lists and dicts ---- */

static json_t *call_length(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    (void)a;
    if (!jinja_renderer_spend(r, json_string_length(x))) {
        return NULL;
    }
    if (x != NULL && !json_is_string(x) && !json_is_array(x) && !json_is_object(x)) {
        return jinja_renderer_fail(r, "length wants a string, a list or a dict");
    }
    int64_t n = json_is_string(x) ? jinja_text_length(json_string_value(x), json_string_length(x))
                                  : (int64_t)(json_array_size(x) + json_object_size(x));
    return jinja_renderer_made(r, json_integer(n));
}

static json_t *end_item(struct jinja_renderer *r, const json_t *x, bool is_last)
{
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

static json_t *call_first(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    (void)a;
    return end_item(r, x, false);
}

static json_t *call_last(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    (void)a;
    return end_item(r, x, true);
}

static json_t *call_join(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    struct buf text = {0};
    size_t i;
    json_t *item;
    if ((x != NULL && !json_is_array(x)) || (a[0] != NULL && !json_is_string(a[0]))) {
        return jinja_renderer_fail(r, "join wants a list, and a string to put between its items");
    }
    json_array_foreach(x, i, item)
    {
        json_t *part = jinja_renderer_text_of(r, item);
        if (part == NULL || !jinja_renderer_spend(r, json_string_length(part) + json_string_length(a[0]))) {
            json_decref(part);
            break;
        }
        buf_append(&text, json_string_value(a[0]), i == 0 ? 0 : json_string_length(a[0]));
        buf_append(&text, json_string_value(part), json_string_length(part));
        json_decref(part);
    }
    return jinja_renderer_take_text(r, &text);
}

static json_t *call_items(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    const char *key;
    json_t *value, *list;
    (void)a;
    if (x != NULL && !json_is_object(x)) {
        return jinja_renderer_fail(r, "items wants a dict");
    }
    list = jinja_renderer_made(r, json_array());
    json_object_foreach(x, key, value)
    {
        if (!jinja_renderer_spend(r, strlen(key)) ||
            json_array_append_new(list, json_pack("[s, O]", key, value)) != 0) {
            break;
        }
    }
    return list;
}

static json_t *call_get(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    if (!json_is_string(a[0])) {
        return jinja_renderer_fail(r, "get wants the name of a key");
    }
    json_t *value = json_object_get(x, json_string_value(a[0]));
    return value != NULL ? json_incref(value) : a[1] != NULL ? json_incref(a[1]) : json_null();
}

/* ---- any value ---- */

static json_t *call_default(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    bool is_kept = x != NULL && (jinja_renderer_is_true(x) || !jinja_renderer_is_true(a[1]));
    return is_kept ? json_incref(x) : a[0] != NULL ? json_incref(a[0]) : jinja_renderer_made_text(r, "", 0);
}

static json_t *call_string(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    (void)r;
    (void)a;
    return json_incref(x);
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
static json_t *call_tojson(struct jinja_renderer *r, json_t *x, json_t *const *a)
{
    enum { MOST_INDENT = 8 };
    struct dump d = {.r = r};
    json_int_t indent = json_integer_value(a[0]);
    if (x == NULL || (a[0] != NULL && (indent < 1 || indent > MOST_INDENT))) {
        return jinja_renderer_fail(r, "tojson wants a value, and an indent from 1 to %d if there is one",
                                   MOST_INDENT);
    }
    if (json_dump_callback(x, dump, &d, JSON_ENCODE_ANY | JSON_INDENT((size_t)indent)) != 0) {
        jinja_renderer_fail(r, "tojson has failed");
    }
    lower_escapes(&d.text);
    return jinja_renderer_take_text(r, &d.text);
}

/* ---- tables ---- */

static const struct jinja_function functions[] = {
    {"trim", true, false, true, 0, 1, {"chars"}, call_strip},
    {"strip", false, true, true, 0, 1, {0}, call_strip},
    {"lstrip", false, true, true, 0, 1, {0}, call_lstrip},
    {"rstrip", false, true, true, 0, 1, {0}, call_rstrip},
    {"lower", true, true, true, 0, 0, {0}, call_lower},
    {"upper", true, true, true, 0, 0, {0}, call_upper},
    {"capitalize", true, true, true, 0, 0, {0}, call_capitalize},
    {"title", false, true, true, 0, 0, {0}, call_title},
    {"replace", true, true, true, 2, 2, {"old", "new"}, call_replace},
    {"split", false, true, true, 1, 2, {"sep", "maxsplit"}, call_split},
    {"startswith", false, true, true, 1, 1, {0}, call_startswith},
    {"endswith", false, true, true, 1, 1, {0}, call_endswith},
    {"string", true, false, true, 0, 0, {0}, call_string},
    {"length", true, false, false, 0, 0, {0}, call_length},
    {"count", true, false, false, 0, 0, {0}, call_length},
    {"first", true, false, false, 0, 0, {0}, call_first},
    {"last", true, false, false, 0, 0, {0}, call_last},
    {"join", true, false, false, 0, 1, {"d"}, call_join},
    {"items", true, true, false, 0, 0, {0}, call_items},
    {"get", false, true, false, 1, 2, {0}, call_get},
    {"default", true, false, false, 0, 2, {"default_value", "boolean"}, call_default},
    {"d", true, false, false, 0, 2, {"default_value", "boolean"}, call_default},
    {"tojson", true, false, false, 0, 0, {"indent"}, call_tojson},
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
    if (!f->of_text) {
        return f->call(r, x, arguments);
    }
    json_t *text = jinja_renderer_text_of(r, x), *made = text == NULL ? NULL : f->call(r, text, arguments);
    json_decref(text);
    return made;
}

static bool is_defined(const json_t *x)
{
    return x != NULL;
}

static bool is_undefined(const json_t *x)
{
    return x == NULL;
}

static bool is_none(const json_t *x)
{
    return json_is_null(x);
}

static bool is_string(const json_t *x)
{
    return json_is_string(x);
}

static bool is_mapping(const json_t *x)
{
    return json_is_object(x);
}

/* Whether a value has a length and items; Jinja's undefined has both. */
static bool is_sequence(const json_t *x)
{
    return x == NULL || json_is_string(x) || json_is_array(x) || json_is_object(x);
}

static bool is_boolean(const json_t *x)
{
    return json_is_boolean(x);
}

static bool is_true(const json_t *x)
{
    return json_is_true(x);
}

static bool is_false(const json_t *x)
{
    return json_is_false(x);
}

static bool is_number(const json_t *x)
{
    return json_is_number(x) || json_is_boolean(x);
}

static const struct jinja_test tests[] = {
    {"defined", is_defined}, {"undefined", is_undefined}, {"none", is_none},         {"string", is_string},
    {"mapping", is_mapping}, {"sequence", is_sequence},   {"iterable", is_sequence}, {"boolean", is_boolean},
    {"true", is_true},       {"false", is_false},         {"number", is_number},
};

const struct jinja_test *jinja_function_find_test(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (strlen(tests[i].name) == n && memcmp(tests[i].name, name, n) == 0) {
            return &tests[i];
        }
    }
    return NULL;
}
