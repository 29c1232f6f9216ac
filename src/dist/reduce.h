/* reduce: element by element sums and maxima of what ranks give, as every communicator computes them.
 *
 * The sum of n ranks is a tree: that of the first p, plus that of the others, where p is the largest power of
 * two below n.  So it is (r0 + r1) + (r2 + r3) for four, and (r0 + r1) + r2 for three.  Any 2^k neighbours
 * that begin at a multiple of 2^k are a subtree: if each of four ranks first adds two leaves, the bits are
 * those of eight ranks with one each. */
#ifndef KILN_DIST_REDUCE_H
#define KILN_DIST_REDUCE_H

#include "core/dtype.h"

#include <stdbool.h>

/* Whether there are sums of this dtype: fp32, fp64, and bf16, which is summed in fp32 and rounded once. */
bool reduce_can_sum(enum dtype dtype);

/* reduce_sum or reduce_max. */
typedef void reduction(void *out, const void *const *from, int n_from, int64_t first, int64_t n,
                       enum dtype dtype);

/* out[i] = the sum of from[r][first + i] over r in [0, n_from), for i in [0, n).  `out` may be one of the
 * from[r] + first. */
void reduce_sum(void *out, const void *const *from, int n_from, int64_t first, int64_t n, enum dtype dtype);

/* out[i] = the largest of from[r][first + i], as reduce_sum computes the sum; fp32 only.  A NaN is larger
 * than all numbers. */
void reduce_max(void *out, const void *const *from, int n_from, int64_t first, int64_t n, enum dtype dtype);

#endif
