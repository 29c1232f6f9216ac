#include "text/jinja_parser.h"
#include "text/jinja_tree.h"

#include <stdlib.h>

static int parse_body(struct jinja_parser *p);

/* ---- statements ---- */

static void end_tag(struct jinja_parser *p)
{
    if (jinja_parser_now(p)->kind != JINJA_TOKEN_TAG_END) {
        jinja_parser_fail_here(p, "the end of the tag");
    } else {
        p->at++;
    }
}

/* Takes "{% name %}", which ends a statement. */
static void end_statement(struct jinja_parser *p, const char *name)
{
    if (jinja_parser_is_ahead(p, 1, JINJA_TOKEN_NAME, name) &&
        jinja_parser_now(p)->kind == JINJA_TOKEN_TAG_BEGIN) {
        p->at += 2;
        end_tag(p);
    } else {
        jinja_parser_fail_here(p, name);
    }
}

/* Behind "if" or "elif". */
static int parse_if(struct jinja_parser *p)
{
    if (!jinja_parser_enter(p)) {
        return 0;
    }
    int made = jinja_parser_make(p, JINJA_IF, NULL), condition = jinja_expression_parse(p), other = 0;
    end_tag(p);
    int body = parse_body(p);
    bool is_tag = jinja_parser_now(p)->kind == JINJA_TOKEN_TAG_BEGIN;
    if (is_tag && jinja_parser_is_ahead(p, 1, JINJA_TOKEN_NAME, "elif")) {
        p->at += 2;
        other = parse_if(p);
    } else {
        if (is_tag && jinja_parser_is_ahead(p, 1, JINJA_TOKEN_NAME, "else")) {
            p->at += 2;
            end_tag(p);
            other = parse_body(p);
        }
        end_statement(p, "endif");
    }
    jinja_parser_node(p, made)->of[0] = condition;
    jinja_parser_node(p, made)->of[1] = body;
    jinja_parser_node(p, made)->of[2] = other;
    return jinja_parser_leave(p, made);
}

/* Takes a name that is assigned to, into a list of them. */
static void take_target(struct jinja_parser *p, json_t *names)
{
    if (jinja_parser_now(p)->kind != JINJA_TOKEN_NAME) {
        jinja_parser_fail_here(p, "a name");
    } else if (jinja_parser_is_ahead(p, 0, JINJA_TOKEN_NAME, "loop")) {
        jinja_parser_fail(p, "loop is the loop's own");
    } else if (json_array_append_new(names,
                                     json_stringn(jinja_parser_now(p)->text, jinja_parser_now(p)->n)) != 0) {
        jinja_parser_fail_memory(p);
    } else {
        p->at++;
    }
}

static int parse_for(struct jinja_parser *p)
{
    json_t *names = json_array();
    int made = jinja_parser_make(p, JINJA_FOR, names), other = 0;
    take_target(p, names);
    if (jinja_parser_take_operator(p, ",")) {
        take_target(p, names);
    }
    if (!jinja_parser_take_name(p, "in")) {
        jinja_parser_fail_here(p, "in");
    }
    int items = jinja_expression_parse_or(p),
        condition = jinja_parser_take_name(p, "if") ? jinja_expression_parse(p) : 0;
    end_tag(p);
    p->n_loops++;
    int body = parse_body(p);
    p->n_loops--;
    if (jinja_parser_now(p)->kind == JINJA_TOKEN_TAG_BEGIN &&
        jinja_parser_is_ahead(p, 1, JINJA_TOKEN_NAME, "else")) {
        p->at += 2;
        end_tag(p);
        other = parse_body(p);
    }
    end_statement(p, "endfor");
    struct jinja_node *n = jinja_parser_node(p, made);
    n->of[0] = items;
    n->of[1] = body;
    n->of[2] = other;
    n->of[3] = condition;
    return made;
}

/* "namespace(name=value, ...)" */
static int parse_namespace(struct jinja_parser *p)
{
    struct jinja_chain fields = {0};
    p->at += 2;
    while (!failed(p->status) && !jinja_parser_take_operator(p, ")")) {
        int field = jinja_parser_now(p)->kind == JINJA_TOKEN_NAME ? jinja_parser_make_text(p, JINJA_NAMED)
                                                                  : jinja_parser_fail_here(p, "a name");
        jinja_parser_expect_operator(p, "=");
        int value = jinja_expression_parse(p);
        jinja_parser_node(p, field)->of[0] = value;
        jinja_parser_append(p, &fields, field);
        if (!jinja_parser_is_ahead(p, 0, JINJA_TOKEN_OPERATOR, ")")) {
            jinja_parser_expect_operator(p, ",");
        }
    }
    return fields.first;
}

static int parse_set(struct jinja_parser *p)
{
    json_t *names = json_array();
    int made = jinja_parser_make(p, JINJA_SET, names);
    take_target(p, names);
    bool is_field = jinja_parser_take_operator(p, ".");
    if (is_field) {
        take_target(p, names);
    }
    jinja_parser_expect_operator(p, "=");
    bool is_namespace = !is_field && jinja_parser_is_ahead(p, 0, JINJA_TOKEN_NAME, "namespace") &&
                        jinja_parser_is_ahead(p, 1, JINJA_TOKEN_OPERATOR, "(");
    int value = is_namespace ? parse_namespace(p) : jinja_expression_parse(p);
    end_tag(p);
    jinja_parser_node(p, made)->of[0] = value;
    jinja_parser_node(p, made)->kind = is_namespace ? JINJA_SET_NAMESPACE
                                       : is_field   ? JINJA_SET_FIELD
                                                    : JINJA_SET;
    return made;
}

/* {% generation %}, by which transformers marks what an assistant said. */
static int parse_generation(struct jinja_parser *p)
{
    int n_loops = p->n_loops;
    end_tag(p);
    p->n_loops = 0; /* a block behaves as a function: break and continue cannot leave it */
    int made = jinja_parser_make_of(p, JINJA_SCOPE, parse_body(p), 0);
    p->n_loops = n_loops;
    end_statement(p, "endgeneration");
    return made;
}

static int parse_exit(struct jinja_parser *p, enum jinja_kind kind)
{
    int made =
        p->n_loops > 0 ? jinja_parser_make(p, kind, NULL) : jinja_parser_fail(p, "there is no loop to leave");
    end_tag(p);
    return made;
}

static int parse_break(struct jinja_parser *p)
{
    return parse_exit(p, JINJA_BREAK);
}

static int parse_continue(struct jinja_parser *p)
{
    return parse_exit(p, JINJA_CONTINUE);
}

static int parse_statement(struct jinja_parser *p)
{
    static const struct {
        const char *name;
        int (*parse)(struct jinja_parser *p); /* called after the name was read */
    } rows[] = {{"if", parse_if},       {"for", parse_for},           {"set", parse_set},
                {"break", parse_break}, {"continue", parse_continue}, {"generation", parse_generation}};
    p->at++;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (jinja_parser_take_name(p, rows[i].name)) {
            return rows[i].parse(p);
        }
    }
    return jinja_parser_now(p)->kind == JINJA_TOKEN_NAME ? jinja_parser_refuse(p, "tag", jinja_parser_now(p))
                                                         : jinja_parser_fail_here(p, "the name of a tag");
}

static int parse_print(struct jinja_parser *p)
{
    p->at++;
    int made = jinja_parser_make_of(p, JINJA_PRINT, jinja_expression_parse(p), 0);
    if (jinja_parser_now(p)->kind != JINJA_TOKEN_PRINT_END) {
        return jinja_parser_fail_here(p, "}}");
    }
    p->at++;
    return made;
}

/* Whether a tag begins that ends statements. */
static bool is_end(const struct jinja_parser *p)
{
    static const char *const names[] = {"elif", "else", "endif", "endfor", "endgeneration"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (jinja_parser_is_ahead(p, 1, JINJA_TOKEN_NAME, names[i])) {
            return jinja_parser_now(p)->kind == JINJA_TOKEN_TAG_BEGIN;
        }
    }
    return jinja_parser_now(p)->kind == JINJA_TOKEN_END;
}

static int parse_body(struct jinja_parser *p)
{
    struct jinja_chain body = {0};
    if (!jinja_parser_enter(p)) {
        return 0;
    }
    while (!is_end(p)) {
        jinja_parser_append(p, &body,
                            jinja_parser_now(p)->kind == JINJA_TOKEN_TEXT
                                ? jinja_parser_make_text(p, JINJA_TEXT)
                            : jinja_parser_now(p)->kind == JINJA_TOKEN_PRINT_BEGIN ? parse_print(p)
                                                                                   : parse_statement(p));
    }
    return jinja_parser_leave(p, body.first);
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
    struct jinja_parser p = {.tree = t, .lexer = &lexer};
    if (!failed(s)) {
        jinja_parser_make(&p, JINJA_TEXT, NULL); /* none */
        t->root = parse_body(&p);
        if (jinja_parser_now(&p)->kind != JINJA_TOKEN_END) {
            p.at++;
            jinja_parser_fail_here(&p, "the end");
        }
        s = p.status;
    }
    jinja_lexer_fini(&lexer);
    if (failed(s)) {
        jinja_tree_fini(t);
    }
    return s;
}
