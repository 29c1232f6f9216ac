#include "cmd/ceilings.h"

#include "core/clock.h"
#include "core/rng.h"
#include "ops/ops.h"

#include <string.h>

/* Slow machines need no more than a few repeats. */
static const double ENOUGH_S = 0.25;

static void keep_larger(double *best, double rate)
{
    *best = rate > *best ? rate : *best;
}

static struct exec cpu_exec(void)
{
    return (struct exec){.device = &device_cpu, .ops = ops_cpu(), .layer_index = -1};
}

struct status ceiling_products(enum dtype dtype, double *flops_per_s)
{
    enum { T = 2048, H = 1024, REPEATS = 20 };
    size_t activation = (size_t)T * H * dtype_bytes(dtype), weight = (size_t)H * H * dtype_bytes(dtype);
    void *memory;
    TRY(device_cpu.allocate(&memory, 2 * activation + weight, "the measurement"));
    tensor in = tensor_2d(memory, dtype, T, H);
    tensor out = tensor_2d((char *)memory + activation, dtype, T, H);
    tensor w = tensor_2d((char *)memory + 2 * activation, dtype, H, H);
    struct exec x = cpu_exec();
    for (int64_t i = 0; i < T * H; i++) {
        tensor_store(in, i, rng_uniform_at(1, (uint64_t)i) - 0.5);
    }
    for (int64_t i = 0; i < H * H; i++) {
        tensor_store(w, i, rng_uniform_at(2, (uint64_t)i) - 0.5);
    }
    *flops_per_s = 0;
    int64_t began = clock_ns();
    for (int i = 0; i < REPEATS && (i < 2 || clock_since_s(began) < ENOUGH_S); i++) {
        int64_t start = clock_ns();
        x.ops->linear(&x, out, in, w, NULL_TENSOR);
        keep_larger(flops_per_s, 2.0 * T * H * H / clock_since_s(start));
    }
    device_cpu.release(memory, 2 * activation + weight);
    return x.status;
}

struct status ceiling_copy(double *bytes_per_s)
{
    enum { N = 1 << 25, REPEATS = 5 };
    size_t bytes = (size_t)N * sizeof(float);
    void *memory;
    TRY(device_cpu.allocate(&memory, 2 * bytes, "the measurement"));
    tensor from = tensor_1d(memory, DTYPE_F32, N);
    tensor to = tensor_1d((char *)memory + bytes, DTYPE_F32, N);
    struct exec x = cpu_exec();
    *bytes_per_s = 0;
    int64_t began = clock_ns();
    for (int i = 0; i < REPEATS && (i < 2 || clock_since_s(began) < ENOUGH_S); i++) {
        int64_t start = clock_ns();
        x.ops->cast(&x, to, from);
        keep_larger(bytes_per_s, 2.0 * (double)bytes / clock_since_s(start));
        start = clock_ns();
        memcpy(from.data, to.data, bytes);
        keep_larger(bytes_per_s, 2.0 * (double)bytes / clock_since_s(start));
    }
    device_cpu.release(memory, 2 * bytes);
    return x.status;
}
