/* entropy: random bytes that cannot be guessed, from the system: for secrets and for unique names.  The
 * results of a run never depend on them (core/rng). */
#ifndef KILN_CORE_ENTROPY_H
#define KILN_CORE_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>

/* False, with errno, if the system has none. */
bool entropy_draw(void *bytes, size_t n);

#endif
