/* plan: computes nothing.  Each slot checks the shapes and dtypes that ops.h declares, and adds up what the
 * op costs: FLOPs, bytes moved (each tensor once, twice if it is updated, of a table only the rows that are
 * used) and scratch.  A model run over this table is validated and measured before anything is allocated. */
#include "ops/plan_slots.h"

#define PLAN_SLOT(slot, ...) .slot = plan_##slot,

const struct ops ops_plan = {.name = "plan", OP_SLOTS(PLAN_SLOT)};
