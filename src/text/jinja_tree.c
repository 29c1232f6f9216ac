/* The parser goes down recursively, as jinja2/parser.py.  An error sticks in parser.status and moves to the
 * end of the tokens, where every loop ends. */
#include "text/jinja_tree.h"

#include "text/jinja_function.h"
#include "text/jinja_lexer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    struct jinja_tree *tree;
    const struct jinja_lexer *lexer;
    int at, depth;
    int n_loops; /* around the statement */
    struct status status;
};

static int parse_expression(struct parser *p);
static int parse_unary(struct parser *p, bool with_filters);
static int parse_body(struct parser *p);

/* ---- tokens ---- */

static const struct jinja_token *now(const struct parser *p)
{
    return &p->lexer->tokens[p->at];
}

__attribute__((format(printf, 2, 3))) static int fail(struct parser *p, const char *format, ...)
{
    char what[256];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (!failed(p->status)) {
        p->status = status_error(STATUS_DATA, "line %d: %s", now(p)->line, what);
    }
    p->at = p->lexer->n - 1;
    return 0;
}

static int fail_memory(struct parser *p)
{
    fail(p, "out of memory");
    p->status.code = STATUS_MEMORY;
    return 0;
}

/* Whether the token that is `ahead` of this one has this text. */
static bool is_ahead(const struct parser *p, int ahead, enum jinja_token_kind kind, const char *text)
{
    int at = p->at + ahead;
    const struct jinja_token *t = &p->lexer->tokens[at < p->lexer->n ? at : p->lexer->n - 1];
    return t->kind == kind && t->n == strlen(text) && memcmp(t->text, text, t->n) == 0;
}

static bool take(struct parser *p, enum jinja_token_kind kind, const char *text)
{
    bool is_it = is_ahead(p, 0, kind, text);
    p->at += is_it;
    return is_it;
}

static bool take_operator(struct parser *p, const char *text)
{
    return take(p, JINJA_TOKEN_OPERATOR, text);
}

static bool take_name(struct parser *p, const char *text)
{
    return take(p, JINJA_TOKEN_NAME, text);
}

/* Fails at a token that is not what has to be there. */
static int fail_here(struct parser *p, const char *wanted)
{
    static const char *const kinds[] = {"text", "{{", "}}", "a tag", "%}", NULL, NULL, NULL, "the end"};
    const struct jinja_token *t = now(p);
    return kinds[t->kind] != NULL
               ? fail(p, "%s is where %s should be", kinds[t->kind], wanted)
               : fail(p, "%.*s is where %s should be", (int)(t->n < 60 ? t->n : 60), t->text, wanted);
}

static void expect_operator(struct parser *p, const char *text)
{
    if (!take_operator(p, text)) {
        fail_here(p, text);
    }
}

static void end_tag(struct parser *p)
{
    if (now(p)->kind != JINJA_TOKEN_TAG_END) {
        fail_here(p, "the end of the tag");
    } else {
        p->at++;
    }
}

/* Refuses by name what the part of the language lacks that kiln reads. */
static int refuse(struct parser *p, const char *what, const struct jinja_token *t)
{
    return fail(p, "the %s %.*s is not read by kiln", what, (int)(t->n < 60 ? t->n : 60), t->text);
}

/* ---- nodes ---- */

/* Takes the value over. */
static int make(struct parser *p, enum jinja_kind kind, json_t *value)
{
    struct jinja_tree *t = p->tree;
    if (failed(p->status)) {
        json_decref(value);
        return 0;
    }
    if (t->n == t->capacity) {
        int capacity = t->capacity * 2 + 64;
        struct jinja_node *more = realloc(t->nodes, (size_t)capacity * sizeof *more);
        if (more == NULL) {
            json_decref(value);
            return fail_memory(p);
        }
        t->nodes = more;
        t->capacity = capacity;
    }
    t->nodes[t->n] = (struct jinja_node){.kind = kind, .line = now(p)->line, .value = value};
    return t->n++;
}

static struct jinja_node *node(struct parser *p, int i)
{
    return &p->tree->nodes[i]; /* of a parse that failed: 0, which nobody reads */
}

static int make_of(struct parser *p, enum jinja_kind kind, int a, int b)
{
    int made = make(p, kind, NULL);
    node(p, made)->of[0] = a;
    node(p, made)->of[1] = b;
    return made;
}

/* A node with the text of this token, which is taken. */
static int make_text(struct parser *p, enum jinja_kind kind)
{
    json_t *text = json_stringn(now(p)->text, now(p)->n);
    int made = text == NULL ? fail_memory(p) : make(p, kind, text);
    p->at += !failed(p->status);
    return made;
}

static int make_literal(struct parser *p, json_t *value)
{
    return value == NULL ? fail_memory(p) : make(p, JINJA_LITERAL, value);
}

/* A list of nodes that grows at its end. */
struct chain {
    int first, last;
};

static void append(struct parser *p, struct chain *c, int i)
{
    if (c->first == 0) {
        c->first = i;
    } else {
        node(p, c->last)->next = i;
    }
    c->last = i;
}

/* False: the parse has failed, as the template is nested too deep.  Else leave() ends it. */
static bool enter(struct parser *p)
{
    if (p->depth == JINJA_MOST_DEPTH) {
        fail(p, "it is nested deeper than %d", JINJA_MOST_DEPTH);
    }
    p->depth += !failed(p->status);
    return !failed(p->status);
}

static int leave(struct parser *p, int made)
{
    p->depth--;
    return made;
}

/* ---- primary expressions ---- */

/* A string, of one literal or of several one behind the other; or a number. */
static int parse_value(struct parser *p)
{
    json_t *value = json_incref(now(p)->value);
    for (p->at++; json_is_string(value) && json_is_string(now(p)->value); p->at++) {
        json_t *both = json_sprintf("%s%s", json_string_value(value), json_string_value(now(p)->value));
        json_decref(value);
        value = both;
    }
    return make_literal(p, value);
}

/* Items up to a bracket, with a comma behind each but the last. */
static int parse_list(struct parser *p, struct chain items, const char *end)
{
    while (!failed(p->status) && !take_operator(p, end)) {
        append(p, &items, parse_expression(p));
        if (!is_ahead(p, 0, JINJA_TOKEN_OPERATOR, end)) {
            expect_operator(p, ",");
        }
    }
    return make_of(p, JINJA_LIST, items.first, 0);
}

static int parse_dict(struct parser *p)
{
    struct chain items = {0};
    while (!failed(p->status) && !take_operator(p, "}")) {
        append(p, &items, parse_expression(p));
        expect_operator(p, ":");
        append(p, &items, parse_expression(p));
        if (!is_ahead(p, 0, JINJA_TOKEN_OPERATOR, "}")) {
            expect_operator(p, ",");
        }
    }
    return make_of(p, JINJA_DICT, items.first, 0);
}

/* "(x)" is x, and "(x, y)" a tuple, which here is a list. */
static int parse_brackets(struct parser *p)
{
    struct chain items = {0};
    if (take_operator(p, ")")) {
        return make_of(p, JINJA_LIST, 0, 0);
    }
    append(p, &items, parse_expression(p));
    if (take_operator(p, ")")) {
        return items.first;
    }
    expect_operator(p, ",");
    return parse_list(p, items, ")");
}

static int parse_raise(struct parser *p)
{
    expect_operator(p, "(");
    int message = parse_expression(p);
    expect_operator(p, ")");
    return make_of(p, JINJA_RAISE, message, 0);
}

static int parse_name(struct parser *p)
{
    static const char *const constants[] = {"true", "True", "false", "False", "none", "None"};
    static const char *const refused[] = {"strftime_now", "range",  "dict",     "lipsum",
                                          "cycler",       "joiner", "namespace"};
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        if (take_name(p, constants[i])) {
            return make_literal(p, i < 2 ? json_true() : i < 4 ? json_false() : json_null());
        }
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (is_ahead(p, 0, JINJA_TOKEN_NAME, refused[i])) {
            return refuse(p, "function", now(p));
        }
    }
    if (take_name(p, "raise_exception")) {
        return parse_raise(p);
    }
    return is_ahead(p, 1, JINJA_TOKEN_OPERATOR, "(") ? refuse(p, "function", now(p))
                                                     : make_text(p, JINJA_NAME);
}

static int parse_primary(struct parser *p)
{
    struct chain none = {0};
    switch (now(p)->kind) {
    case JINJA_TOKEN_NAME: return parse_name(p);
    case JINJA_TOKEN_VALUE: return parse_value(p);
    default:
        return take_operator(p, "(")   ? parse_brackets(p)
               : take_operator(p, "[") ? parse_list(p, none, "]")
               : take_operator(p, "{") ? parse_dict(p)
                                       : fail_here(p, "a value");
    }
}

/* ---- what follows them ---- */

/* The argument of a call that this is: its place, or the parameter that is named. */
static int find_parameter(struct parser *p, const struct jinja_function *f, int place)
{
    if (!is_ahead(p, 1, JINJA_TOKEN_OPERATOR, "=") || now(p)->kind != JINJA_TOKEN_NAME) {
        return place < f->n_places ? place : -1;
    }
    for (int i = 0; i < JINJA_MOST_ARGUMENTS && f->parameters[i] != NULL; i++) {
        if (is_ahead(p, 0, JINJA_TOKEN_NAME, f->parameters[i])) {
            p->at += 2;
            return i;
        }
    }
    return -1;
}

/* A call of f on x, with the arguments that may follow in brackets. */
static int parse_call(struct parser *p, enum jinja_kind kind, const struct jinja_function *f, int x)
{
    int call = make_of(p, kind, x, 0), n_needed = 0;
    node(p, call)->function = f;
    bool has_arguments = take_operator(p, "(");
    for (int place = 0; has_arguments && !failed(p->status) && !take_operator(p, ")"); place++) {
        int i = find_parameter(p, f, place);
        if (i < 0 || node(p, call)->of[1 + i] != 0) {
            return fail(p, "an argument of %s is not read by kiln", f->name);
        }
        int argument = parse_expression(p);
        node(p, call)->of[1 + i] = argument;
        n_needed += i < f->n_needed;
        if (!is_ahead(p, 0, JINJA_TOKEN_OPERATOR, ")")) {
            expect_operator(p, ",");
        }
    }
    return n_needed < f->n_needed ? fail(p, "%s lacks an argument", f->name) : call;
}

/* Behind "x.": a field, or a method. */
static int parse_field(struct parser *p, int x)
{
    const struct jinja_token *name = now(p);
    if (name->kind != JINJA_TOKEN_NAME) {
        return fail_here(p, "a name");
    }
    if (!is_ahead(p, 1, JINJA_TOKEN_OPERATOR, "(")) {
        int field = make_text(p, JINJA_FIELD);
        node(p, field)->of[0] = x;
        return field;
    }
    const struct jinja_function *f = jinja_function_find(name->text, name->n, false);
    if (f == NULL) {
        return refuse(p, "method", name);
    }
    p->at++;
    return parse_call(p, JINJA_METHOD, f, x);
}

/* Behind "x[": an item, or a slice of it. */
static int parse_item(struct parser *p, int x)
{
    int parts[3] = {0}, n = 0;
    while (!failed(p->status)) {
        bool is_absent =
            is_ahead(p, 0, JINJA_TOKEN_OPERATOR, ":") || is_ahead(p, 0, JINJA_TOKEN_OPERATOR, "]");
        parts[n] =
            is_absent && !(n == 0 && is_ahead(p, 0, JINJA_TOKEN_OPERATOR, "]")) ? 0 : parse_expression(p);
        n++;
        if (n == 3 || !take_operator(p, ":")) {
            break;
        }
    }
    expect_operator(p, "]");
    int item = make_of(p, n == 1 ? JINJA_ITEM : JINJA_SLICE, x, parts[0]);
    node(p, item)->of[2] = parts[1];
    node(p, item)->of[3] = parts[2];
    return item;
}

static int parse_postfix(struct parser *p, int x)
{
    while (!failed(p->status)) {
        if (take_operator(p, ".")) {
            x = parse_field(p, x);
        } else if (take_operator(p, "[")) {
            x = parse_item(p, x);
        } else if (is_ahead(p, 0, JINJA_TOKEN_OPERATOR, "(")) {
            return fail(p, "the call of a value is not read by kiln");
        } else {
            break;
        }
    }
    return x;
}

static int parse_filter(struct parser *p, int x)
{
    const struct jinja_token *name = now(p);
    const struct jinja_function *f =
        name->kind == JINJA_TOKEN_NAME ? jinja_function_find(name->text, name->n, true) : NULL;
    if (f == NULL) {
        return name->kind == JINJA_TOKEN_NAME ? refuse(p, "filter", name) : fail_here(p, "a filter");
    }
    p->at++;
    return parse_call(p, JINJA_FILTER, f, x);
}

static int parse_test(struct parser *p, int x)
{
    bool negates = take_name(p, "not");
    const struct jinja_token *name = now(p);
    const struct jinja_test *test =
        name->kind == JINJA_TOKEN_NAME ? jinja_function_find_test(name->text, name->n) : NULL;
    if (test == NULL) {
        return name->kind == JINJA_TOKEN_NAME ? refuse(p, "test", name) : fail_here(p, "a test");
    }
    p->at++;
    bool may_follow = is_ahead(p, 0, JINJA_TOKEN_NAME, "and") || is_ahead(p, 0, JINJA_TOKEN_NAME, "or") ||
                      is_ahead(p, 0, JINJA_TOKEN_NAME, "else");
    if (now(p)->kind == JINJA_TOKEN_NAME && !may_follow) {
        return refuse(p, "argument of a test", now(p)); /* which Jinja takes it for */
    }
    int made = make_of(p, JINJA_TEST, x, 0);
    node(p, made)->test = test;
    return negates ? make_of(p, JINJA_NOT, made, 0) : made;
}

static int parse_filters(struct parser *p, int x)
{
    while (!failed(p->status)) {
        if (take_operator(p, "|")) {
            x = parse_filter(p, x);
        } else if (take_name(p, "is")) {
            x = parse_test(p, x);
        } else {
            break;
        }
    }
    return x;
}

/* ---- operators, the tightest first ---- */

static int parse_unary(struct parser *p, bool with_filters)
{
    if (!enter(p)) {
        return 0;
    }
    int x = take_operator(p, "-") ? make_of(p, JINJA_MINUS, parse_unary(p, false), 0)
                                  : parse_postfix(p, parse_primary(p));
    return leave(p, with_filters ? parse_filters(p, x) : x);
}

/* The operators of one rank, which group from the left; the last row has kind JINJA_TEXT. */
struct operator_row {
    const char *text;
    enum jinja_kind kind;
};

static int parse_rank(struct parser *p, const struct operator_row *rows, int (*tighter)(struct parser *p))
{
    int x = tighter(p);
    for (int i = 0; !failed(p->status) && rows[i].text != NULL; i++) {
        if (take_operator(p, rows[i].text)) {
            x = make_of(p, rows[i].kind, x, tighter(p));
            i = -1; /* from the first row on */
        }
    }
    return x;
}

static int parse_operand(struct parser *p)
{
    return parse_unary(p, true);
}

static int parse_product(struct parser *p)
{
    static const struct operator_row rows[] = {
        {"*", JINJA_MULTIPLY}, {"//", JINJA_DIVIDE}, {"%", JINJA_MODULO}, {0}};
    return parse_rank(p, rows, parse_operand);
}

static int parse_joined(struct parser *p)
{
    static const struct operator_row rows[] = {{"~", JINJA_JOIN}, {0}};
    return parse_rank(p, rows, parse_product);
}

static int parse_sum(struct parser *p)
{
    static const struct operator_row rows[] = {{"+", JINJA_ADD}, {"-", JINJA_SUBTRACT}, {0}};
    return parse_rank(p, rows, parse_joined);
}

static int parse_in(struct parser *p, int x, bool negates)
{
    int in = make_of(p, JINJA_IN, x, parse_sum(p));
    return negates ? make_of(p, JINJA_NOT, in, 0) : in;
}

static int parse_comparison(struct parser *p)
{
    static const struct operator_row rows[] = {{"==", JINJA_EQUAL},      {"!=", JINJA_UNEQUAL},
                                               {"<=", JINJA_LESS_EQUAL}, {">=", JINJA_MORE_EQUAL},
                                               {"<", JINJA_LESS},        {">", JINJA_MORE}};
    int x = parse_sum(p), n = 0;
    for (int before = -1; before != n && !failed(p->status);) {
        before = n;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0] && before == n; i++) {
            if (take_operator(p, rows[i].text)) {
                x = make_of(p, rows[i].kind, x, parse_sum(p));
                n++;
            }
        }
        bool negates = is_ahead(p, 0, JINJA_TOKEN_NAME, "not") && is_ahead(p, 1, JINJA_TOKEN_NAME, "in");
        p->at += negates;
        if (take_name(p, "in")) {
            x = parse_in(p, x, negates);
            n++;
        }
    }
    return n > 1 ? fail(p, "a chain of comparisons is not read by kiln") : x;
}

static int parse_not(struct parser *p)
{
    if (!take_name(p, "not")) {
        return parse_comparison(p);
    }
    return enter(p) ? leave(p, make_of(p, JINJA_NOT, parse_not(p), 0)) : 0;
}

static int parse_and(struct parser *p)
{
    int x = parse_not(p);
    while (take_name(p, "and")) {
        x = make_of(p, JINJA_AND, x, parse_not(p));
    }
    return x;
}

static int parse_or(struct parser *p)
{
    int x = parse_and(p);
    while (take_name(p, "or")) {
        x = make_of(p, JINJA_OR, x, parse_and(p));
    }
    return x;
}

static int parse_expression(struct parser *p)
{
    if (!enter(p)) {
        return 0;
    }
    int x = parse_or(p);
    while (take_name(p, "if")) {
        int condition = parse_or(p), other = take_name(p, "else") ? parse_expression(p) : 0;
        x = make_of(p, JINJA_CHOICE, condition, x);
        node(p, x)->of[2] = other;
    }
    return leave(p, x);
}

/* ---- statements ---- */

/* Takes "{% name %}", which ends a statement. */
static void end_statement(struct parser *p, const char *name)
{
    if (is_ahead(p, 1, JINJA_TOKEN_NAME, name) && now(p)->kind == JINJA_TOKEN_TAG_BEGIN) {
        p->at += 2;
        end_tag(p);
    } else {
        fail_here(p, name);
    }
}

/* Behind "if" or "elif". */
static int parse_if(struct parser *p)
{
    if (!enter(p)) {
        return 0;
    }
    int made = make(p, JINJA_IF, NULL), condition = parse_expression(p), other = 0;
    end_tag(p);
    int body = parse_body(p);
    bool is_tag = now(p)->kind == JINJA_TOKEN_TAG_BEGIN;
    if (is_tag && is_ahead(p, 1, JINJA_TOKEN_NAME, "elif")) {
        p->at += 2;
        other = parse_if(p);
    } else {
        if (is_tag && is_ahead(p, 1, JINJA_TOKEN_NAME, "else")) {
            p->at += 2;
            end_tag(p);
            other = parse_body(p);
        }
        end_statement(p, "endif");
    }
    node(p, made)->of[0] = condition;
    node(p, made)->of[1] = body;
    node(p, made)->of[2] = other;
    return leave(p, made);
}

/* Takes a name that is assigned to, into a list of them. */
static void take_target(struct parser *p, json_t *names)
{
    if (now(p)->kind != JINJA_TOKEN_NAME) {
        fail_here(p, "a name");
    } else if (is_ahead(p, 0, JINJA_TOKEN_NAME, "loop")) {
        fail(p, "loop is the loop's own");
    } else if (json_array_append_new(names, json_stringn(now(p)->text, now(p)->n)) != 0) {
        fail_memory(p);
    } else {
        p->at++;
    }
}

static int parse_for(struct parser *p)
{
    json_t *names = json_array();
    int made = make(p, JINJA_FOR, names), other = 0;
    take_target(p, names);
    if (take_operator(p, ",")) {
        take_target(p, names);
    }
    if (!take_name(p, "in")) {
        fail_here(p, "in");
    }
    int items = parse_or(p), condition = take_name(p, "if") ? parse_expression(p) : 0;
    end_tag(p);
    p->n_loops++;
    int body = parse_body(p);
    p->n_loops--;
    if (now(p)->kind == JINJA_TOKEN_TAG_BEGIN && is_ahead(p, 1, JINJA_TOKEN_NAME, "else")) {
        p->at += 2;
        end_tag(p);
        other = parse_body(p);
    }
    end_statement(p, "endfor");
    struct jinja_node *n = node(p, made);
    n->of[0] = items;
    n->of[1] = body;
    n->of[2] = other;
    n->of[3] = condition;
    return made;
}

/* "namespace(name=value, ...)" */
static int parse_namespace(struct parser *p)
{
    struct chain fields = {0};
    p->at += 2;
    while (!failed(p->status) && !take_operator(p, ")")) {
        int field = now(p)->kind == JINJA_TOKEN_NAME ? make_text(p, JINJA_NAMED) : fail_here(p, "a name");
        expect_operator(p, "=");
        int value = parse_expression(p);
        node(p, field)->of[0] = value;
        append(p, &fields, field);
        if (!is_ahead(p, 0, JINJA_TOKEN_OPERATOR, ")")) {
            expect_operator(p, ",");
        }
    }
    return fields.first;
}

static int parse_set(struct parser *p)
{
    json_t *names = json_array();
    int made = make(p, JINJA_SET, names);
    take_target(p, names);
    bool is_field = take_operator(p, ".");
    if (is_field) {
        take_target(p, names);
    }
    expect_operator(p, "=");
    bool is_namespace = !is_field && is_ahead(p, 0, JINJA_TOKEN_NAME, "namespace") &&
                        is_ahead(p, 1, JINJA_TOKEN_OPERATOR, "(");
    int value = is_namespace ? parse_namespace(p) : parse_expression(p);
    end_tag(p);
    node(p, made)->of[0] = value;
    node(p, made)->kind = is_namespace ? JINJA_SET_NAMESPACE : is_field ? JINJA_SET_FIELD : JINJA_SET;
    return made;
}

/* {% generation %}, by which transformers marks what an assistant said. */
static int parse_generation(struct parser *p)
{
    int n_loops = p->n_loops;
    end_tag(p);
    p->n_loops = 0; /* as a function, which a loop's end cannot leave */
    int made = make_of(p, JINJA_SCOPE, parse_body(p), 0);
    p->n_loops = n_loops;
    end_statement(p, "endgeneration");
    return made;
}

static int parse_exit(struct parser *p, enum jinja_kind kind)
{
    int made = p->n_loops > 0 ? make(p, kind, NULL) : fail(p, "there is no loop to leave");
    end_tag(p);
    return made;
}

static int parse_break(struct parser *p)
{
    return parse_exit(p, JINJA_BREAK);
}

static int parse_continue(struct parser *p)
{
    return parse_exit(p, JINJA_CONTINUE);
}

static int parse_statement(struct parser *p)
{
    static const struct {
        const char *name;
        int (*parse)(struct parser *p); /* behind the name */
    } rows[] = {{"if", parse_if},       {"for", parse_for},           {"set", parse_set},
                {"break", parse_break}, {"continue", parse_continue}, {"generation", parse_generation}};
    p->at++;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (take_name(p, rows[i].name)) {
            return rows[i].parse(p);
        }
    }
    return now(p)->kind == JINJA_TOKEN_NAME ? refuse(p, "tag", now(p)) : fail_here(p, "the name of a tag");
}

static int parse_print(struct parser *p)
{
    p->at++;
    int made = make_of(p, JINJA_PRINT, parse_expression(p), 0);
    if (now(p)->kind != JINJA_TOKEN_PRINT_END) {
        return fail_here(p, "}}");
    }
    p->at++;
    return made;
}

/* Whether a tag begins that ends statements. */
static bool is_end(const struct parser *p)
{
    static const char *const names[] = {"elif", "else", "endif", "endfor", "endgeneration"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is_ahead(p, 1, JINJA_TOKEN_NAME, names[i])) {
            return now(p)->kind == JINJA_TOKEN_TAG_BEGIN;
        }
    }
    return now(p)->kind == JINJA_TOKEN_END;
}

static int parse_body(struct parser *p)
{
    struct chain body = {0};
    if (!enter(p)) {
        return 0;
    }
    while (!is_end(p)) {
        append(p, &body,
               now(p)->kind == JINJA_TOKEN_TEXT          ? make_text(p, JINJA_TEXT)
               : now(p)->kind == JINJA_TOKEN_PRINT_BEGIN ? parse_print(p)
                                                         : parse_statement(p));
    }
    return leave(p, body.first);
}

/* ---- a tree ---- */

void jinja_tree_fini(struct jinja_tree *t)
{
    for (int i = 0; i < t->n; i++) {
        json_decref(t->nodes[i].value);
    }
    free(t->nodes);
    *t = (struct jinja_tree){0};
}

struct status jinja_tree_parse(struct jinja_tree *t, const char *text, size_t n)
{
    struct jinja_lexer lexer;
    *t = (struct jinja_tree){0};
    struct status s = jinja_lexer_read(&lexer, text, n);
    struct parser p = {.tree = t, .lexer = &lexer};
    if (!failed(s)) {
        make(&p, JINJA_TEXT, NULL); /* none */
        t->root = parse_body(&p);
        if (now(&p)->kind != JINJA_TOKEN_END) {
            p.at++;
            fail_here(&p, "the end");
        }
        s = p.status;
    }
    jinja_lexer_fini(&lexer);
    if (failed(s)) {
        jinja_tree_fini(t);
    }
    return s;
}
