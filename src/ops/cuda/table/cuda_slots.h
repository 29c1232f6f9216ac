/* cuda_slots: the functions cuda_SLOT of the table of a CUDA device (cuda_ops.c), one for each slot.
 *
 * cuda_element_slots.c    elements, sums of all, and factors in fp8
 * cuda_linear.c           products
 * cuda_norm_slots.c       LayerNorms, embeddings, and rows of tables
 * cuda_attention_slots.c  attention
 * cuda_loss_slots.c       losses
 * cuda_optim_slots.c      sums over gradients, and updates */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_SLOTS_H
#define KILN_OPS_CUDA_TABLE_CUDA_SLOTS_H

#include "ops/op_slots.h"

#define CUDA_DECLARE(slot, parameters, ...) void cuda_##slot(struct exec *x, OP_UNPACK parameters);
OP_SLOTS(CUDA_DECLARE)
#undef CUDA_DECLARE

/* The table of them (cuda_ops.c). */
extern const struct ops ops_cuda;

#endif
