/* array: arrays of the heap that grow by doubling. */
#ifndef KILN_CORE_ARRAY_H
#define KILN_CORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for n items; `items` is the address of the pointer to them.  False: memory ran out, and nothing
 * has changed. */
bool array_reserve(void *items, size_t *capacity, size_t n, size_t item_bytes);

/* The same for a pointer and a size_t that are named. */
#define ARRAY_RESERVE(items, capacity, n) array_reserve(&(items), &(capacity), (size_t)(n), sizeof *(items))

#endif
