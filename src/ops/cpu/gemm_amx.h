/* gemm_amx: products by rows alone in bf16 and int8 by the tile registers of AMX, with A packed
 * (gemm_amx.c). */
#ifndef KILN_OPS_CPU_GEMM_AMX_H
#define KILN_OPS_CPU_GEMM_AMX_H

#include "ops/cpu/gemm_backend.h"

/* Asks for the registers; false if the processor, the system or the build lacks them. */
bool gemm_amx_open(void);

/* A backend whose tiles read A packed: blocks of g.a_block rows, g.a_stride elements of 2 bytes for each row.
 * A block is WORKSPACE_PACKED_ROWS rows, with zeros for those that are missing, or the one row of a
 * product. */
extern const struct gemm_backend gemm_amx;

/* Packs n rows of bf16, k of `stride` numbers of each, as a block. */
void gemm_amx_pack_bf16(void *packed, const void *rows, int64_t stride, int64_t n, int64_t k, int64_t block);

/* Packs n rows of 16-bit integers, `stride` each, a multiple of 64, as a block: their upper bytes, then their
 * lower ones. */
void gemm_amx_pack_int16(void *packed, const int16_t *rows, int64_t stride, int64_t n, int64_t block);

#endif
