/* ceilings: what this machine reaches where nothing gets in the way, to hold the ops of a model against. */
#ifndef KILN_CMD_CEILINGS_H
#define KILN_CMD_CEILINGS_H

#include "core/dtype.h"
#include "core/status.h"

/* Products of [2048, 1024] by [1024, 1024] by the cpu table, sustained for a quarter of a second, in FLOP/s. */
struct status ceiling_products(enum dtype dtype, double *flops_per_s);

/* Copies of 128 MiB, by memcpy or by the cpu table on all threads, whichever is faster, sustained likewise, in
 * bytes read and written a second. */
struct status ceiling_copy(double *bytes_per_s);

#endif
