/* jinja_function: the filters, methods and tests of templates that kiln reads, each as Jinja and Python have
 * it. */
#ifndef KILN_TEXT_JINJA_FUNCTION_H
#define KILN_TEXT_JINJA_FUNCTION_H

#include "text/jinja_renderer.h"

enum { JINJA_MOST_ARGUMENTS = 2 };

/* What a function is called with; borrowed, and NULL is undefined or absent. */
struct jinja_call {
    json_t *x, *const *arguments;
    int how;
};

struct jinja_function {
    const char *name;
    bool is_filter, is_method; /* x | name, x.name() */
    bool of_text;              /* x is a string; a filter converts x to the text that it prints */
    int n_needed, n_places;    /* arguments that must be there, and that need no name */
    const char *parameters[JINJA_MOST_ARGUMENTS];

    /* The result, owned. */
    json_t *(*call)(struct jinja_renderer *r, const struct jinja_call *c);
    int how; /* tells apart the functions of one `call` */
};

struct jinja_test {
    const char *name;
    unsigned kinds; /* kinds of values for which it holds, a bit each */
};

/* NULL: kiln reads none of this name. */
const struct jinja_function *jinja_function_find(const char *name, size_t n, bool is_filter);
const struct jinja_test *jinja_function_find_test(const char *name, size_t n);

/* Whether a test holds for a value; NULL is undefined. */
bool jinja_function_holds(const struct jinja_test *test, const json_t *x);

/* The result of a call, owned: of a filter, or of a method, which wants a value that has it. */
json_t *jinja_function_call(struct jinja_renderer *r, const struct jinja_function *f, bool is_method,
                            json_t *x, json_t *const *arguments);

#endif
