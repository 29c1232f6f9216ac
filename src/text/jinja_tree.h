/* jinja_tree: a template of Jinja as a tree, of the part of the language that chat templates use
 * (https://jinja.palletsprojects.com/en/stable/templates/), read with trim_blocks, lstrip_blocks and the
 * extension loopcontrols, as transformers' apply_chat_template reads it.
 *
 * The rule: what kiln cannot render as Jinja does is no part of the tree.  The parser refuses it by its name
 * and its line, so that a model says when it is opened what it would say later. */
#ifndef KILN_TEXT_JINJA_TREE_H
#define KILN_TEXT_JINJA_TREE_H

#include "core/json.h"

enum jinja_kind {
    /* statements, each with the next one */
    JINJA_TEXT,      /* value */
    JINJA_PRINT,     /* prints of[0] */
    JINJA_IF,        /* if of[0] holds, the statements of[1], else of[2] */
    JINJA_FOR,       /* value: names; of[0]: the items; of[1]: statements; of[2]: statements if there are no
                          * items; of[3]: a condition */
    JINJA_SET,       /* value: a name; of[0] */
    JINJA_SET_FIELD, /* value: [a namespace, a field]; of[0] */
    JINJA_SET_NAMESPACE, /* value: a name; of[0]: the first JINJA_NAMED */
    JINJA_SCOPE,         /* {% generation %}: statements of[0], with names of their own */
    JINJA_BREAK,
    JINJA_CONTINUE,

    /* expressions */
    JINJA_LITERAL, /* value */
    JINJA_NAME,    /* value */
    JINJA_NAMED,   /* value: the name of an argument; of[0] */
    JINJA_LIST,    /* the first item is of[0] */
    JINJA_DICT,    /* the first key is of[0]; the next node of a key is its value */
    JINJA_FIELD,   /* field of[0].value */
    JINJA_ITEM,    /* item of[0][of[1]] */
    JINJA_SLICE,   /* slice of[0][of[1]:of[2]:of[3]] */
    JINJA_NOT,
    JINJA_MINUS,
    JINJA_AND,
    JINJA_OR,
    JINJA_ADD, /* this and those up to JINJA_IN: of[0] and of[1] */
    JINJA_SUBTRACT,
    JINJA_MULTIPLY,
    JINJA_DIVIDE, /* rounded down to an integer */
    JINJA_MODULO,
    JINJA_JOIN, /* ~ */
    JINJA_EQUAL,
    JINJA_UNEQUAL,
    JINJA_LESS,
    JINJA_LESS_EQUAL,
    JINJA_MORE,
    JINJA_MORE_EQUAL,
    JINJA_IN,
    JINJA_CHOICE, /* choice: of[1] if of[0] else of[2] */
    JINJA_FILTER, /* call: of[0] | function(of[1], ...) */
    JINJA_METHOD, /* call: of[0].function(of[1], ...) */
    JINJA_TEST,   /* whether of[0] is test */
    JINJA_RAISE,  /* the message is of[0] */
};

enum { JINJA_MOST_CHILDREN = 4, JINJA_MOST_DEPTH = 100 };

struct jinja_node {
    enum jinja_kind kind;
    int line;
    int of[JINJA_MOST_CHILDREN]; /* 0: there is none */
    int next;                    /* next node of a list; 0: it is the last */
    json_t *value;
    const struct jinja_function *function;
    const struct jinja_test *test;
};

struct jinja_tree {
    struct jinja_node *nodes; /* [n]; 0 is none */
    int n;
    size_t capacity;
    int root; /* the first statement */
};

/* Parses text[0..n). STATUS_DATA names the line, and the part that is wrong or not read by kiln. */
struct status jinja_tree_parse(struct jinja_tree *t, const char *text, size_t n);

/* Safe on a zeroed struct and after a failed parse. */
void jinja_tree_fini(struct jinja_tree *t);

#endif
