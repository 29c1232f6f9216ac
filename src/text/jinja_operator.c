
#include "text/jinja_renderer.h"
#include "text/jinja_text.h"

#include <string.h>

enum { MOST_VALUE_DEPTH = 32 };

/* ---- values ---- */

const char *jinja_operator_type(const json_t *v)
{
    return v == NULL            ? "an undefined value"
           : json_is_string(v)  ? "a string"
           : json_is_array(v)   ? "a list"
           : json_is_object(v)  ? "a dict"
           : json_is_boolean(v) ? "a boolean"
           : json_is_null(v)    ? "none"
                                : "a number";
}

/* Whether the value is nested no deeper than `most`; reading it is work. */
static bool is_shallow(struct jinja_renderer *r, const json_t *v, int most)
{
    size_t i;
    const char *key;
    json_t *item;
    if (!json_is_array(v) && !json_is_object(v)) {
        return true;
    }
    if (most == 0) {
        jinja_renderer_fail(r, "a value is nested deeper than %d", MOST_VALUE_DEPTH);
        return false;
    }
    bool ok = jinja_renderer_spend(r, 0);
    json_array_foreach((json_t *)v, i, item)
    {
        ok = ok && is_shallow(r, item, most - 1);
    }
    json_object_foreach((json_t *)v, key, item)
    {
        ok = ok && is_shallow(r, item, most - 1);
    }
    return ok;
}

/* Truth is a number: True is 1. */
static bool is_number(const json_t *v)
{
    return json_is_integer(v) || json_is_boolean(v);
}

static int64_t number_of(const json_t *v)
{
    return json_is_integer(v) ? json_integer_value(v) : json_is_true(v);
}

static bool is_equal(const json_t *a, const json_t *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    return is_number(a) && is_number(b) ? number_of(a) == number_of(b) : json_equal(a, b) == 1;
}

/* ---- items ---- */

json_t *jinja_operator_field(struct jinja_renderer *r, const json_t *x, const char *key)
{
    if (x == NULL) {
        return jinja_renderer_fail(r, "'%.60s' is asked of what is undefined", key);
    }
    return json_incref(json_object_get(x, key));
}

static int64_t length_of(const json_t *x)
{
    return json_is_array(x) ? (int64_t)json_array_size(x)
                            : jinja_text_length(json_string_value(x), json_string_length(x));
}

/* Characters [from, to) of a string. */
static json_t *part_of_text(struct jinja_renderer *r, const json_t *x, int64_t from, int64_t to)
{
    const char *text = json_string_value(x);
    size_t n = json_string_length(x), begin = jinja_text_at(text, n, from);
    return jinja_renderer_made_text(r, text + begin, jinja_text_at(text + begin, n - begin, to - from));
}

json_t *jinja_operator_item(struct jinja_renderer *r, const json_t *x, const json_t *key)
{
    if (x == NULL || json_is_string(key)) {
        return jinja_operator_field(r, x, json_is_string(key) ? json_string_value(key) : "an item");
    }
    if (!is_number(key) || !(json_is_array(x) || json_is_string(x))) {
        return NULL;
    }
    int64_t i = number_of(key), n = length_of(x);
    i += i < 0 ? n : 0;
    if (i < 0 || i >= n || !jinja_renderer_spend(r, json_string_length(x))) {
        return NULL;
    }
    return json_is_array(x) ? json_incref(json_array_get(x, (size_t)i)) : part_of_text(r, x, i, i + 1);
}

/* A bound of a slice, as Python has it: counted from the end if it is negative, and cut. */
static int64_t bound(struct jinja_renderer *r, const json_t *v, int64_t absent, int64_t n, bool goes_back)
{
    if (v == NULL || json_is_null(v)) {
        return absent;
    }
    if (!is_number(v)) {
        jinja_renderer_fail(r, "a slice begins or ends at %s", jinja_operator_type(v));
        return 0;
    }
    int64_t i = number_of(v) + (number_of(v) < 0 ? n : 0), low = goes_back ? -1 : 0,
            high = goes_back ? n - 1 : n;
    return i < low ? low : i > high ? high : i;
}

json_t *jinja_operator_slice(struct jinja_renderer *r, const json_t *x, json_t *const *parts)
{
    if (!json_is_array(x) && !json_is_string(x)) {
        return jinja_renderer_fail(r, "a part is taken of %s", jinja_operator_type(x));
    }
    int64_t n = length_of(x), step = parts[2] == NULL || json_is_null(parts[2]) ? 1 : number_of(parts[2]);
    bool goes_back = step < 0;
    int64_t from = bound(r, parts[0], goes_back ? n - 1 : 0, n, goes_back),
            to = bound(r, parts[1], goes_back ? -1 : n, n, goes_back);
    if (step < -n - 1 || step > n + 1 || step == 0) {
        return jinja_renderer_fail(r, "a slice has the step %lld", (long long)step);
    }
    if (json_is_string(x)) {
        return step != 1 ? jinja_renderer_fail(r, "the step of a string's slice is not read by kiln")
               : jinja_renderer_spend(r, json_string_length(x))
                   ? part_of_text(r, x, from, to > from ? to : from)
                   : NULL;
    }
    json_t *made = jinja_renderer_made(r, json_array());
    for (int64_t i = from; goes_back ? i > to : i < to; i += step) {
        if (!jinja_renderer_spend(r, 0)) {
            break;
        }
        jinja_renderer_append(r, made, json_incref(json_array_get(x, (size_t)i)));
    }
    return made;
}

/* ---- operators ---- */

static int64_t divide_down(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static json_t *calculate(struct jinja_renderer *r, enum jinja_kind kind, int64_t a, int64_t b)
{
    int64_t result = 0;
    bool divides = kind == JINJA_DIVIDE || kind == JINJA_MODULO;
    bool fails = divides                  ? b == 0 || b == -1
                 : kind == JINJA_ADD      ? __builtin_add_overflow(a, b, &result)
                 : kind == JINJA_SUBTRACT ? __builtin_sub_overflow(a, b, &result)
                                          : __builtin_mul_overflow(a, b, &result);
    if (fails) {
        return jinja_renderer_fail(r, "a number is divided by %lld or grows too large", (long long)b);
    }
    result = kind == JINJA_DIVIDE   ? divide_down(a, b)
             : kind == JINJA_MODULO ? a - b * divide_down(a, b)
                                    : result;
    return jinja_renderer_made(r, json_integer(result));
}

static json_t *joined(struct jinja_renderer *r, const json_t *a, const json_t *b)
{
    size_t n = json_string_length(a) + json_string_length(b);
    struct buf both = {0};
    if (!jinja_renderer_spend(r, n)) {
        return NULL;
    }
    buf_append(&both, json_string_value(a), json_string_length(a));
    buf_append(&both, json_string_value(b), json_string_length(b));
    return jinja_renderer_take_text(r, &both);
}

static json_t *join_texts(struct jinja_renderer *r, const json_t *a, const json_t *b)
{
    json_t *x = jinja_renderer_text_of(r, a), *y = jinja_renderer_text_of(r, b), *both = joined(r, x, y);
    json_decref(x);
    json_decref(y);
    return both;
}

static json_t *join_lists(struct jinja_renderer *r, const json_t *a, const json_t *b)
{
    if (!jinja_renderer_spend(r, JINJA_BYTES_OF_STEP * (json_array_size(a) + json_array_size(b)))) {
        return NULL;
    }
    json_t *both = jinja_renderer_made(r, json_array());
    if (both != NULL &&
        (json_array_extend(both, (json_t *)a) != 0 || json_array_extend(both, (json_t *)b) != 0)) {
        jinja_renderer_made(r, NULL);
    }
    return both;
}

static json_t *combine(struct jinja_renderer *r, enum jinja_kind kind, const json_t *a, const json_t *b)
{
    if (is_number(a) && is_number(b)) {
        return calculate(r, kind, number_of(a), number_of(b));
    }
    if (kind == JINJA_ADD && json_is_string(a) && json_is_string(b)) {
        return joined(r, a, b);
    }
    if (kind == JINJA_ADD && json_is_array(a) && json_is_array(b)) {
        return join_lists(r, a, b);
    }
    return jinja_renderer_fail(r, "%s and %s cannot be combined", jinja_operator_type(a),
                               jinja_operator_type(b));
}

static bool compare(struct jinja_renderer *r, enum jinja_kind kind, const json_t *a, const json_t *b)
{
    int order = 0;
    if (is_number(a) && is_number(b)) {
        order = (number_of(a) > number_of(b)) - (number_of(a) < number_of(b));
    } else if (json_is_string(a) && json_is_string(b)) {
        /* The order of UTF-8 is that of code points. */
        order = strcmp(json_string_value(a), json_string_value(b));
    } else {
        jinja_renderer_fail(r, "%s and %s cannot be compared", jinja_operator_type(a),
                            jinja_operator_type(b));
    }
    return kind == JINJA_LESS         ? order < 0
           : kind == JINJA_LESS_EQUAL ? order <= 0
           : kind == JINJA_MORE       ? order > 0
                                      : order >= 0;
}

static bool is_in(struct jinja_renderer *r, const json_t *x, const json_t *in)
{
    size_t i, n = json_string_length(in);
    json_t *item;
    if (json_is_string(in) && json_is_string(x)) {
        return jinja_renderer_spend(r, n) &&
               (json_string_length(x) == 0 ||
                jinja_text_find(json_string_value(in), n, json_string_value(x), json_string_length(x)) < n);
    }
    json_array_foreach((json_t *)in, i, item)
    {
        if (!jinja_renderer_spend(r, json_string_length(item)) || is_equal(x, item)) {
            return !failed(r->status);
        }
    }
    if (in != NULL && !json_is_array(in) && !json_is_object(in)) {
        jinja_renderer_fail(r, "%s is looked for in %s", jinja_operator_type(x), jinja_operator_type(in));
    }
    return json_is_object(in) && json_is_string(x) && json_object_get(in, json_string_value(x)) != NULL;
}

json_t *jinja_operator_apply(struct jinja_renderer *r, enum jinja_kind kind, const json_t *a, const json_t *b)
{
    if (!jinja_renderer_spend(r, json_string_length(a) + json_string_length(b))) {
        return NULL;
    }
    switch (kind) {
    case JINJA_JOIN: return join_texts(r, a, b);
    case JINJA_EQUAL:
    case JINJA_UNEQUAL:
        return is_shallow(r, a, MOST_VALUE_DEPTH) ? json_boolean(is_equal(a, b) == (kind == JINJA_EQUAL))
                                                  : NULL;
    case JINJA_LESS:
    case JINJA_LESS_EQUAL:
    case JINJA_MORE:
    case JINJA_MORE_EQUAL: return json_boolean(compare(r, kind, a, b));
    case JINJA_IN: return json_boolean(is_in(r, a, b));
    default: return combine(r, kind, a, b);
    }
}

json_t *jinja_operator_minus(struct jinja_renderer *r, const json_t *x)
{
    return is_number(x) ? calculate(r, JINJA_SUBTRACT, 0, number_of(x))
                        : jinja_renderer_fail(r, "%s has no negative", jinja_operator_type(x));
}

void jinja_operator_check_depth(struct jinja_renderer *r, const json_t *x)
{
    is_shallow(r, x, MOST_VALUE_DEPTH);
}
