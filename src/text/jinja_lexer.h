/* jinja_lexer: a template of Jinja as tokens, with the white space around tags as trim_blocks, lstrip_blocks
 * and the signs - and + have it (jinja2/lexer.py).  Comments are left out. */
#ifndef KILN_TEXT_JINJA_LEXER_H
#define KILN_TEXT_JINJA_LEXER_H

#include "core/buf.h"
#include "core/json.h"

enum jinja_token_kind {
    JINJA_TOKEN_TEXT,        /* outside of tags */
    JINJA_TOKEN_PRINT_BEGIN, /* {{ */
    JINJA_TOKEN_PRINT_END,
    JINJA_TOKEN_TAG_BEGIN, /* {% */
    JINJA_TOKEN_TAG_END,
    JINJA_TOKEN_NAME,
    JINJA_TOKEN_VALUE,    /* a string or an integer */
    JINJA_TOKEN_OPERATOR, /* operators and brackets */
    JINJA_TOKEN_END,      /* end of the template */
};

struct jinja_token {
    enum jinja_token_kind kind;
    int line;
    const char *text; /* [n] of the source */
    size_t n;
    json_t *value; /* value of a JINJA_TOKEN_VALUE; owned */
};

struct jinja_lexer {
    struct buf source; /* text with "\n" as the ends of lines */
    size_t at;
    int line;
    bool begins_line;           /* a line begins where the last token ended */
    struct jinja_token *tokens; /* [n], the last is JINJA_TOKEN_END */
    int n;
    size_t capacity;
};

/* STATUS_DATA names the line and the fault. */
struct status jinja_lexer_read(struct jinja_lexer *l, const char *text, size_t n);

/* Safe on a zeroed struct and after a failed read. */
void jinja_lexer_fini(struct jinja_lexer *l);

#endif
