/* checkop_backend: the tables that checkop can test, by name. */
#ifndef KILN_TESTS_CHECKOP_BACKEND_H
#define KILN_TESTS_CHECKOP_BACKEND_H

#include "ops/ops.h"

struct checkop_backend {
    const struct ops *ops;
    const struct device *device;
};

/* Ends the test if there is no such backend, or skips it if this machine cannot run it. */
struct checkop_backend checkop_find_backend(const char *name);

#endif
