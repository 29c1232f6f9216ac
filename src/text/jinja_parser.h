/* jinja_parser: the place in the tokens of a template, and the nodes that are made of them: what the parsers
 * of statements (jinja_tree) and of expressions (jinja_expression) share.  Both parse by recursive descent,
 * as jinja2/parser.py.  An error sticks in `status` and moves to the end of the tokens, where loops end. */
#ifndef KILN_TEXT_JINJA_PARSER_H
#define KILN_TEXT_JINJA_PARSER_H

#include "text/jinja_lexer.h"
#include "text/jinja_tree.h"

struct jinja_parser {
    struct jinja_tree *tree;
    const struct jinja_lexer *lexer;
    int at, depth;
    int n_loops; /* around the statement */
    struct status status;
};

/* ---- tokens ---- */

/* The token that is to be parsed. */
const struct jinja_token *jinja_parser_now(const struct jinja_parser *p);

/* Whether the token that is `ahead` of this one has this text. */
bool jinja_parser_is_ahead(const struct jinja_parser *p, int ahead, enum jinja_token_kind kind,
                           const char *text);

/* Take this token if it is this one; the last fails else. */
bool jinja_parser_take_operator(struct jinja_parser *p, const char *text);
bool jinja_parser_take_name(struct jinja_parser *p, const char *text);
void jinja_parser_expect_operator(struct jinja_parser *p, const char *text);

/* Fail, and return 0: with a message; at a token other than the required one; at a name that is no part of
 * the language that kiln reads. */
int jinja_parser_fail(struct jinja_parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
int jinja_parser_fail_here(struct jinja_parser *p, const char *wanted);
int jinja_parser_refuse(struct jinja_parser *p, const char *what, const struct jinja_token *t);
int jinja_parser_fail_memory(struct jinja_parser *p);

/* False: the parse has failed, as the template is nested too deep.  Else jinja_parser_leave ends it, and
 * returns the node that was made. */
bool jinja_parser_enter(struct jinja_parser *p);
int jinja_parser_leave(struct jinja_parser *p, int made);

/* ---- nodes ---- */

/* A new node's number, 0 if the parse has failed: with a value, which is taken over; of two others; with the
 * text of this token, which is taken. */
int jinja_parser_make(struct jinja_parser *p, enum jinja_kind kind, json_t *value);
int jinja_parser_make_of(struct jinja_parser *p, enum jinja_kind kind, int a, int b);
int jinja_parser_make_text(struct jinja_parser *p, enum jinja_kind kind);

/* Borrowed until the next is made. */
struct jinja_node *jinja_parser_node(struct jinja_parser *p, int i);

/* A list of nodes that grows at its end. */
struct jinja_chain {
    int first, last;
};
void jinja_parser_append(struct jinja_parser *p, struct jinja_chain *c, int i);

/* ---- expressions (jinja_expression.c), from the operators that bind least to values ---- */

/* Parses one: its node; 0: the parse has failed. */
int jinja_expression_parse(struct jinja_parser *p);

/* Parses one without an "if" of its own: the items of a loop, where an "if" belongs to the loop. */
int jinja_expression_parse_or(struct jinja_parser *p);

#endif
