/* emulated_memory: device memory that only what runs on the emulated device may touch: a host that follows a
 * pointer into it ends with a segmentation fault.  And the other way round: a kernel is given no pointer to
 * other memory. */
#ifndef KILN_TESTS_EMULATED_MEMORY_H
#define KILN_TESTS_EMULATED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zeros; NULL if there is no memory.  Pinned: the host's, which kernels may touch too. */
void *emulated_memory_take(size_t bytes);
void *emulated_memory_take_pinned(size_t bytes);
void emulated_memory_give_back(void *memory);

/* Around what runs on the device. */
void emulated_memory_open(void);
void emulated_memory_close(void);

/* Whether it is an address of the device's own memory. */
bool emulated_memory_has(const void *pointer);

/* Ends the program if this is an address of memory that is not the device's. */
void emulated_memory_check(const void *pointer);

#ifdef __cplusplus
}
#endif

#endif
