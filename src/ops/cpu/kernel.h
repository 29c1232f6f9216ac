/* kernel: how a *_kernels.c file connects to the rest.  It is compiled once per instruction set
 * (cmake/isa.cmake).  Everything in it is static except one function, which writes the file's kernels into a
 * table; ops/cpu/cpu.c calls the one for the processor. */
#ifndef KILN_OPS_CPU_KERNEL_H
#define KILN_OPS_CPU_KERNEL_H

#include "ops/accept.h"
#include "ops/cpu/lanes.h"
#include "ops/ops.h"

#define KERNEL_PASTE_EXPANDED(a, b) a##b
#define KERNEL_PASTE(a, b)          KERNEL_PASTE_EXPANDED(a, b)

/* Opens the exported function of a kernel file: KERNEL_FILL(norm, struct ops) { t->layernorm = ...; } */
#define KERNEL_FILL(file, table)                                                                             \
    void KERNEL_PASTE(file##_kernels_fill_, KILN_ISA)(table * t);                                            \
    void KERNEL_PASTE(file##_kernels_fill_, KILN_ISA)(table * t)

static inline int64_t kernel_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t kernel_blocks(int64_t n, int64_t block)
{
    return (n + block - 1) / block;
}

static inline int64_t kernel_round_up(int64_t n, int64_t multiple)
{
    return kernel_blocks(n, multiple) * multiple;
}

#endif
