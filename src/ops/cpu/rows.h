/* rows: kernels compute in fp32: a row of a tensor is loaded as fp32 and stored in the tensor's dtype.  An
 * fp32 row is used in place, so the same code serves both dtypes at no cost for fp32. */
#ifndef KILN_OPS_CPU_ROWS_H
#define KILN_OPS_CPU_ROWS_H

#include "core/tensor.h"

#if defined(__AVX512BF16__)
#    include <immintrin.h>
#endif

static inline void rows_from_bf16(float *restrict out, const uint16_t *restrict in, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = bf16_to_f32(in[i]);
    }
}

/* The processor's own conversion treats subnormal numbers as zero. */
static inline void rows_to_bf16(uint16_t *restrict out, const float *restrict in, int64_t n)
{
    int64_t i = 0;
#if defined(__AVX512BF16__)
    for (; i + 32 <= n; i += 32) {
        __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(in + i + 16), _mm512_loadu_ps(in + i));
        _mm512_storeu_si512(out + i, (__m512i)both);
    }
#endif
    for (; i < n; i++) {
        out[i] = bf16_from_f32(in[i]);
    }
}

/* Elements that are processed in registers together.  A row is processed piece by piece; only the last piece
 * is shorter, so the length of the others is a compile-time constant. */
enum { ROWS_PIECE = 32 };

/* A piece of n elements, zeros after them. */
static inline void rows_piece_from_bf16(float *restrict out, const uint16_t *restrict in, int64_t n)
{
    if (n == ROWS_PIECE) {
        rows_from_bf16(out, in, ROWS_PIECE);
        return;
    }
    memset(out, 0, ROWS_PIECE * sizeof *out);
    rows_from_bf16(out, in, n);
}

static inline void rows_piece_to_bf16(uint16_t *restrict out, const float *restrict in, int64_t n)
{
    if (n == ROWS_PIECE) {
        rows_to_bf16(out, in, ROWS_PIECE);
        return;
    }
    rows_to_bf16(out, in, n);
}

static inline void rows_piece_add(float *restrict sum, const float *restrict in, int64_t n)
{
    if (n == ROWS_PIECE) {
        for (int64_t i = 0; i < ROWS_PIECE; i++) {
            sum[i] += in[i];
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        sum[i] += in[i];
    }
}

/* Elements between the first of the tensor and the first of row `row`: dense tensors of any shape, strided
 * matrices and heads [T, N, D]. */
static inline int64_t rows_offset(tensor t, int64_t row)
{
    if (t.n_dims == 3) {
        return row / t.dims[1] * t.strides[0] + row % t.dims[1] * t.strides[1];
    }
    return row * (t.n_dims == 2 ? t.strides[0] : tensor_cols(t));
}

/* The number of a row in a vector of fp32; NULL if the vector is null. */
static inline float *rows_number(tensor t, int64_t row)
{
    return tensor_is_null(t) ? NULL : (float *)t.data + row;
}

static inline float *rows_f32(tensor t, int64_t row)
{
    return (float *)t.data + rows_offset(t, row);
}

static inline uint16_t *rows_bf16(tensor t, int64_t row)
{
    return (uint16_t *)t.data + rows_offset(t, row);
}

/* Columns [first, first + n) of a row: in place, or converted into `buffer`. */
static inline const float *rows_load(tensor t, int64_t row, int64_t first, int64_t n, float *buffer)
{
    if (t.dtype == DTYPE_F32) {
        return rows_f32(t, row) + first;
    }
    rows_from_bf16(buffer, rows_bf16(t, row) + first, n);
    return buffer;
}

/* The place to compute these columns: in place, or in `buffer`; rows_store finishes them. */
static inline float *rows_target(tensor t, int64_t row, int64_t first, float *buffer)
{
    return t.dtype == DTYPE_F32 ? rows_f32(t, row) + first : buffer;
}

static inline void rows_store(tensor t, int64_t row, int64_t first, int64_t n, const float *target)
{
    if (t.dtype == DTYPE_BF16) {
        rows_to_bf16(rows_bf16(t, row) + first, target, n);
    }
}

#endif
