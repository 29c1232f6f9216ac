/* cuda_rounding: the fp8 factor of a tensor, as arguments of kernels. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_ROUNDING_H
#define KILN_OPS_CUDA_TABLE_CUDA_ROUNDING_H

#include "core/tensor.h"
#include "dev/exec.h"
#include "ops/cuda/kernels/launch.h"

/* Makes the kernels' arguments for rounding a tensor [rows, cols] to a factor of this fp8 format; columns and
 * history may be null.  False, and a failure sticks in the exec, if kernels cannot write such a factor. */
bool cuda_rounding_accept(struct launch_rounding *to, struct exec *x, const char *op,
                          const struct fp8_factor *f, tensor in, enum dtype format);

/* Makes the arguments for a tensor that is rounded by the op that writes it, which has columns and history,
 * or fails as cuda_rounding_accept.  `read`, which that kernel reads without further checks, must be dense
 * and aligned to 16 bytes. *to is NULL or `storage`. */
bool cuda_rounding_of_result(const struct launch_rounding **to, struct launch_rounding *storage,
                             struct exec *x, const char *op, tensor result, const tensor *read, int n_read,
                             enum dtype format);

#endif
