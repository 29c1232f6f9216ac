/* dtype: the element types of tensors, and the conversions between them.  One build handles all of them. */
#ifndef KILN_CORE_DTYPE_H
#define KILN_CORE_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum dtype {
    DTYPE_F32,
    DTYPE_BF16,
    DTYPE_F16,
    DTYPE_F64,
    DTYPE_I32,
    DTYPE_I64,
    DTYPE_U8,
    DTYPE_E4M3, /* core/fp8.h */
    DTYPE_E5M2,
    DTYPE_I8, /* integers of [-127, 127] times a scale per row of a matrix (core/tensor.h) */
};

static inline size_t dtype_bytes(enum dtype t)
{
    static const size_t bytes[] = {
        [DTYPE_F32] = 4, [DTYPE_BF16] = 2, [DTYPE_F16] = 2,  [DTYPE_F64] = 8,  [DTYPE_I32] = 4,
        [DTYPE_I64] = 8, [DTYPE_U8] = 1,   [DTYPE_E4M3] = 1, [DTYPE_E5M2] = 1, [DTYPE_I8] = 1};
    return bytes[t];
}

static inline const char *dtype_name(enum dtype t)
{
    static const char *const names[] = {
        [DTYPE_F32] = "fp32",  [DTYPE_BF16] = "bf16", [DTYPE_F16] = "fp16", [DTYPE_F64] = "fp64",
        [DTYPE_I32] = "i32",   [DTYPE_I64] = "i64",   [DTYPE_U8] = "u8",    [DTYPE_E4M3] = "e4m3",
        [DTYPE_E5M2] = "e5m2", [DTYPE_I8] = "int8"};
    return names[t];
}

/* The dtype of vectors, statistics and parameter gradients where activations have dtype `a`. */
static inline enum dtype dtype_of_vectors(enum dtype a)
{
    return a == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
}

/* bfloat16 is the upper half of a binary32. */
static inline float bf16_to_f32(uint16_t bits)
{
    uint32_t u = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Rounds to nearest, ties to even; a NaN stays a (quiet) NaN. */
static inline uint16_t bf16_from_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
    uint32_t nan = (u >> 16) | 0x40U;
    return (uint16_t)((u & 0x7fffffffU) > 0x7f800000U ? nan : rounded);
}

/* IEEE 754 binary16, for the reference backend and for file conversion; not fast. */
float f16_to_f32(uint16_t bits);
uint16_t f16_from_f32(float f);

#endif
