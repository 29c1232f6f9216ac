/* cpu_isa: the instruction sets that kernels are compiled for (cmake/isa.cmake), which of them the processor
 * has, and the table of each. */
#ifndef KILN_OPS_CPU_CPU_ISA_H
#define KILN_OPS_CPU_CPU_ISA_H

#include "core/status.h"
#include "ops/ops.h"

#include <stdbool.h>

/* X(isa) for each, from the slowest to the fastest. */
#if defined(__x86_64__)
#    define CPU_ISAS(X) X(baseline) X(avx2) X(avx512) X(avx512bf16)
#else
#    define CPU_ISAS(X) X(baseline)
#endif

#define CPU_ISA_NUMBER(isa) CPU_ISA_##isa,
enum cpu_isa { CPU_ISAS(CPU_ISA_NUMBER) N_CPU_ISAS };

/* "baseline", "avx2", "avx512" or "avx512bf16". */
const char *cpu_isa_name(enum cpu_isa isa);

/* Whether the processor can run kernels of this set. */
bool cpu_isa_is_there(enum cpu_isa isa);

/* The set whose kernels run: that of the environment variable KILN_ISA, or the fastest that the processor
 * has. The libraries of matrix products follow it.  Where cpu_isa_check fails it is the fastest: backend_find
 * has refused by then. */
enum cpu_isa cpu_isa_best(void);

/* Whether KILN_ISA is set. */
bool cpu_isa_is_limited(void);

/* STATUS_USAGE if KILN_ISA is no name of a set, STATUS_UNAVAILABLE if the processor lacks that set. */
struct status cpu_isa_check(void);

/* Whether cpu_isa_best is one of the last two. */
bool cpu_isa_has_avx512(void);

/* The table of an instruction set by its name; NULL if this processor or this build lacks it.  For tests;
 * other code uses ops_cpu (ops/ops.h). */
const struct ops *cpu_table(const char *isa);

#endif
