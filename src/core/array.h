/* array: arrays of the heap that grow by doubling. */
#ifndef KILN_CORE_ARRAY_H
#define KILN_CORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Reserves space for n items; `items` is the address of the pointer to them.  False: memory ran out, and
 * nothing has changed. */
bool array_reserve(void *items, size_t *capacity, size_t n, size_t item_bytes);

/* Calls array_reserve for a named pointer and its size_t capacity. */
#define ARRAY_RESERVE(items, capacity, n) array_reserve(&(items), &(capacity), (size_t)(n), sizeof *(items))

#endif
