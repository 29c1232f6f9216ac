/* ceilings: what a device reaches where nothing gets in the way, to hold the ops of a model against. */
#ifndef KILN_WATCH_CEILINGS_H
#define KILN_WATCH_CEILINGS_H

#include "ops/backend.h"
#include "dev/precision.h"

/* What is computed to find out. */
struct ceiling_size {
    int64_t rows, width; /* products of [rows, width] by [width, width] */
    int64_t copied;      /* floats from one place to another */
    int64_t at_once;     /* calls between two waits: so many that a wait is little beside them */
    double seconds;      /* at least so long */
};

/* On the host products of [2048, 1024] by [1024, 1024] and copies of 128 MiB; else of 8192 each way, and of
 * 1 GiB; each sustained for a quarter of a second, long enough to meet whatever else the machine is doing. */
struct ceiling_size ceiling_size_of(const struct device *device);

/* Products by the backend's table, in FLOP/s. */
struct status ceiling_products(const struct backend *b, struct ceiling_size size, struct precision precision,
                               double *flops_per_s);

/* Copies from one place of the device's memory to another by the device itself; on the host by all threads of the
 * backend's table or by one with memcpy, whichever is faster.  In bytes read and written a second. */
struct status ceiling_copy(const struct backend *b, struct ceiling_size size, double *bytes_per_s);

#endif
