#include "text/jinja_parser.h"

#include "core/array.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tokens ---- */

const struct jinja_token *jinja_parser_now(const struct jinja_parser *p)
{
    return &p->lexer->tokens[p->at];
}

int jinja_parser_fail(struct jinja_parser *p, const char *format, ...)
{
    char what[256];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (!failed(p->status)) {
        p->status = status_error(STATUS_DATA, "line %d: %s", jinja_parser_now(p)->line, what);
    }
    p->at = p->lexer->n - 1;
    return 0;
}

int jinja_parser_fail_memory(struct jinja_parser *p)
{
    if (!failed(p->status)) {
        jinja_parser_fail(p, "out of memory");
        p->status.code = STATUS_MEMORY;
    }
    return 0;
}

bool jinja_parser_is_ahead(const struct jinja_parser *p, int ahead, enum jinja_token_kind kind,
                           const char *text)
{
    int at = p->at + ahead;
    const struct jinja_token *t = &p->lexer->tokens[at < p->lexer->n ? at : p->lexer->n - 1];
    return t->kind == kind && t->n == strlen(text) && memcmp(t->text, text, t->n) == 0;
}

static bool take(struct jinja_parser *p, enum jinja_token_kind kind, const char *text)
{
    bool is_it = jinja_parser_is_ahead(p, 0, kind, text);
    p->at += is_it;
    return is_it;
}

bool jinja_parser_take_operator(struct jinja_parser *p, const char *text)
{
    return take(p, JINJA_TOKEN_OPERATOR, text);
}

bool jinja_parser_take_name(struct jinja_parser *p, const char *text)
{
    return take(p, JINJA_TOKEN_NAME, text);
}

int jinja_parser_fail_here(struct jinja_parser *p, const char *wanted)
{
    static const char *const kinds[] = {"text", "{{", "}}", "a tag", "%}", NULL, NULL, NULL, "the end"};
    const struct jinja_token *t = jinja_parser_now(p);
    return kinds[t->kind] != NULL ? jinja_parser_fail(p, "%s is where %s should be", kinds[t->kind], wanted)
                                  : jinja_parser_fail(p, "%.*s is where %s should be",
                                                      (int)(t->n < 60 ? t->n : 60), t->text, wanted);
}

void jinja_parser_expect_operator(struct jinja_parser *p, const char *text)
{
    if (!jinja_parser_take_operator(p, text)) {
        jinja_parser_fail_here(p, text);
    }
}

int jinja_parser_refuse(struct jinja_parser *p, const char *what, const struct jinja_token *t)
{
    return jinja_parser_fail(p, "the %s %.*s is not read by kiln", what, (int)(t->n < 60 ? t->n : 60),
                             t->text);
}

/* ---- nodes ---- */

int jinja_parser_make(struct jinja_parser *p, enum jinja_kind kind, json_t *value)
{
    struct jinja_tree *t = p->tree;
    if (failed(p->status)) {
        json_decref(value);
        return 0;
    }
    if (!ARRAY_RESERVE(t->nodes, t->capacity, t->n + 1)) {
        json_decref(value);
        return jinja_parser_fail_memory(p);
    }
    t->nodes[t->n] = (struct jinja_node){.kind = kind, .line = jinja_parser_now(p)->line, .value = value};
    return t->n++;
}

struct jinja_node *jinja_parser_node(struct jinja_parser *p, int i)
{
    return &p->tree->nodes[i]; /* after a failure i is 0, and the node is never read */
}

int jinja_parser_make_of(struct jinja_parser *p, enum jinja_kind kind, int a, int b)
{
    int made = jinja_parser_make(p, kind, NULL);
    jinja_parser_node(p, made)->of[0] = a;
    jinja_parser_node(p, made)->of[1] = b;
    return made;
}

int jinja_parser_make_text(struct jinja_parser *p, enum jinja_kind kind)
{
    json_t *text = json_stringn(jinja_parser_now(p)->text, jinja_parser_now(p)->n);
    int made = text == NULL ? jinja_parser_fail_memory(p) : jinja_parser_make(p, kind, text);
    p->at += !failed(p->status);
    return made;
}

void jinja_parser_append(struct jinja_parser *p, struct jinja_chain *c, int i)
{
    if (c->first == 0) {
        c->first = i;
    } else {
        jinja_parser_node(p, c->last)->next = i;
    }
    c->last = i;
}

bool jinja_parser_enter(struct jinja_parser *p)
{
    if (p->depth == JINJA_MOST_DEPTH) {
        jinja_parser_fail(p, "it is nested deeper than %d", JINJA_MOST_DEPTH);
    }
    p->depth += !failed(p->status);
    return !failed(p->status);
}

int jinja_parser_leave(struct jinja_parser *p, int made)
{
    p->depth--;
    return made;
}
