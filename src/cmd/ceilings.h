/* ceilings: what this machine reaches where nothing gets in the way, to hold the ops of a model against. */
#ifndef KILN_CMD_CEILINGS_H
#define KILN_CMD_CEILINGS_H

#include "core/dtype.h"
#include "core/status.h"

/* The best of several products of [2048, 1024] by [1024, 1024] by the cpu table, in FLOP/s. */
struct status ceiling_products(enum dtype dtype, double *flops_per_s);

/* The best of several copies of 128 MiB, by memcpy and by the cpu table on all threads, in bytes read and
 * written a second. */
struct status ceiling_copy(double *bytes_per_s);

#endif
