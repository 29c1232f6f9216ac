/* arena: one planned allocation, carved from front to back.
 *
 * The same carving code runs twice: on a measuring arena (no memory, only a size) to plan, then on a real
 * one.  So the bytes planned are the bytes used. */
#ifndef KILN_CORE_ARENA_H
#define KILN_CORE_ARENA_H

#include "core/tensor.h"

#include <stddef.h>

struct arena {
    char *base; /* NULL: only measures */
    size_t capacity;
    size_t used;
};

enum { ARENA_ALIGNMENT = 256 }; /* bytes: cache lines, vectors and the GPU's coalesced accesses */

/* An arena that only counts bytes: its tensors have no memory. */
struct arena arena_measuring(void);

/* Uses `capacity` bytes at `base`, which the caller owns. */
struct arena arena_over(void *base, size_t capacity);

/* The next `bytes`, aligned; NULL while measuring.  Asking for more than was planned is a bug in kiln, a
 * CHECK.
 */
void *arena_carve(struct arena *a, size_t bytes);

/* Tensors of the next bytes, aligned; data is NULL while measuring. */
tensor arena_carve_1d(struct arena *a, enum dtype dtype, int64_t d0);
tensor arena_carve_2d(struct arena *a, enum dtype dtype, int64_t d0, int64_t d1);

/* A matrix as arena_carve_2d carves, with space for the maxima after its elements (tensor.h). */
tensor arena_carve_2d_maxima(struct arena *a, enum dtype dtype, int64_t d0, int64_t d1);

#endif
