/* gemm_backend: the functions that a library must provide to compute the tiles of ops/cpu/gemm.c. */
#ifndef KILN_OPS_CPU_GEMM_BACKEND_H
#define KILN_OPS_CPU_GEMM_BACKEND_H

#include "ops/cpu/gemm.h"

enum { GEMM_MAX_FORMS = 8 };

/* The result of prepare if the memory that the library needs is not available. */
extern const char gemm_no_memory[];

struct gemm_backend {
    const char *name;

    /* The version of the library, once it is open: "2.6.0"; NULL: it has none. */
    const char *(*version)(void);

    /* Opens the library, once; false if it does not work on this machine. */
    bool (*open)(void);

    /* Whether the library can compute with these dtypes on this processor, without emulation. */
    bool (*can)(enum dtype ab_dtype, enum dtype c_dtype);

    /* A handle for tiles of this form (sizes, strides, dtypes, flags; not addresses) and the lane bytes that
     * a tile needs.  NULL: the form is not supported; gemm_no_memory: not now.  Valid until a later product
     * prepares others; called by one thread at a time. */
    const void *(*prepare)(const struct gemm *tile, size_t *lane_bytes);

    /* Computes one tile; false if the library failed. */
    bool (*tile)(const void *handle, const struct gemm *tile, void *lane);

    /* Whether it is faster on this processor than those that are listed before it; NULL: never. */
    bool (*goes_first)(void);
};

/* Conversions: blocks of bf16, whose rows are `stride` apart, to dense fp32 and back. */
struct gemm_convert {
    void (*from_bf16)(float *out, const uint16_t *in, int64_t stride, int64_t rows, int64_t cols);
    void (*to_bf16)(uint16_t *out, const float *in, int64_t stride, int64_t rows, int64_t cols);

    /* A row of n numbers as integers under the scale that is returned (ops.h, OPS_INT8_STEPS), then zeros up
     * to `padded`. */
    float (*to_int16)(int16_t *out, int64_t padded, const float *in, int64_t n);

    /* A row of n numbers as multiples of the step that is returned (ops.h, exec.int8_rows), plus `zero`, so
     * that the smallest is 0. */
    float (*to_bytes)(uint8_t *out, int32_t *zero, const float *in, int64_t n);

    int32_t (*sum_int8)(const int8_t *in, int64_t n);

    /* C of a product of bytes with int8, of its dense sums [m, n]: each without what zeros add to it, times
     * both scales, and the bias. */
    void (*scale_sums)(const struct gemm *g, const int32_t *sums);
};

/* C += product, which is dense fp32 [m, n]. */
void gemm_add_product(const struct gemm *g, const float *product);

/* The backends that are compiled in.  gemm.c fills in the plain one, and conversions, for the processor. */
extern const struct gemm_backend gemm_onednn;
extern const struct gemm_backend gemm_blas;
const struct gemm_backend *gemm_plain(void);
const struct gemm_backend *gemm_rows(void); /* gemm_rows_kernels.c */
bool gemm_has_amx(void);                    /* gemm_amx_open, asked once */
const struct gemm_convert *gemm_convert(void);

/* Products by rows alone in bf16 and int8 by the tile registers of AMX, with A packed (gemm_amx.c). */

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
