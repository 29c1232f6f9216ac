/* gemm_by_rows: products in which a row has the same bits whatever rows are beside it (exec.rows_alone), and
 * those with a matrix in int8. */
#ifndef KILN_OPS_CPU_GEMM_BY_ROWS_H
#define KILN_OPS_CPU_GEMM_BY_ROWS_H

#include "ops/cpu/gemm_tiles.h"

/* Computes a product with B transposed, A not, which adds to nothing. */
void gemm_by_rows(struct exec *x, const char *op, struct gemm_call *c, size_t after_bytes);

#endif
