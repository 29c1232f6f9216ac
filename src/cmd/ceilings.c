#include "cmd/ceilings.h"

#include "core/clock.h"
#include "core/rng.h"
#include "ops/ops.h"

#include <string.h>

/* Long enough to meet whatever else the machine is doing, as a training step does. */
static const double MEASURE_S = 0.25;

static struct exec cpu_exec(void)
{
    return (struct exec){.device = &device_cpu, .ops = ops_cpu(), .layer_index = -1};
}

struct status ceiling_products(enum dtype dtype, double *flops_per_s)
{
    enum { T = 2048, H = 1024 };
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
    x.ops->linear(&x, out, in, w, NULL_TENSOR); /* warms up */
    int64_t start = clock_ns();
    double n = 0;
    do {
        x.ops->linear(&x, out, in, w, NULL_TENSOR);
        n++;
    } while (clock_since_s(start) < MEASURE_S);
    *flops_per_s = n * 2.0 * T * H * H / clock_since_s(start);
    device_cpu.release(memory, 2 * activation + weight);
    return x.status;
}

struct status ceiling_copy(double *bytes_per_s)
{
    enum { N = 1 << 25 };
    size_t bytes = (size_t)N * sizeof(float);
    void *memory;
    TRY(device_cpu.allocate(&memory, 2 * bytes, "the measurement"));
    tensor from = tensor_1d(memory, DTYPE_F32, N);
    tensor to = tensor_1d((char *)memory + bytes, DTYPE_F32, N);
    struct exec x = cpu_exec();
    double by_ops_s = 0, by_memcpy_s = 0, n = 0;
    do {
        int64_t start = clock_ns();
        x.ops->cast(&x, to, from);
        by_ops_s += clock_since_s(start);
        start = clock_ns();
        memcpy(from.data, to.data, bytes);
        by_memcpy_s += clock_since_s(start);
        n++;
    } while (by_ops_s + by_memcpy_s < MEASURE_S);
    *bytes_per_s = n * 2.0 * (double)bytes / (by_ops_s < by_memcpy_s ? by_ops_s : by_memcpy_s);
    device_cpu.release(memory, 2 * bytes);
    return x.status;
}
