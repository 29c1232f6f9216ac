/* plan_wants: how a slot of the planning table (ops/plan.c) says what its arguments must be, and what
 * it costs. */
#ifndef KILN_OPS_PLAN_WANTS_H
#define KILN_OPS_PLAN_WANTS_H

#include "ops/ops.h"

/* One argument's form, seen as a matrix whose columns are its last dim; its bytes count as moved once. */
struct want {
    const char *name;
    tensor t;
    int dtype; /* enum dtype, or ANY */
    int64_t rows, cols;
};

enum { ANY = -1 };

/* Checks n arguments, and adds up what the op costs; a failure sticks in the exec. */
void plan_wants(struct exec *x, const char *op, double flops, size_t scratch, const struct want *wants,
                int n);

#define PLAN(x, op, flops, scratch, ...)                                                                     \
    plan_wants(x, op, flops, scratch, (const struct want[]){__VA_ARGS__},                                    \
               (int)(sizeof((const struct want[]){__VA_ARGS__}) / sizeof(struct want)))

/* Counts the bytes of `t` as moved this many times more, or less. */
static inline void move(struct exec *x, double times, tensor t)
{
    x->totals.bytes += times * (double)tensor_bytes(t);
}

static inline double count(tensor t)
{
    return (double)tensor_count(t);
}

/* The dtype that rows of a residual stream must have with activations of this one. */
static inline int of_stream(enum dtype activations, tensor rows)
{
    enum dtype wide = dtype_of_vectors(activations);
    return (int)(rows.dtype == wide ? wide : activations);
}

#endif
