/* cuda_ops: the table of operations on a CUDA device.  Each slot checks dtypes and strides, takes the tensors
 * apart and launches kernels (launch.h) or products (cuda_linear.c); nothing waits for the device except the
 * timing of a new shape (cuda_products.h, attention_choice.h).  The kernels check indices and record a
 * wrong one; the next copy to the host reports it. */

#include "ops/cuda/table/cuda_slots.h"

#define CUDA_SLOT(slot, ...) .slot = cuda_##slot,

const struct ops ops_cuda = {.name = "cuda", OP_SLOTS(CUDA_SLOT)};
