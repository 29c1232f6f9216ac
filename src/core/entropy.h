/* entropy: random bytes that nobody can guess, from the system: for secrets and for names that nobody else
 * takes.  What a run computes never depends on them (core/rng). */
#ifndef KILN_CORE_ENTROPY_H
#define KILN_CORE_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>

/* False, with errno, if the system has none. */
bool entropy_draw(void *bytes, size_t n);

#endif
