/* cpu_isa: the cpu table of one instruction set, for tests; other code uses ops_cpu. */
#ifndef KILN_OPS_CPU_CPU_ISA_H
#define KILN_OPS_CPU_CPU_ISA_H

#include "ops/ops.h"

/* "baseline", "avx2", "avx512" or "avx512bf16"; NULL if this processor or this build lacks it. */
const struct ops *cpu_isa_table(const char *isa);

/* Whether the processor has one of the last two. */
bool cpu_isa_has_avx512(void);

#endif
