#include "text/jinja_renderer.h"

#include "text/jinja_function.h"
#include "text/jinja_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUE_DEPTH = 32, BYTES_OF_STEP = 64 };

struct jinja_variable {
    const char *name; /* of the tree */
    json_t *value;    /* of a namespace its fields */
    bool is_namespace;
};

static json_t *evaluate(struct jinja_renderer *r, int at);
static void render(struct jinja_renderer *r, int at);

/* ---- failures and limits ---- */

json_t *jinja_renderer_fail(struct jinja_renderer *r, const char *format, ...)
{
    char what[400];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (!failed(r->status)) {
        r->status = status_error(STATUS_DATA, "line %d: %s", r->line, what);
    }
    return NULL;
}

static json_t *fail_memory(struct jinja_renderer *r)
{
    if (!failed(r->status)) {
        r->status = status_error(STATUS_MEMORY, "out of memory");
    }
    return NULL;
}

bool jinja_renderer_spend(struct jinja_renderer *r, size_t n)
{
    r->left.most_work -= 1 + (int64_t)(n / BYTES_OF_STEP);
    if (r->left.most_work < 0) {
        jinja_renderer_fail(r, "it does more work than kiln allows");
    }
    return !failed(r->status);
}

static bool enter(struct jinja_renderer *r)
{
    if (r->depth == JINJA_MOST_DEPTH) {
        jinja_renderer_fail(r, "it is nested deeper than %d", JINJA_MOST_DEPTH);
    }
    r->depth += !failed(r->status);
    return !failed(r->status);
}

static void put(struct jinja_renderer *r, const json_t *text)
{
    size_t n = json_string_length(text);
    if (n > r->left.most_bytes) {
        jinja_renderer_fail(r, "it says more than kiln allows");
        return;
    }
    r->left.most_bytes -= n;
    buf_append(r->out, json_string_value(text), n);
}

/* ---- values ---- */

json_t *jinja_renderer_made(struct jinja_renderer *r, json_t *value)
{
    return value == NULL ? fail_memory(r) : value;
}

json_t *jinja_renderer_made_text(struct jinja_renderer *r, const char *text, size_t n)
{
    return jinja_renderer_spend(r, n) ? jinja_renderer_made(r, json_stringn(text, n)) : NULL;
}

json_t *jinja_renderer_take_text(struct jinja_renderer *r, struct buf *text)
{
    json_t *made = text->failed ? fail_memory(r) : jinja_renderer_made_text(r, buf_text(text), text->n);
    buf_fini(text);
    return made;
}

bool jinja_renderer_is_true(const json_t *v)
{
    return v != NULL && !json_is_null(v) && !json_is_false(v) &&
           !(json_is_integer(v) && json_integer_value(v) == 0) &&
           !(json_is_real(v) && json_real_value(v) == 0) &&
           !(json_is_string(v) && json_string_length(v) == 0) &&
           !(json_is_array(v) && json_array_size(v) == 0) && !(json_is_object(v) && json_object_size(v) == 0);
}

static const char *type_name(const json_t *v)
{
    return v == NULL            ? "an undefined value"
           : json_is_string(v)  ? "a string"
           : json_is_array(v)   ? "a list"
           : json_is_object(v)  ? "a dict"
           : json_is_boolean(v) ? "a boolean"
           : json_is_null(v)    ? "none"
                                : "a number";
}

json_t *jinja_renderer_text_of(struct jinja_renderer *r, const json_t *v)
{
    char number[32];
    if (json_is_string(v)) {
        return json_incref((json_t *)v);
    }
    if (json_is_array(v) || json_is_object(v) || json_is_real(v)) {
        return jinja_renderer_fail(r, "%s is printed, which kiln does by tojson alone", type_name(v));
    }
    snprintf(number, sizeof number, "%lld", (long long)json_integer_value(v));
    const char *text = v == NULL          ? ""
                       : json_is_true(v)  ? "True"
                       : json_is_false(v) ? "False"
                       : json_is_null(v)  ? "None"
                                          : number;
    return jinja_renderer_made_text(r, text, strlen(text));
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

/* Takes the item over. */
static void append(struct jinja_renderer *r, json_t *list, json_t *item)
{
    if (json_array_append_new(list, item) != 0) {
        fail_memory(r);
    }
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

/* ---- variables ---- */

static const char *name_of(const struct jinja_node *n, size_t i)
{
    return json_string_value(json_is_array(n->value) ? json_array_get(n->value, i) : n->value);
}

static struct jinja_variable *find(const struct jinja_renderer *r, const char *name, int from)
{
    for (int i = r->n - 1; i >= from; i--) {
        if (strcmp(r->variables[i].name, name) == 0) {
            return &r->variables[i];
        }
    }
    return NULL;
}

/* Takes the value over. */
static void set(struct jinja_renderer *r, const char *name, json_t *value, bool is_namespace)
{
    struct jinja_variable *v = find(r, name, r->frame);
    if (v == NULL && r->n == r->capacity) {
        int capacity = r->capacity * 2 + 16;
        struct jinja_variable *more = realloc(r->variables, (size_t)capacity * sizeof *more);
        if (more == NULL) {
            json_decref(value);
            fail_memory(r);
            return;
        }
        r->variables = more;
        r->capacity = capacity;
    }
    if (v == NULL) {
        v = &r->variables[r->n++];
        v->value = NULL;
    }
    json_decref(v->value);
    *v = (struct jinja_variable){name, value, is_namespace};
}

/* Forgets the variables from `n` on. */
static void forget(struct jinja_renderer *r, int n)
{
    while (r->n > n) {
        json_decref(r->variables[--r->n].value);
    }
}

/* ---- items ---- */

static json_t *field_of(struct jinja_renderer *r, const json_t *x, const char *key)
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

static json_t *item_of(struct jinja_renderer *r, const json_t *x, const json_t *key)
{
    if (x == NULL || json_is_string(key)) {
        return field_of(r, x, json_is_string(key) ? json_string_value(key) : "an item");
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
        jinja_renderer_fail(r, "a slice begins or ends at %s", type_name(v));
        return 0;
    }
    int64_t i = number_of(v) + (number_of(v) < 0 ? n : 0), low = goes_back ? -1 : 0,
            high = goes_back ? n - 1 : n;
    return i < low ? low : i > high ? high : i;
}

static json_t *slice_of(struct jinja_renderer *r, const json_t *x, json_t *const *parts)
{
    if (!json_is_array(x) && !json_is_string(x)) {
        return jinja_renderer_fail(r, "a part is taken of %s", type_name(x));
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
        append(r, made, json_incref(json_array_get(x, (size_t)i)));
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
    if (!jinja_renderer_spend(r, BYTES_OF_STEP * (json_array_size(a) + json_array_size(b)))) {
        return NULL;
    }
    json_t *both = jinja_renderer_made(r, json_array());
    if (both != NULL &&
        (json_array_extend(both, (json_t *)a) != 0 || json_array_extend(both, (json_t *)b) != 0)) {
        fail_memory(r);
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
    return jinja_renderer_fail(r, "%s and %s cannot be combined", type_name(a), type_name(b));
}

static bool compare(struct jinja_renderer *r, enum jinja_kind kind, const json_t *a, const json_t *b)
{
    int order = 0;
    if (is_number(a) && is_number(b)) {
        order = (number_of(a) > number_of(b)) - (number_of(a) < number_of(b));
    } else if (json_is_string(a) && json_is_string(b)) {
        order = strcmp(json_string_value(a), json_string_value(b)); /* of UTF-8, the order of code points */
    } else {
        jinja_renderer_fail(r, "%s and %s cannot be compared", type_name(a), type_name(b));
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
        jinja_renderer_fail(r, "%s is looked for in %s", type_name(x), type_name(in));
    }
    return json_is_object(in) && json_is_string(x) && json_object_get(in, json_string_value(x)) != NULL;
}

static json_t *apply(struct jinja_renderer *r, enum jinja_kind kind, const json_t *a, const json_t *b)
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

/* ---- expressions ---- */

static json_t *evaluate_list(struct jinja_renderer *r, int first)
{
    json_t *list = jinja_renderer_made(r, json_array());
    for (int i = first; i != 0 && !failed(r->status); i = r->tree->nodes[i].next) {
        json_t *item = evaluate(r, i);
        if (item == NULL) {
            jinja_renderer_fail(r, "an item of a list is undefined");
        } else {
            append(r, list, item);
        }
    }
    is_shallow(r, list, MOST_VALUE_DEPTH);
    return list;
}

static json_t *evaluate_dict(struct jinja_renderer *r, int first)
{
    json_t *dict = jinja_renderer_made(r, json_object());
    for (int i = first; i != 0 && !failed(r->status);) {
        int second = r->tree->nodes[i].next;
        json_t *key = evaluate(r, i), *value = evaluate(r, second);
        if (!json_is_string(key) || value == NULL) {
            jinja_renderer_fail(r, "a dict has a key that is no string, or an undefined value");
            json_decref(value);
        } else if (json_object_set_new(dict, json_string_value(key), value) != 0) {
            fail_memory(r);
        }
        json_decref(key);
        i = r->tree->nodes[second].next;
    }
    is_shallow(r, dict, MOST_VALUE_DEPTH);
    return dict;
}

static json_t *evaluate_name(struct jinja_renderer *r, const char *name)
{
    const struct jinja_variable *v = find(r, name, 0);
    if (v != NULL && v->is_namespace) {
        return jinja_renderer_fail(r, "the namespace %.60s is used as a value, which is not read by kiln",
                                   name);
    }
    return json_incref(v != NULL ? v->value : json_object_get(r->globals, name));
}

/* The fields of the namespace that a name stands for; NULL: it is none. */
static json_t *namespace_of(const struct jinja_renderer *r, int at)
{
    const struct jinja_node *n = &r->tree->nodes[at];
    const struct jinja_variable *v = n->kind == JINJA_NAME ? find(r, name_of(n, 0), 0) : NULL;
    return v != NULL && v->is_namespace ? v->value : NULL;
}

static json_t *evaluate_field(struct jinja_renderer *r, const struct jinja_node *n)
{
    json_t *fields = namespace_of(r, n->of[0]);
    json_t *x = fields != NULL ? json_incref(fields) : evaluate(r, n->of[0]);
    json_t *field = failed(r->status) ? NULL : field_of(r, x, name_of(n, 0));
    json_decref(x);
    return field;
}

/* Of nodes that need the values of all of theirs: items, slices, operators and calls. */
static json_t *evaluate_values(struct jinja_renderer *r, const struct jinja_node *n)
{
    json_t *of[JINJA_MOST_CHILDREN], *made = NULL;
    for (int i = 0; i < JINJA_MOST_CHILDREN; i++) {
        of[i] = n->of[i] == 0 || failed(r->status) ? NULL : evaluate(r, n->of[i]);
    }
    if (!failed(r->status)) {
        switch (n->kind) {
        case JINJA_ITEM: made = item_of(r, of[0], of[1]); break;
        case JINJA_SLICE: made = slice_of(r, of[0], of + 1); break;
        case JINJA_FILTER:
        case JINJA_METHOD:
            made = jinja_function_call(r, n->function, n->kind == JINJA_METHOD, of[0], of + 1);
            break;
        default: made = apply(r, n->kind, of[0], of[1]); break;
        }
    }
    for (int i = 0; i < JINJA_MOST_CHILDREN; i++) {
        json_decref(of[i]);
    }
    return made;
}

/* Of nodes that ask one value what it is. */
static json_t *evaluate_one(struct jinja_renderer *r, const struct jinja_node *n)
{
    json_t *x = evaluate(r, n->of[0]), *made = NULL;
    if (failed(r->status)) {
        return NULL;
    }
    switch (n->kind) {
    case JINJA_NOT: made = json_boolean(!jinja_renderer_is_true(x)); break;
    case JINJA_TEST: made = json_boolean(n->test->holds(x)); break;
    case JINJA_CHOICE: made = evaluate(r, n->of[jinja_renderer_is_true(x) ? 1 : 2]); break;
    case JINJA_RAISE:
        jinja_renderer_fail(r, "%s", json_is_string(x) ? json_string_value(x) : "an exception");
        break;
    case JINJA_MINUS:
        made = is_number(x) ? calculate(r, JINJA_SUBTRACT, 0, number_of(x))
                            : jinja_renderer_fail(r, "%s has no negative", type_name(x));
        break;
    default: /* "and" and "or" */
        made = jinja_renderer_is_true(x) == (n->kind == JINJA_OR) ? json_incref(x) : evaluate(r, n->of[1]);
        break;
    }
    json_decref(x);
    return made;
}

static json_t *evaluate_node(struct jinja_renderer *r, const struct jinja_node *n)
{
    switch (n->kind) {
    case JINJA_LITERAL: return json_incref(n->value);
    case JINJA_NAME: return evaluate_name(r, name_of(n, 0));
    case JINJA_LIST: return evaluate_list(r, n->of[0]);
    case JINJA_DICT: return evaluate_dict(r, n->of[0]);
    case JINJA_FIELD: return evaluate_field(r, n);
    case JINJA_NOT:
    case JINJA_TEST:
    case JINJA_CHOICE:
    case JINJA_RAISE:
    case JINJA_MINUS:
    case JINJA_AND:
    case JINJA_OR: return evaluate_one(r, n);
    default: return evaluate_values(r, n);
    }
}

/* The value of a node, owned; NULL is undefined, as is that of no node. */
static json_t *evaluate(struct jinja_renderer *r, int at)
{
    int line = r->line;
    if (at == 0 || !jinja_renderer_spend(r, 0) || !enter(r)) {
        return NULL;
    }
    r->line = r->tree->nodes[at].line;
    json_t *value = evaluate_node(r, &r->tree->nodes[at]);
    r->line = line;
    r->depth--;
    if (failed(r->status)) {
        json_decref(value);
        value = NULL;
    }
    return value;
}

/* ---- statements ---- */

/* Renders statements whose names nobody else sees. */
static void render_scope(struct jinja_renderer *r, int body)
{
    int n = r->n, frame = r->frame;
    r->frame = n;
    render(r, body);
    forget(r, n);
    r->frame = frame;
}

static void put_field(json_t *loop, const char *name, json_t *value)
{
    json_object_set_new(loop, name, value);
}

/* What "loop" says in round i of n. */
static json_t *loop_of(struct jinja_renderer *r, const json_t *items, size_t i)
{
    json_t *loop = jinja_renderer_made(r, json_object());
    size_t n = json_array_size(items);
    put_field(loop, "index", json_integer((json_int_t)i + 1));
    put_field(loop, "index0", json_integer((json_int_t)i));
    put_field(loop, "revindex", json_integer((json_int_t)(n - i)));
    put_field(loop, "revindex0", json_integer((json_int_t)(n - i - 1)));
    put_field(loop, "length", json_integer((json_int_t)n));
    put_field(loop, "first", json_boolean(i == 0));
    put_field(loop, "last", json_boolean(i + 1 == n));
    if (i > 0) {
        json_object_set(loop, "previtem", json_array_get(items, i - 1));
    }
    if (i + 1 < n) {
        json_object_set(loop, "nextitem", json_array_get(items, i + 1));
    }
    if (loop != NULL && json_object_size(loop) < 7) {
        fail_memory(r);
    }
    return loop;
}

/* Names the item of a round, or its two parts. */
static void set_targets(struct jinja_renderer *r, const struct jinja_node *n, const json_t *item)
{
    size_t n_names = json_array_size(n->value);
    if (n_names == 1) {
        set(r, name_of(n, 0), json_incref((json_t *)item), false);
    } else if (!json_is_array(item) || json_array_size(item) != n_names) {
        jinja_renderer_fail(r, "%s is no pair", type_name(item));
    } else {
        set(r, name_of(n, 0), json_incref(json_array_get(item, 0)), false);
        set(r, name_of(n, 1), json_incref(json_array_get(item, 1)), false);
    }
}

/* The items of a loop as a list: characters of a string, keys of a dict. */
static json_t *items_of(struct jinja_renderer *r, const json_t *x)
{
    const char *key;
    json_t *value, *list;
    if (json_is_array(x)) {
        return json_incref((json_t *)x);
    }
    if (x != NULL && !json_is_string(x) && !json_is_object(x)) {
        return jinja_renderer_fail(r, "a loop goes through %s", type_name(x));
    }
    list = jinja_renderer_made(r, json_array());
    for (size_t at = 0, n = json_string_length(x), bytes; at < n && !failed(r->status); at += bytes) {
        bytes = jinja_text_at(json_string_value(x) + at, n - at, 1);
        append(r, list, jinja_renderer_made_text(r, json_string_value(x) + at, bytes));
    }
    json_object_foreach((json_t *)x, key, value)
    {
        append(r, list, jinja_renderer_made_text(r, key, strlen(key)));
    }
    return list;
}

/* Leaves the items for which the loop's condition holds. */
static json_t *filtered(struct jinja_renderer *r, const struct jinja_node *n, json_t *items)
{
    size_t i;
    json_t *item, *kept = jinja_renderer_made(r, json_array());
    int n_before = r->n, frame = r->frame;
    json_array_foreach(items, i, item)
    {
        if (failed(r->status)) {
            break;
        }
        r->frame = n_before;
        set_targets(r, n, item);
        json_t *holds = failed(r->status) ? NULL : evaluate(r, n->of[3]);
        if (jinja_renderer_is_true(holds)) {
            append(r, kept, json_incref(item));
        }
        json_decref(holds);
        forget(r, n_before);
        r->frame = frame;
    }
    json_decref(items);
    return kept;
}

/* As in Jinja, "else" is for loops of which no round ran to its end, be it for break or continue. */
static void render_for(struct jinja_renderer *r, const struct jinja_node *n)
{
    json_t *x = evaluate(r, n->of[0]), *items = failed(r->status) ? NULL : items_of(r, x), *item;
    int n_before = r->n, frame = r->frame;
    bool has_ended = false;
    size_t i;
    json_decref(x);
    items = n->of[3] != 0 && items != NULL ? filtered(r, n, items) : items;
    json_array_foreach(items, i, item)
    {
        if (failed(r->status) || r->flow == JINJA_BREAKS) {
            break;
        }
        r->frame = n_before;
        set_targets(r, n, item);
        set(r, "loop", loop_of(r, items, i), false);
        render(r, n->of[1]);
        forget(r, n_before);
        has_ended |= r->flow == JINJA_GOES_ON;
        r->flow = r->flow == JINJA_CONTINUES ? JINJA_GOES_ON : r->flow;
    }
    r->frame = frame;
    r->flow = JINJA_GOES_ON;
    if (!failed(r->status) && !has_ended) {
        render_scope(r, n->of[2]);
    }
    json_decref(items);
}

static void render_if(struct jinja_renderer *r, const struct jinja_node *n)
{
    json_t *condition = evaluate(r, n->of[0]);
    if (!failed(r->status)) {
        render(r, n->of[jinja_renderer_is_true(condition) ? 1 : 2]);
    }
    json_decref(condition);
}

static void render_namespace(struct jinja_renderer *r, const struct jinja_node *n)
{
    json_t *fields = jinja_renderer_made(r, json_object());
    for (int i = n->of[0]; i != 0 && !failed(r->status); i = r->tree->nodes[i].next) {
        const struct jinja_node *field = &r->tree->nodes[i];
        json_t *value = evaluate(r, field->of[0]);
        if (value != NULL && json_object_set_new(fields, name_of(field, 0), value) != 0) {
            fail_memory(r);
        }
    }
    set(r, name_of(n, 0), fields, true);
}

static void render_field(struct jinja_renderer *r, const struct jinja_node *n)
{
    struct jinja_variable *v = find(r, name_of(n, 0), 0);
    if (v == NULL || !v->is_namespace) {
        jinja_renderer_fail(r, "%.60s is no namespace, so its fields cannot be set", name_of(n, 0));
        return;
    }
    json_t *value = evaluate(r, n->of[0]);
    if (value == NULL) {
        json_object_del(v->value, name_of(n, 1));
    } else if (json_object_set_new(v->value, name_of(n, 1), value) != 0) {
        fail_memory(r);
    }
}

static void render_print(struct jinja_renderer *r, const struct jinja_node *n)
{
    json_t *value = evaluate(r, n->of[0]),
           *text = failed(r->status) ? NULL : jinja_renderer_text_of(r, value);
    if (text != NULL) {
        put(r, text);
    }
    json_decref(text);
    json_decref(value);
}

static void render_statement(struct jinja_renderer *r, const struct jinja_node *n)
{
    r->line = n->line;
    switch (n->kind) {
    case JINJA_TEXT: put(r, n->value); break;
    case JINJA_PRINT: render_print(r, n); break;
    case JINJA_IF: render_if(r, n); break;
    case JINJA_FOR: render_for(r, n); break;
    case JINJA_SET: set(r, name_of(n, 0), evaluate(r, n->of[0]), false); break;
    case JINJA_SET_FIELD: render_field(r, n); break;
    case JINJA_SET_NAMESPACE: render_namespace(r, n); break;
    case JINJA_SCOPE: render_scope(r, n->of[0]); break;
    case JINJA_BREAK: r->flow = JINJA_BREAKS; break;
    default: r->flow = JINJA_CONTINUES; break;
    }
}

/* Renders a statement and those behind it, until one leaves the round of a loop. */
static void render(struct jinja_renderer *r, int at)
{
    if (at == 0 || !enter(r)) {
        return;
    }
    for (; at != 0 && r->flow == JINJA_GOES_ON && jinja_renderer_spend(r, 0); at = r->tree->nodes[at].next) {
        render_statement(r, &r->tree->nodes[at]);
    }
    r->depth--;
}

struct status jinja_renderer_run(struct buf *out, const struct jinja_tree *t, const json_t *globals,
                                 const struct jinja_limits *limits)
{
    struct jinja_renderer r = {.tree = t, .globals = globals, .out = out, .left = *limits};
    render(&r, t->root);
    forget(&r, 0);
    free(r.variables);
    return failed(r.status) ? r.status : buf_status(out);
}
