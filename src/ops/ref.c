/* ref: the definition of every op, in double arithmetic on any dtype.
 *
 * It follows the formulas of ops.h to the letter and nothing else: no blocking, no vectors, no threads.  On
 * fp64 tensors it is the oracle of the gradient checks; on copies of rounded inputs it is the oracle of the
 * other tables. */
#include "ops/ref_slots.h"

#define REF_SLOT(slot, ...) .slot = ref_##slot,

const struct ops ops_ref = {.name = "ref", OP_SLOTS(REF_SLOT)};
