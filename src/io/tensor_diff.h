/* tensor_diff: where and by how much two stored tensors of one shape differ.
 *
 * Elements a and b are equal if |a - b| <= atol + rtol |b|, if they are the same infinity, or if both are
 * NaN: the rule of numpy.allclose with equal_nan.  Values are compared in fp64, so types may differ. */
#ifndef KILN_IO_TENSOR_DIFF_H
#define KILN_IO_TENSOR_DIFF_H

#include "io/stored_tensor.h"

struct tensor_tolerance {
    double atol, rtol;
};

struct tensor_diff {
    int64_t n, n_different; /* elements */
    int64_t first;          /* the first that differs, in dense order; -1: none */
    double a, b;            /* values of that element */
    /* largest |a - b| and |a - b| / |b| of all elements; infinity if only one is finite */
    double max_abs, max_rel;
    int64_t largest; /* the element of max_abs, in dense order */
};

/* Both have the same dims and can be read.  Reads a dense tensor in pieces.  STATUS_DATA: damaged;
 * STATUS_MEMORY. */
struct status tensor_diff_compare(struct tensor_diff *d, const struct stored_tensor *a,
                                  const struct stored_tensor *b, struct tensor_tolerance within);

#endif
