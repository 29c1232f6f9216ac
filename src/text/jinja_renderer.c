#include "text/jinja_renderer.h"

#include "core/array.h"
#include "text/jinja_function.h"
#include "text/jinja_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct jinja_variable {
    const char *name; /* name, borrowed from the tree */
    json_t *value;    /* value; the fields of a namespace */
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
    r->left.most_work -= 1 + (int64_t)(n / JINJA_BYTES_OF_STEP);
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

json_t *jinja_renderer_text_of(struct jinja_renderer *r, const json_t *v)
{
    char number[32];
    if (json_is_string(v)) {
        return json_incref((json_t *)v);
    }
    if (json_is_array(v) || json_is_object(v) || json_is_real(v)) {
        return jinja_renderer_fail(r, "%s is printed, which kiln does by tojson alone",
                                   jinja_operator_type(v));
    }
    snprintf(number, sizeof number, "%lld", (long long)json_integer_value(v));
    const char *text = v == NULL          ? ""
                       : json_is_true(v)  ? "True"
                       : json_is_false(v) ? "False"
                       : json_is_null(v)  ? "None"
                                          : number;
    return jinja_renderer_made_text(r, text, strlen(text));
}

void jinja_renderer_append(struct jinja_renderer *r, json_t *list, json_t *item)
{
    if (json_array_append_new(list, item) != 0) {
        fail_memory(r);
    }
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
    if (v == NULL && !ARRAY_RESERVE(r->variables, r->capacity, r->n + 1)) {
        json_decref(value);
        fail_memory(r);
        return;
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

/* ---- expressions ---- */

static json_t *evaluate_list(struct jinja_renderer *r, int first)
{
    json_t *list = jinja_renderer_made(r, json_array());
    for (int i = first; i != 0 && !failed(r->status); i = r->tree->nodes[i].next) {
        json_t *item = evaluate(r, i);
        if (item == NULL) {
            jinja_renderer_fail(r, "an item of a list is undefined");
        } else {
            jinja_renderer_append(r, list, item);
        }
    }
    jinja_operator_check_depth(r, list);
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
    jinja_operator_check_depth(r, dict);
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
    json_t *field = failed(r->status) ? NULL : jinja_operator_field(r, x, name_of(n, 0));
    json_decref(x);
    return field;
}

/* Evaluates a node that needs the values of all its children: items, slices, operators and calls. */
static json_t *evaluate_values(struct jinja_renderer *r, const struct jinja_node *n)
{
    json_t *of[JINJA_MOST_CHILDREN], *made = NULL;
    for (int i = 0; i < JINJA_MOST_CHILDREN; i++) {
        of[i] = n->of[i] == 0 || failed(r->status) ? NULL : evaluate(r, n->of[i]);
    }
    if (!failed(r->status)) {
        switch (n->kind) {
        case JINJA_ITEM: made = jinja_operator_item(r, of[0], of[1]); break;
        case JINJA_SLICE: made = jinja_operator_slice(r, of[0], of + 1); break;
        case JINJA_FILTER:
        case JINJA_METHOD:
            made = jinja_function_call(r, n->function, n->kind == JINJA_METHOD, of[0], of + 1);
            break;
        default: made = jinja_operator_apply(r, n->kind, of[0], of[1]); break;
        }
    }
    for (int i = 0; i < JINJA_MOST_CHILDREN; i++) {
        json_decref(of[i]);
    }
    return made;
}

/* Evaluates a node whose value depends on one child. */
static json_t *evaluate_one(struct jinja_renderer *r, const struct jinja_node *n)
{
    json_t *x = evaluate(r, n->of[0]), *made = NULL;
    if (failed(r->status)) {
        return NULL;
    }
    switch (n->kind) {
    case JINJA_NOT: made = json_boolean(!jinja_renderer_is_true(x)); break;
    case JINJA_TEST: made = json_boolean(jinja_function_holds(n->test, x)); break;
    case JINJA_CHOICE: made = evaluate(r, n->of[jinja_renderer_is_true(x) ? 1 : 2]); break;
    case JINJA_RAISE:
        jinja_renderer_fail(r, "%s", json_is_string(x) ? json_string_value(x) : "an exception");
        break;
    case JINJA_MINUS: made = jinja_operator_minus(r, x); break;
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

/* Renders statements whose names are not seen outside of them. */
static void render_scope(struct jinja_renderer *r, int body)
{
    int n = r->n, frame = r->frame;
    struct jinja_span span = {.begin = r->out->n};
    r->frame = n;
    render(r, body);
    forget(r, n);
    r->frame = frame;
    span.end = r->out->n;
    if (r->spans != NULL) {
        buf_append(r->spans, &span, sizeof span);
    }
}

/* The object "loop" in round i of n. */
static json_t *loop_of(struct jinja_renderer *r, const json_t *items, size_t i)
{
    size_t n = json_array_size(items);
    json_t *loop = jinja_renderer_made(
        r, json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:b}", "index", (json_int_t)i + 1, "index0",
                     (json_int_t)i, "revindex", (json_int_t)(n - i), "revindex0", (json_int_t)(n - i - 1),
                     "length", (json_int_t)n, "first", i == 0, "last", i + 1 == n));
    if (i > 0) {
        json_object_set(loop, "previtem", json_array_get(items, i - 1));
    }
    if (i + 1 < n) {
        json_object_set(loop, "nextitem", json_array_get(items, i + 1));
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
        jinja_renderer_fail(r, "%s is no pair", jinja_operator_type(item));
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
        return jinja_renderer_fail(r, "a loop goes through %s", jinja_operator_type(x));
    }
    list = jinja_renderer_made(r, json_array());
    for (size_t at = 0, n = json_string_length(x), bytes; at < n && !failed(r->status); at += bytes) {
        bytes = jinja_text_at(json_string_value(x) + at, n - at, 1);
        jinja_renderer_append(r, list, jinja_renderer_made_text(r, json_string_value(x) + at, bytes));
    }
    json_object_foreach((json_t *)x, key, value)
    {
        jinja_renderer_append(r, list, jinja_renderer_made_text(r, key, strlen(key)));
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
            jinja_renderer_append(r, kept, json_incref(item));
        }
        json_decref(holds);
        forget(r, n_before);
        r->frame = frame;
    }
    json_decref(items);
    return kept;
}

/* Renders a loop.  As in Jinja, "else" is for loops in which no round ran to its end, also if break or
 * continue is the cause. */
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

/* Renders a statement and the following ones, until one leaves the round of a loop. */
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

struct status jinja_renderer_run(struct buf *out, struct buf *spans, const struct jinja_tree *t,
                                 const json_t *globals, const struct jinja_limits *limits)
{
    struct jinja_renderer r = {.tree = t, .globals = globals, .out = out, .spans = spans, .left = *limits};
    render(&r, t->root);
    forget(&r, 0);
    free(r.variables);
    return failed(r.status) ? r.status : buf_status(out);
}
