/* tensor: a typed, strided view of memory that it does not own.  Passed by value; never allocates, never
 * frees. */
#ifndef KILN_CORE_TENSOR_H
#define KILN_CORE_TENSOR_H

#include "core/dtype.h"

#include <stdbool.h>
#include <stdint.h>

enum { TENSOR_MAX_DIMS = 4, TENSOR_MAXIMA = 1024, TENSOR_MAXIMA_ALIGNMENT = 256 };

typedef struct tensor {
    void *data; /* first element, in the memory of one device; NULL in the null tensor and while planning */
    enum dtype dtype;
    int n_dims;
    int64_t dims[TENSOR_MAX_DIMS];    /* [slow, ..., fast] */
    int64_t strides[TENSOR_MAX_DIMS]; /* strides in elements */
    /* value = stored * *scale in fp8, stored * scale[row] of a matrix in int8; NULL for 1, and elsewhere */
    const float *scale;
    bool has_maxima; /* the op that writes it stores maxima after its elements: tensor_maxima */
    const struct fp8_factor *rounded; /* the op that writes it also rounds it into this; NULL: not */
} tensor;

/* A tensor rounded to fp8 as a factor of products, and the history of its largest magnitude over steps:
 * ops.h, quantize. */
struct fp8_factor {
    tensor rows, columns; /* [n_rows, n_cols] */
    tensor scale;         /* [1] */
    tensor history;       /* [2], or null */
};

/* An absent optional argument: n_dims is 0. */
#define NULL_TENSOR ((tensor){0})

static inline bool tensor_is_null(tensor t)
{
    return t.n_dims == 0;
}

/* Dense row-major views of `data`. */
tensor tensor_1d(void *data, enum dtype dtype, int64_t d0);
tensor tensor_2d(void *data, enum dtype dtype, int64_t d0, int64_t d1);
tensor tensor_3d(void *data, enum dtype dtype, int64_t d0, int64_t d1, int64_t d2);

/* Product of the dims; 1 for no dims. */
int64_t tensor_count(tensor t);

/* Rows and columns of a tensor seen as a matrix: [d0 * ... * d(n-2), d(n-1)]. */
int64_t tensor_rows(tensor t);
int64_t tensor_cols(tensor t);

/* Bytes of the elements, without the gaps of a view. */
size_t tensor_bytes(tensor t);

/* The largest magnitudes of parts of a tensor, [TENSOR_MAXIMA], as bits of fp32: as integers these sort like
 * the numbers, with infinity and NaN on top.  They lie after the elements, at the next multiple of 256 bytes.
 * NULL if it has none. */
uint32_t *tensor_maxima(tensor t);

/* Whether rows follow each other without gaps. */
bool tensor_is_dense(tensor t);
bool tensor_same_shape(tensor a, tensor b);

/* Rows [first, first + n) of the slowest dim.  A part or a transpose of a tensor has no maxima and no fp8
 * factor (`rounded`). */
tensor tensor_slice(tensor t, int64_t first, int64_t n);

/* Columns [first, first + n) of a matrix, as a strided view. */
tensor tensor_columns(tensor t, int64_t first, int64_t n);

/* A view of a matrix with its dims exchanged; the memory stays. */
tensor tensor_transpose(tensor t);

/* [T, A * D] seen as [T, A, D]. */
tensor tensor_split_heads(tensor t, int64_t n_heads);

/* One element of a host tensor as a double, whatever its dtype; `index` counts elements in dense order. */
double tensor_get(tensor t, int64_t index);
void tensor_set(tensor t, int64_t index, double value);

/* Loads and stores, as tensor_get and tensor_set, the element `offset` elements after the first in memory. */
double tensor_load(tensor t, int64_t offset);
void tensor_store(tensor t, int64_t offset, double value);

/* The first element of a host tensor that is infinite or NaN, in dense order; -1: all are finite. */
int64_t tensor_find_nonfinite(tensor t);

#endif
