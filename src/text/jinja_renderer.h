/* jinja_renderer: renders the tree of a template with the values of variables.
 *
 * Values are JSON: strings, integers, booleans, null for none, arrays for lists and tuples, objects for
 * dicts; NULL is undefined.  A value is never changed once it is made.  A namespace is no value: its fields
 * change, and only its name reaches them, so values hold no cycles.
 *
 * The rule: templates come with models and texts with requests, so everything is bounded: the depth of
 * evaluation and of values, the work, and the bytes that are written.  The first failure sticks in `status`,
 * after which all that is computed is NULL. */
#ifndef KILN_TEXT_JINJA_RENDERER_H
#define KILN_TEXT_JINJA_RENDERER_H

#include "core/buf.h"
#include "text/jinja_tree.h"

enum { JINJA_BYTES_OF_STEP = 64 };

/* Bytes [begin, end) of the output. */
struct jinja_span {
    size_t begin, end;
};

struct jinja_limits {
    size_t most_bytes; /* most bytes of the output */
    int64_t most_work; /* most nodes, items of their values, and blocks of JINJA_BYTES_OF_STEP bytes */
};

struct jinja_variable;

struct jinja_renderer {
    const struct jinja_tree *tree;
    const json_t *globals;
    struct buf *out;
    struct buf *spans; /* NULL: nobody asks for them */
    struct jinja_limits left;
    struct status status;
    int line, depth;
    struct jinja_variable *variables; /* [n], the innermost last */
    int n;
    size_t capacity;
    int frame; /* the first variable of the innermost scope */
    enum { JINJA_GOES_ON, JINJA_BREAKS, JINJA_CONTINUES } flow;
};

/* Appends what the template says, and to `spans`, which may be NULL, a struct jinja_span for each
 * {% generation %}; `globals` are variables.  STATUS_DATA names the line of what Jinja refuses
 * too, of raise_exception, of what kiln cannot do, and of a limit that is reached. */
struct status jinja_renderer_run(struct buf *out, struct buf *spans, const struct jinja_tree *t,
                                 const json_t *globals, const struct jinja_limits *limits);

/* ---- for functions ---- */

/* Fails; NULL. */
json_t *jinja_renderer_fail(struct jinja_renderer *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Counts n bytes or items as work; false, and a failure, if the limit does not allow them. */
bool jinja_renderer_spend(struct jinja_renderer *r, size_t n);

/* Returns the value; NULL, and a failure, where memory ran out. */
json_t *jinja_renderer_made(struct jinja_renderer *r, json_t *value);
json_t *jinja_renderer_made_text(struct jinja_renderer *r, const char *text, size_t n);
json_t *jinja_renderer_take_text(struct jinja_renderer *r, struct buf *text); /* ends the buffer */

/* Takes the item over. */
void jinja_renderer_append(struct jinja_renderer *r, json_t *list, json_t *item);

/* The text that a value prints, as an owned string. */
json_t *jinja_renderer_text_of(struct jinja_renderer *r, const json_t *value);

/* Whether Python takes a value for true. */
bool jinja_renderer_is_true(const json_t *value);

/* ---- operators, as Python has them (jinja_operator.c) ---- */

/* The name of a value's type for messages: "a string". */
const char *jinja_operator_type(const json_t *v);

/* Results are owned; NULL is undefined, or a failure.  x.key; x[key]; x[a:b:c] of parts a, b and c. */
json_t *jinja_operator_field(struct jinja_renderer *r, const json_t *x, const char *key);
json_t *jinja_operator_item(struct jinja_renderer *r, const json_t *x, const json_t *key);
json_t *jinja_operator_slice(struct jinja_renderer *r, const json_t *x, json_t *const *parts);

/* The result of an operator on two values: JINJA_ADD to JINJA_IN. */
json_t *jinja_operator_apply(struct jinja_renderer *r, enum jinja_kind kind, const json_t *a,
                             const json_t *b);
json_t *jinja_operator_minus(struct jinja_renderer *r, const json_t *x);

/* Fails where a value that was made is nested too deep. */
void jinja_operator_check_depth(struct jinja_renderer *r, const json_t *x);

#endif
