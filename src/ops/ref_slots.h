/* ref_slots: the functions ref_SLOT of the reference table (ops/ref.c), one for each slot.
 *
 * ref_elements.c   elements, factors in fp8, and products
 * ref_rows.c       LayerNorms, embeddings, and rows of tables
 * ref_attention.c  attention
 * ref_losses.c     losses
 * ref_optim.c      optimizers */
#ifndef KILN_OPS_REF_SLOTS_H
#define KILN_OPS_REF_SLOTS_H

#include "ops/op_slots.h"

#define REF_DECLARE(slot, parameters, ...) void ref_##slot(struct exec *x, OP_UNPACK parameters);
OP_SLOTS(REF_DECLARE)
#undef REF_DECLARE

#endif
