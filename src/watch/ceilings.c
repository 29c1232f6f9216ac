#include "watch/ceilings.h"

#include "core/clock.h"
#include "core/rng.h"

#include <stdlib.h>
#include <string.h>

/* An exec with its own memory. */
struct place {
    struct exec x;
    void *memory;
    size_t bytes;
};

struct ceiling_size ceiling_size_of(const struct device *device)
{
    return device->is_host ? (struct ceiling_size){2048, 1024, 1 << 25, 1, 0.25}
                           : (struct ceiling_size){8192, 8192, 1 << 28, 16, 0.25};
}

static struct status place_open(struct place *p, const struct backend *b, size_t bytes)
{
    *p = (struct place){.x = {.device = b->device, .ops = b->ops, .layer_index = -1}, .bytes = bytes};
    p->x.layer = "the measurement";
    TRY(b->device->open(&p->x.context));
    return b->device->allocate(&p->memory, bytes, "the measurement");
}

static void place_close(struct place *p)
{
    if (p->memory != NULL) {
        p->x.device->release(p->memory, p->bytes);
    }
    if (p->x.context != NULL) {
        p->x.device->close(p->x.context);
    }
}

/* Random numbers, a short block repeated: zeros would cost a processor less power than a model's numbers
 * do. */
static void fill_random(struct exec *x, tensor t)
{
    enum { CHUNK = 1 << 16 };
    size_t size = dtype_bytes(t.dtype);
    int64_t n = tensor_count(t);
    tensor chunk = tensor_1d(malloc(CHUNK * size), t.dtype, CHUNK);
    if (chunk.data == NULL) {
        exec_fail(x, STATUS_MEMORY, "a copy", "out of memory for random numbers");
        return;
    }
    for (int64_t i = 0; i < CHUNK; i++) {
        tensor_store(chunk, i, rng_uniform_at(1, (uint64_t)i) - 0.5);
    }
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t left = n - i < CHUNK ? n - i : CHUNK;
        exec_copy_in(x, (char *)t.data + (size_t)i * size, chunk.data, (size_t)left * size);
    }
    free(chunk.data);
}

/* The number of products per second. */
static double time_products(struct exec *x, struct ceiling_size size, tensor out, tensor in, tensor w)
{
    double n = 0;
    x->ops->linear(x, out, in, w, NULL_TENSOR); /* warms up */
    exec_synchronize(x);
    int64_t start = clock_ns();
    do {
        for (int64_t i = 0; i < size.at_once; i++) {
            x->ops->linear(x, out, in, w, NULL_TENSOR);
        }
        exec_synchronize(x);
        n += (double)size.at_once;
    } while (!failed(x->status) && clock_since_s(start) < size.seconds);
    return n / clock_since_s(start);
}

static struct status products_at(struct place *p, struct ceiling_size size, enum dtype dtype,
                                 enum dtype factor, double *flops_per_s)
{
    char *memory = p->memory;
    size_t activation = (size_t)(size.rows * size.width) * dtype_bytes(dtype);
    tensor in = tensor_2d(memory, factor, size.rows, size.width);
    tensor out = tensor_2d(memory + activation, dtype, size.rows, size.width);
    tensor w = tensor_2d(memory + 2 * activation, factor, size.width, size.width);
    fill_random(&p->x, in);
    fill_random(&p->x, w);
    double per_s = time_products(&p->x, size, out, in, w);
    *flops_per_s = per_s * 2 * (double)size.rows * (double)size.width * (double)size.width;
    return p->x.status;
}

struct status ceiling_products(const struct backend *b, struct ceiling_size size, struct precision precision,
                               double *flops_per_s)
{
    struct place p;
    enum dtype dtype = precision.dtype;
    enum dtype factor = precision_factor(precision, b->device);
    size_t elements = (size_t)(2 * size.rows * size.width + size.width * size.width);
    struct status s = place_open(&p, b, elements * dtype_bytes(dtype));
    p.x.allow_tf32 = precision.allow_tf32;
    if (!failed(s)) {
        s = products_at(&p, size, dtype, factor, flops_per_s);
    }
    place_close(&p);
    return s;
}

/* Seconds that n copies take, the wait for them included. */
static double time_copies(struct exec *x, int64_t n, tensor to, tensor from, bool by_memcpy)
{
    size_t bytes = tensor_bytes(to);
    int64_t start = clock_ns();
    for (int64_t i = 0; i < n && !failed(x->status); i++) {
        if (by_memcpy) {
            memcpy(to.data, from.data, bytes);
        } else if (x->device->is_host) {
            x->ops->cast(x, to, from);
        } else { /* the speed of one of our kernels does not limit the others */
            x->status = x->device->copy_within(x->context, to.data, from.data, bytes);
        }
    }
    exec_synchronize(x);
    return clock_since_s(start);
}

static struct status copies_at(struct place *p, struct ceiling_size size, double *bytes_per_s)
{
    struct exec *x = &p->x;
    size_t bytes = (size_t)size.copied * sizeof(float);
    tensor from = tensor_1d(p->memory, DTYPE_F32, size.copied);
    tensor to = tensor_1d((char *)p->memory + bytes, DTYPE_F32, size.copied);
    double seconds = 0, by_memcpy_s = 0, n = 0;
    time_copies(x, 1, to, from, false); /* warms up */
    do {
        seconds += time_copies(x, size.at_once, to, from, false);
        if (x->device->is_host) {
            by_memcpy_s += time_copies(x, size.at_once, from, to, true);
        }
        n += (double)size.at_once;
    } while (!failed(x->status) && seconds + by_memcpy_s < size.seconds);
    bool memcpy_won = x->device->is_host && by_memcpy_s < seconds;
    *bytes_per_s = n * 2.0 * (double)bytes / (memcpy_won ? by_memcpy_s : seconds);
    return x->status;
}

struct status ceiling_copy(const struct backend *b, struct ceiling_size size, double *bytes_per_s)
{
    struct place p;
    struct status s = place_open(&p, b, 2 * (size_t)size.copied * sizeof(float));
    if (!failed(s)) {
        s = copies_at(&p, size, bytes_per_s);
    }
    place_close(&p);
    return s;
}
