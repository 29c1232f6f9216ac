/* device_tensors: random tensors in a device's memory, for tests of single ops. */
#ifndef KILN_TESTS_DEVICE_TENSORS_H
#define KILN_TESTS_DEVICE_TENSORS_H

#include "../checkop_backend.h"
#include "../test.h"
#include "core/arena.h"

#include <stdlib.h>

enum { BYTES = 64 << 20, SCRATCH_BYTES = 8 << 20, BIG = 1 << 16 };

/* What the next tensors are. */
static struct {
    struct checkop_backend b;
    struct exec x;
    struct arena arena;
    void *memory, *scratch;
    enum dtype dtype;
    int64_t rows, cols;
    uint32_t seed;
} of;

/* On the device, of numbers between -2 and 2 but for one. */
static inline tensor filled(tensor t, double one)
{
    tensor host = t;
    host.data = malloc(tensor_bytes(t));
    for (int64_t i = 0; i < tensor_count(t); i++) {
        of.seed = of.seed * 1664525U + 1013904223U;
        tensor_set(host, i, t.dtype == DTYPE_I32 ? 0 : (double)(of.seed >> 8) / (1 << 22) - 2);
    }
    if (one != 0) {
        tensor_set(host, tensor_count(t) / 2, one);
    }
    exec_copy_in(&of.x, t.data, host.data, tensor_bytes(t));
    free(host.data);
    return t;
}

static inline tensor matrix(double one)
{
    return filled(arena_carve_2d(&of.arena, of.dtype, of.rows, of.cols), one);
}

static inline tensor vector(int64_t n)
{
    return filled(arena_carve_1d(&of.arena, DTYPE_F32, n), 0);
}

static inline void open_device(const char *layer)
{
    of.b = checkop_find_backend("cuda");
    of.x = (struct exec){.device = of.b.device,
                         .ops = of.b.ops,
                         .layer = layer,
                         .layer_index = -1,
                         .workspace_bytes = SCRATCH_BYTES};
    EXPECT_OK(of.b.device->open(&of.x.context));
    EXPECT_OK(of.b.device->allocate(&of.memory, BYTES, "tensors"));
    EXPECT_OK(of.b.device->allocate(&of.scratch, SCRATCH_BYTES, "scratch"));
    of.x.workspace = of.scratch;
    of.arena = arena_over(of.memory, BYTES);
}

static inline void close_device(void)
{
    of.b.device->release(of.memory, BYTES);
    of.b.device->release(of.scratch, SCRATCH_BYTES);
    of.b.device->close(of.x.context);
}

#endif
