/* integers: operations that C has no function for. */
#ifndef KILN_CORE_INTEGERS_H
#define KILN_CORE_INTEGERS_H

#include <stdint.h>

static inline int64_t int_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t int_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The first multiple of `step` that is not below n. */
static inline int64_t int_round_up(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

#endif
