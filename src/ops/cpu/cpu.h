/* cpu: the cpu table of one instruction set, for tests; other code uses ops_cpu (ops/ops.h). */
#ifndef KILN_OPS_CPU_CPU_H
#define KILN_OPS_CPU_CPU_H

#include "ops/ops.h"

/* The table of an instruction set by its name (cpu_isa.h); NULL if this processor or this build lacks it. */
const struct ops *cpu_table(const char *isa);

#endif
