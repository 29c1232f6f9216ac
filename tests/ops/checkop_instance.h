/* checkop_instance: the arguments of a case, in memory and with their values. */
#ifndef KILN_TESTS_CHECKOP_INSTANCE_H
#define KILN_TESTS_CHECKOP_INSTANCE_H

#include "checkop_cases.h"

enum { CHECKOP_GUARD = 0xA5, CHECKOP_WORTH_THREADS = 1 << 20 }; /* a byte that nobody may write; elements */

/* The arguments of one case in one pair of dtypes, in memory. */
struct checkop_instance {
    const struct checkop_case *c;
    tensor t[CHECKOP_MAX_ARGS];
    void *memory[CHECKOP_MAX_ARGS];
    size_t bytes[CHECKOP_MAX_ARGS];
};

/* `tested` decides which optional arguments there are; `a` is the dtype of the memory. */
void checkop_instance_init(struct checkop_instance *in, const struct checkop_case *c, enum dtype tested,
                           enum dtype a);
void checkop_instance_fini(struct checkop_instance *in);

/* Puts each tensor's scale into it. */
void checkop_instance_scale(const struct checkop_case *c, tensor *t);

/* Values of one argument: the same whatever other ops there are. */
void checkop_instance_fill_arg(const struct checkop_case *c, int arg, tensor t);

/* Random values, rounded through the dtypes of `rounded`, the same in both instances. */
void checkop_instance_fill(struct checkop_instance *exact, struct checkop_instance *rounded);

#endif
