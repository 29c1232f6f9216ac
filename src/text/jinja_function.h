/* jinja_function: the filters, methods and tests of templates that kiln reads, each as Jinja and Python have
 * it. */
#ifndef KILN_TEXT_JINJA_FUNCTION_H
#define KILN_TEXT_JINJA_FUNCTION_H

#include "text/jinja_renderer.h"

enum { JINJA_MOST_ARGUMENTS = 2 };

struct jinja_function {
    const char *name;
    bool is_filter, is_method; /* x | name, x.name() */
    bool of_text;              /* x is a string; a filter converts x to the text that it prints */
    int n_needed, n_places;    /* arguments that must be there, and that need no name */
    const char *parameters[JINJA_MOST_ARGUMENTS];

    /* The result, owned; borrows the rest, where NULL is undefined or absent. */
    json_t *(*call)(struct jinja_renderer *r, json_t *x, json_t *const *arguments);
};

struct jinja_test {
    const char *name;
    bool (*holds)(const json_t *x); /* NULL is undefined */
};

/* NULL: kiln reads none of this name. */
const struct jinja_function *jinja_function_find(const char *name, size_t n, bool is_filter);
const struct jinja_test *jinja_function_find_test(const char *name, size_t n);

/* The result of a call, owned: of a filter, or of a method, which wants a value that has it. */
json_t *jinja_function_call(struct jinja_renderer *r, const struct jinja_function *f, bool is_method,
                            json_t *x, json_t *const *arguments);

#endif
