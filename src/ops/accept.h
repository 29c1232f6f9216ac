/* accept: checks that ops make before they read memory.  The plan has checked shapes; dtypes, strides and the
 * numbers in index tensors are checked here, because a wrong one would make an op read outside a tensor. */
#ifndef KILN_OPS_ACCEPT_H
#define KILN_OPS_ACCEPT_H

#include "ops/ops.h"

/* True if the op may run: nothing has failed before; all `matrices` have dense rows and one dtype, which is
 * fp32, bf16 or, on a device that computes in it, fp16; and all `vectors` are dense fp32.  Null tensors pass.
 * Otherwise STATUS_USAGE sticks in the exec. */
bool accept_tensors(struct exec *x, const char *op, const tensor *matrices, int n_matrices,
                    const tensor *vectors, int n_vectors);

/* True if the rows of a residual stream are dense and of one dtype: that of activations, `dtype`, or fp32
 * (ops.h, R). Null tensors pass. */
bool accept_stream(struct exec *x, const char *op, enum dtype dtype, const tensor *rows, int n);

/* accept_tensors for matrices that are only copied, which may also be i32. */
bool accept_copied(struct exec *x, const char *op, tensor out, tensor in);

/* True if keys and values are pages (ops.h, append_rows) whose heads have the number and the size of those of
 * `like`, [T, N, D]. */
bool accept_pages(struct exec *x, const char *op, tensor keys, tensor values, int64_t n_heads,
                  int64_t head_size);

/* True if the device computes in fp8 and all `matrices` are fp8, with dense rows that begin at multiples of
 * OPS_FP8_MULTIPLE bytes, and dims that are multiples of it.  Null tensors pass.  Otherwise STATUS_USAGE
 * sticks in the exec. */
bool accept_fp8(struct exec *x, const char *op, const tensor *matrices, int n_matrices);

#define ACCEPT_LIST(...)                                                                                     \
    (const tensor[]){__VA_ARGS__}, (int)(sizeof((const tensor[]){__VA_ARGS__}) / sizeof(tensor))

/* True if `w` is a matrix in int8 with dense rows and, unless nothing is computed, a scale for each, that the
 * device multiplies with rows of this length (ops.h, linear). */
bool accept_int8(struct exec *x, const char *op, tensor w);

/* True if every number of the dense i32 tensor `index` lies in [first, end); else STATUS_DATA names the first
 * that does not. */
bool accept_indices(struct exec *x, const char *op, const char *name, tensor index, int64_t first,
                    int64_t end);

#endif
