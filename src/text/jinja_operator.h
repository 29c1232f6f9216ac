/* jinja_operator: fields, items and slices of values, and the operators between them, as Python has them. */
#ifndef KILN_TEXT_JINJA_OPERATOR_H
#define KILN_TEXT_JINJA_OPERATOR_H

#include "text/jinja_renderer.h"

/* What messages call the value: "a string". */
const char *jinja_operator_type(const json_t *v);

/* Results are owned; NULL is undefined, or a failure.  x.key; x[key]; x[a:b:c] of parts a, b and c. */
json_t *jinja_operator_field(struct jinja_renderer *r, const json_t *x, const char *key);
json_t *jinja_operator_item(struct jinja_renderer *r, const json_t *x, const json_t *key);
json_t *jinja_operator_slice(struct jinja_renderer *r, const json_t *x, json_t *const *parts);

/* Of two values: JINJA_ADD to JINJA_IN. */
json_t *jinja_operator_apply(struct jinja_renderer *r, enum jinja_kind kind, const json_t *a,
                             const json_t *b);
json_t *jinja_operator_minus(struct jinja_renderer *r, const json_t *x);

/* Fails where a value that was made is nested too deep. */
void jinja_operator_check_depth(struct jinja_renderer *r, const json_t *x);

#endif
