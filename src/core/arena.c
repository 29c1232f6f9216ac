#include "core/arena.h"

#include "core/status.h"

#include <stdint.h>

struct arena arena_measuring(void)
{
    return (struct arena){.capacity = SIZE_MAX};
}

struct arena arena_over(void *base, size_t capacity)
{
    return (struct arena){.base = base, .capacity = capacity};
}

void *arena_carve(struct arena *a, size_t bytes)
{
    size_t rounded = (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    CHECK(rounded <= a->capacity - a->used, "carving %zu bytes of an arena of %zu with %zu used", bytes,
          a->capacity, a->used);
    void *p = a->base == NULL ? NULL : a->base + a->used;
    a->used += rounded;
    return p;
}

tensor arena_carve_1d(struct arena *a, enum dtype dtype, int64_t d0)
{
    return tensor_1d(arena_carve(a, (size_t)d0 * dtype_bytes(dtype)), dtype, d0);
}

tensor arena_carve_2d(struct arena *a, enum dtype dtype, int64_t d0, int64_t d1)
{
    return tensor_2d(arena_carve(a, (size_t)(d0 * d1) * dtype_bytes(dtype)), dtype, d0, d1);
}

_Static_assert((int)ARENA_ALIGNMENT == (int)TENSOR_MAXIMA_ALIGNMENT,
               "what is carved next lies where maxima do");

tensor arena_carve_2d_maxima(struct arena *a, enum dtype dtype, int64_t d0, int64_t d1)
{
    tensor t = arena_carve_2d(a, dtype, d0, d1);
    arena_carve(a, TENSOR_MAXIMA * sizeof(uint32_t));
    t.has_maxima = true;
    return t;
}
