/* half_ops: the cpu's operations for prediction in fp16, which that processor does not compute in: every
 * activation is fp32 in memory and rounded to what fp16 holds, as a GPU writes it; sums, statistics and
 * losses stay fp32. */
#ifndef KILN_OPS_HALF_OPS_H
#define KILN_OPS_HALF_OPS_H

#include "ops/ops.h"

/* The table, made of ops_cpu().  Its backward operations are the plain ones: it is for prediction. */
struct ops half_ops(void);

/* Rounds x[0..n) to the nearest values of fp16, ties to even; larger than 65504 becomes infinite, NaN
 * stays. */
void half_ops_round(float *x, int64_t n);

/* Rounds an fp32 tensor in the host's memory as half_ops_round does. */
void half_ops_round_tensor(tensor t);

#endif
