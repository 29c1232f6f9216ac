
#include "text/jinja_function.h"
#include "text/jinja_parser.h"

static int parse_unary(struct jinja_parser *p, bool with_filters);

/* ---- primary expressions ---- */

static int make_literal(struct jinja_parser *p, json_t *value)
{
    return value == NULL ? jinja_parser_fail_memory(p) : jinja_parser_make(p, JINJA_LITERAL, value);
}

/* Parses a string, of one literal or of several consecutive ones; or a number. */
static int parse_value(struct jinja_parser *p)
{
    json_t *value = json_incref(jinja_parser_now(p)->value);
    for (p->at++; json_is_string(value) && json_is_string(jinja_parser_now(p)->value); p->at++) {
        json_t *both =
            json_sprintf("%s%s", json_string_value(value), json_string_value(jinja_parser_now(p)->value));
        json_decref(value);
        value = both;
    }
    return make_literal(p, value);
}

/* Parses items up to a bracket, with a comma after each but the last. */
static int parse_list(struct jinja_parser *p, struct jinja_chain items, const char *end)
{
    while (!failed(p->status) && !jinja_parser_take_operator(p, end)) {
        jinja_parser_append(p, &items, jinja_expression_parse(p));
        if (!jinja_parser_is_ahead(p, 0, JINJA_TOKEN_OPERATOR, end)) {
            jinja_parser_expect_operator(p, ",");
        }
    }
    return jinja_parser_make_of(p, JINJA_LIST, items.first, 0);
}

static int parse_dict(struct jinja_parser *p)
{
    struct jinja_chain items = {0};
    while (!failed(p->status) && !jinja_parser_take_operator(p, "}")) {
        jinja_parser_append(p, &items, jinja_expression_parse(p));
        jinja_parser_expect_operator(p, ":");
        jinja_parser_append(p, &items, jinja_expression_parse(p));
        if (!jinja_parser_is_ahead(p, 0, JINJA_TOKEN_OPERATOR, "}")) {
            jinja_parser_expect_operator(p, ",");
        }
    }
    return jinja_parser_make_of(p, JINJA_DICT, items.first, 0);
}

/* "(x)" is x, and "(x, y)" a tuple, which here is a list. */
static int parse_brackets(struct jinja_parser *p)
{
    struct jinja_chain items = {0};
    if (jinja_parser_take_operator(p, ")")) {
        return jinja_parser_make_of(p, JINJA_LIST, 0, 0);
    }
    jinja_parser_append(p, &items, jinja_expression_parse(p));
    if (jinja_parser_take_operator(p, ")")) {
        return items.first;
    }
    jinja_parser_expect_operator(p, ",");
    return parse_list(p, items, ")");
}

static int parse_raise(struct jinja_parser *p)
{
    jinja_parser_expect_operator(p, "(");
    int message = jinja_expression_parse(p);
    jinja_parser_expect_operator(p, ")");
    return jinja_parser_make_of(p, JINJA_RAISE, message, 0);
}

static int parse_name(struct jinja_parser *p)
{
    static const char *const constants[] = {"true", "True", "false", "False", "none", "None"};
    static const char *const refused[] = {"strftime_now", "range",  "dict",     "lipsum",
                                          "cycler",       "joiner", "namespace"};
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        if (jinja_parser_take_name(p, constants[i])) {
            return make_literal(p, i < 2 ? json_true() : i < 4 ? json_false() : json_null());
        }
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (jinja_parser_is_ahead(p, 0, JINJA_TOKEN_NAME, refused[i])) {
            return jinja_parser_refuse(p, "function", jinja_parser_now(p));
        }
    }
    if (jinja_parser_take_name(p, "raise_exception")) {
        return parse_raise(p);
    }
    return jinja_parser_is_ahead(p, 1, JINJA_TOKEN_OPERATOR, "(")
               ? jinja_parser_refuse(p, "function", jinja_parser_now(p))
               : jinja_parser_make_text(p, JINJA_NAME);
}

static int parse_primary(struct jinja_parser *p)
{
    struct jinja_chain none = {0};
    switch (jinja_parser_now(p)->kind) {
    case JINJA_TOKEN_NAME: return parse_name(p);
    case JINJA_TOKEN_VALUE: return parse_value(p);
    default:
        return jinja_parser_take_operator(p, "(")   ? parse_brackets(p)
               : jinja_parser_take_operator(p, "[") ? parse_list(p, none, "]")
               : jinja_parser_take_operator(p, "{") ? parse_dict(p)
                                                    : jinja_parser_fail_here(p, "a value");
    }
}

/* ---- what follows them ---- */

/* The argument of a call that this is: its place, or the parameter that is named. */
static int find_parameter(struct jinja_parser *p, const struct jinja_function *f, int place)
{
    if (!jinja_parser_is_ahead(p, 1, JINJA_TOKEN_OPERATOR, "=") ||
        jinja_parser_now(p)->kind != JINJA_TOKEN_NAME) {
        return place < f->n_places ? place : -1;
    }
    for (int i = 0; i < JINJA_MOST_ARGUMENTS && f->parameters[i] != NULL; i++) {
        if (jinja_parser_is_ahead(p, 0, JINJA_TOKEN_NAME, f->parameters[i])) {
            p->at += 2;
            return i;
        }
    }
    return -1;
}

/* A call of f on x, with the arguments that may follow in brackets. */
static int parse_call(struct jinja_parser *p, enum jinja_kind kind, const struct jinja_function *f, int x)
{
    int call = jinja_parser_make_of(p, kind, x, 0), n_needed = 0;
    jinja_parser_node(p, call)->function = f;
    bool has_arguments = jinja_parser_take_operator(p, "(");
    for (int place = 0; has_arguments && !failed(p->status) && !jinja_parser_take_operator(p, ")"); place++) {
        int i = find_parameter(p, f, place);
        if (i < 0 || jinja_parser_node(p, call)->of[1 + i] != 0) {
            return jinja_parser_fail(p, "an argument of %s is not read by kiln", f->name);
        }
        int argument = jinja_expression_parse(p);
        jinja_parser_node(p, call)->of[1 + i] = argument;
        n_needed += i < f->n_needed;
        if (!jinja_parser_is_ahead(p, 0, JINJA_TOKEN_OPERATOR, ")")) {
            jinja_parser_expect_operator(p, ",");
        }
    }
    return n_needed < f->n_needed ? jinja_parser_fail(p, "%s lacks an argument", f->name) : call;
}

/* Behind "x.": a field, or a method. */
static int parse_field(struct jinja_parser *p, int x)
{
    const struct jinja_token *name = jinja_parser_now(p);
    if (name->kind != JINJA_TOKEN_NAME) {
        return jinja_parser_fail_here(p, "a name");
    }
    if (!jinja_parser_is_ahead(p, 1, JINJA_TOKEN_OPERATOR, "(")) {
        int field = jinja_parser_make_text(p, JINJA_FIELD);
        jinja_parser_node(p, field)->of[0] = x;
        return field;
    }
    const struct jinja_function *f = jinja_function_find(name->text, name->n, false);
    if (f == NULL) {
        return jinja_parser_refuse(p, "method", name);
    }
    p->at++;
    return parse_call(p, JINJA_METHOD, f, x);
}

/* Behind "x[": an item, or a slice of it. */
static int parse_item(struct jinja_parser *p, int x)
{
    int parts[3] = {0}, n = 0;
    while (!failed(p->status)) {
        bool is_absent = jinja_parser_is_ahead(p, 0, JINJA_TOKEN_OPERATOR, ":") ||
                         jinja_parser_is_ahead(p, 0, JINJA_TOKEN_OPERATOR, "]");
        parts[n] = is_absent && !(n == 0 && jinja_parser_is_ahead(p, 0, JINJA_TOKEN_OPERATOR, "]"))
                       ? 0
                       : jinja_expression_parse(p);
        n++;
        if (n == 3 || !jinja_parser_take_operator(p, ":")) {
            break;
        }
    }
    jinja_parser_expect_operator(p, "]");
    int item = jinja_parser_make_of(p, n == 1 ? JINJA_ITEM : JINJA_SLICE, x, parts[0]);
    jinja_parser_node(p, item)->of[2] = parts[1];
    jinja_parser_node(p, item)->of[3] = parts[2];
    return item;
}

static int parse_postfix(struct jinja_parser *p, int x)
{
    while (!failed(p->status)) {
        if (jinja_parser_take_operator(p, ".")) {
            x = parse_field(p, x);
        } else if (jinja_parser_take_operator(p, "[")) {
            x = parse_item(p, x);
        } else if (jinja_parser_is_ahead(p, 0, JINJA_TOKEN_OPERATOR, "(")) {
            return jinja_parser_fail(p, "the call of a value is not read by kiln");
        } else {
            break;
        }
    }
    return x;
}

static int parse_filter(struct jinja_parser *p, int x)
{
    const struct jinja_token *name = jinja_parser_now(p);
    const struct jinja_function *f =
        name->kind == JINJA_TOKEN_NAME ? jinja_function_find(name->text, name->n, true) : NULL;
    if (f == NULL) {
        return name->kind == JINJA_TOKEN_NAME ? jinja_parser_refuse(p, "filter", name)
                                              : jinja_parser_fail_here(p, "a filter");
    }
    p->at++;
    return parse_call(p, JINJA_FILTER, f, x);
}

static int parse_test(struct jinja_parser *p, int x)
{
    bool negates = jinja_parser_take_name(p, "not");
    const struct jinja_token *name = jinja_parser_now(p);
    const struct jinja_test *test =
        name->kind == JINJA_TOKEN_NAME ? jinja_function_find_test(name->text, name->n) : NULL;
    if (test == NULL) {
        return name->kind == JINJA_TOKEN_NAME ? jinja_parser_refuse(p, "test", name)
                                              : jinja_parser_fail_here(p, "a test");
    }
    p->at++;
    bool may_follow = jinja_parser_is_ahead(p, 0, JINJA_TOKEN_NAME, "and") ||
                      jinja_parser_is_ahead(p, 0, JINJA_TOKEN_NAME, "or") ||
                      jinja_parser_is_ahead(p, 0, JINJA_TOKEN_NAME, "else");
    if (jinja_parser_now(p)->kind == JINJA_TOKEN_NAME && !may_follow) {
        return jinja_parser_refuse(p, "argument of a test",
                                   jinja_parser_now(p)); /* Jinja takes the name for one */
    }
    int made = jinja_parser_make_of(p, JINJA_TEST, x, 0);
    jinja_parser_node(p, made)->test = test;
    return negates ? jinja_parser_make_of(p, JINJA_NOT, made, 0) : made;
}

static int parse_filters(struct jinja_parser *p, int x)
{
    while (!failed(p->status)) {
        if (jinja_parser_take_operator(p, "|")) {
            x = parse_filter(p, x);
        } else if (jinja_parser_take_name(p, "is")) {
            x = parse_test(p, x);
        } else {
            break;
        }
    }
    return x;
}

/* ---- operators, the tightest first ---- */

static int parse_unary(struct jinja_parser *p, bool with_filters)
{
    if (!jinja_parser_enter(p)) {
        return 0;
    }
    int x = jinja_parser_take_operator(p, "-")
                ? jinja_parser_make_of(p, JINJA_MINUS, parse_unary(p, false), 0)
                : parse_postfix(p, parse_primary(p));
    return jinja_parser_leave(p, with_filters ? parse_filters(p, x) : x);
}

/* The operators of one rank, which group from the left; the last row has kind JINJA_TEXT. */
struct operator_row {
    const char *text;
    enum jinja_kind kind;
};

static int parse_rank(struct jinja_parser *p, const struct operator_row *rows,
                      int (*tighter)(struct jinja_parser *p))
{
    int x = tighter(p);
    for (int i = 0; !failed(p->status) && rows[i].text != NULL; i++) {
        if (jinja_parser_take_operator(p, rows[i].text)) {
            x = jinja_parser_make_of(p, rows[i].kind, x, tighter(p));
            i = -1; /* from the first row on */
        }
    }
    return x;
}

static int parse_operand(struct jinja_parser *p)
{
    return parse_unary(p, true);
}

static int parse_product(struct jinja_parser *p)
{
    static const struct operator_row rows[] = {
        {"*", JINJA_MULTIPLY}, {"//", JINJA_DIVIDE}, {"%", JINJA_MODULO}, {0}};
    return parse_rank(p, rows, parse_operand);
}

static int parse_joined(struct jinja_parser *p)
{
    static const struct operator_row rows[] = {{"~", JINJA_JOIN}, {0}};
    return parse_rank(p, rows, parse_product);
}

static int parse_sum(struct jinja_parser *p)
{
    static const struct operator_row rows[] = {{"+", JINJA_ADD}, {"-", JINJA_SUBTRACT}, {0}};
    return parse_rank(p, rows, parse_joined);
}

static int parse_in(struct jinja_parser *p, int x, bool negates)
{
    int in = jinja_parser_make_of(p, JINJA_IN, x, parse_sum(p));
    return negates ? jinja_parser_make_of(p, JINJA_NOT, in, 0) : in;
}

static int parse_comparison(struct jinja_parser *p)
{
    static const struct operator_row rows[] = {{"==", JINJA_EQUAL},      {"!=", JINJA_UNEQUAL},
                                               {"<=", JINJA_LESS_EQUAL}, {">=", JINJA_MORE_EQUAL},
                                               {"<", JINJA_LESS},        {">", JINJA_MORE}};
    int x = parse_sum(p), n = 0;
    for (int before = -1; before != n && !failed(p->status);) {
        before = n;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0] && before == n; i++) {
            if (jinja_parser_take_operator(p, rows[i].text)) {
                x = jinja_parser_make_of(p, rows[i].kind, x, parse_sum(p));
                n++;
            }
        }
        bool negates = jinja_parser_is_ahead(p, 0, JINJA_TOKEN_NAME, "not") &&
                       jinja_parser_is_ahead(p, 1, JINJA_TOKEN_NAME, "in");
        p->at += negates;
        if (jinja_parser_take_name(p, "in")) {
            x = parse_in(p, x, negates);
            n++;
        }
    }
    return n > 1 ? jinja_parser_fail(p, "a chain of comparisons is not read by kiln") : x;
}

static int parse_not(struct jinja_parser *p)
{
    if (!jinja_parser_take_name(p, "not")) {
        return parse_comparison(p);
    }
    return jinja_parser_enter(p) ? jinja_parser_leave(p, jinja_parser_make_of(p, JINJA_NOT, parse_not(p), 0))
                                 : 0;
}

static int parse_and(struct jinja_parser *p)
{
    int x = parse_not(p);
    while (jinja_parser_take_name(p, "and")) {
        x = jinja_parser_make_of(p, JINJA_AND, x, parse_not(p));
    }
    return x;
}

int jinja_expression_parse_or(struct jinja_parser *p)
{
    int x = parse_and(p);
    while (jinja_parser_take_name(p, "or")) {
        x = jinja_parser_make_of(p, JINJA_OR, x, parse_and(p));
    }
    return x;
}

int jinja_expression_parse(struct jinja_parser *p)
{
    if (!jinja_parser_enter(p)) {
        return 0;
    }
    int x = jinja_expression_parse_or(p);
    while (jinja_parser_take_name(p, "if")) {
        int condition = jinja_expression_parse_or(p),
            other = jinja_parser_take_name(p, "else") ? jinja_expression_parse(p) : 0;
        x = jinja_parser_make_of(p, JINJA_CHOICE, condition, x);
        jinja_parser_node(p, x)->of[2] = other;
    }
    return jinja_parser_leave(p, x);
}
