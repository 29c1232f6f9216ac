/* cuda_linear: the slots of ops.h that are products, on a CUDA device.  Each checks the dtype and the memory
 * order of its factors, and describes them for the library (cuda_products.h). */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_LINEAR_H
#define KILN_OPS_CUDA_TABLE_CUDA_LINEAR_H

#include "ops/ops.h"

void cuda_linear(struct exec *x, tensor out, tensor in, tensor w, tensor bias);
void cuda_linear_gelu(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias);
void cuda_linear_backward_input(struct exec *x, tensor din, tensor dout, tensor w, bool accumulate);
void cuda_linear_backward_weight(struct exec *x, tensor dw, tensor dbias, tensor dout, tensor in,
                                 bool accumulate);

#endif
