/* ceilings: the rates that a device reaches under ideal conditions, to compare the ops of a model with. */
#ifndef KILN_WATCH_CEILINGS_H
#define KILN_WATCH_CEILINGS_H

#include "ops/backend.h"
#include "dev/precision.h"

/* The sizes of the measurement. */
struct ceiling_size {
    int64_t rows, width; /* products of [rows, width] by [width, width] */
    int64_t copied;      /* floats in one copy */
    int64_t at_once;     /* calls between two waits: enough to make the wait negligible */
    double seconds;      /* repeat for at least that long */
};

/* On the host products of [2048, 1024] by [1024, 1024] and copies of 128 MiB; else products of 8192 each way
 * and copies of 1 GiB.  Each is repeated for a quarter of a second, long enough to include disturbances by
 * other programs. */
struct ceiling_size ceiling_size_of(const struct device *device);

/* Products by the backend's table, in FLOP/s. */
struct status ceiling_products(const struct backend *b, struct ceiling_size size, struct precision precision,
                               double *flops_per_s);

/* Copies within the device's memory, in bytes read and written a second.  The device itself copies; on the
 * host all threads of the backend's table, or one thread with memcpy, whichever is faster. */
struct status ceiling_copy(const struct backend *b, struct ceiling_size size, double *bytes_per_s);

#endif
