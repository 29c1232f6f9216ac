/* cuda_rounding: what a tensor becomes in fp8, taken apart for kernels. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_ROUNDING_H
#define KILN_OPS_CUDA_TABLE_CUDA_ROUNDING_H

#include "core/tensor.h"
#include "dev/exec.h"
#include "ops/cuda/kernels/launch.h"

/* Takes apart the factor that a tensor [rows, cols] becomes in fp8 of this format; columns and history may be null.  False,
 * and a failure sticks in the exec, if kernels cannot write it so. */
bool cuda_rounding_accept(struct launch_rounding *to, struct exec *x, const char *op,
                          const struct fp8_factor *f, tensor in, enum dtype format);

/* The same for a tensor that its maker rounds, which has both; `read`, what that reads without looking, must be dense and lie
 * at multiples of 16 bytes.  *to is NULL or `storage`. */
bool cuda_rounding_of_result(const struct launch_rounding **to, struct launch_rounding *storage,
                             struct exec *x, const char *op, tensor result, const tensor *read, int n_read,
                             enum dtype format);

#endif
