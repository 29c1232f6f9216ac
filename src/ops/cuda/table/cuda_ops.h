/* cuda_ops: the cuda table, of the library that is loaded at run time. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_OPS_H
#define KILN_OPS_CUDA_TABLE_CUDA_OPS_H

#include "ops/ops.h"

extern const struct ops ops_cuda;

#endif
