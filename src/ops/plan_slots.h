/* plan_slots: the functions plan_SLOT of the planning table (ops/plan.c), one for each slot.
 *
 * plan_elements.c   elements, factors in fp8, and products
 * plan_rows.c       LayerNorms, embeddings, and rows of tables
 * plan_attention.c  attention
 * plan_losses.c     losses
 * plan_optim.c      optimizers */
#ifndef KILN_OPS_PLAN_SLOTS_H
#define KILN_OPS_PLAN_SLOTS_H

#include "ops/op_slots.h"

#define PLAN_DECLARE(slot, parameters, ...) void plan_##slot(struct exec *x, OP_UNPACK parameters);
OP_SLOTS(PLAN_DECLARE)
#undef PLAN_DECLARE

#endif
