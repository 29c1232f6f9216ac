/* checkop_run: what checkop does with a case: tests it, checks its gradients, or times it. */
#ifndef KILN_TESTS_CHECKOP_RUN_H
#define KILN_TESTS_CHECKOP_RUN_H

#include "checkop_cases.h"

/* The tables that cases are run on: of a device, "cpu-each" for every instruction set of this processor.
 * Once in a process, before all below but the gradients. */
void checkop_find_tested(const char *backend);

/* Whether the tested device has what the case is about. */
bool checkop_applies(const struct checkop_case *c, enum dtype dtype);

/* Holds each table against the oracle, and against itself; adds the name of a table to the title. */
void checkop_test(struct checkop_case *c, enum dtype dtype);

/* Central differences of the forward, in fp64. */
void checkop_test_gradients(const struct checkop_case *c);

/* Times the case, and prints its rates. */
void checkop_bench(const struct checkop_case *c, enum dtype dtype);

#endif
