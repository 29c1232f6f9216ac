/* linear: the linear layers of a transformer layer, forward and backward, multiplied in the dtype of the activations or,
 * where room was carved for it, in fp8: activations and weights in e4m3, gradients in e5m2, each tensor under one scale.
 * A weight is rounded once after it has changed, the others where they are used; in training those have a history
 * (ops.h, quantize) of the steps before, by which their scale is mostly known beforehand.  Biases and results stay what they
 * were. */
#ifndef KILN_NN_LINEAR_H
#define KILN_NN_LINEAR_H

#include "core/arena.h"
#include "ops/ops.h"

/* How factors of products in fp8 are kept. */
enum fp8_factors {
    FP8_NONE,             /* products are not in fp8 */
    FP8_IN_BF16,          /* by rows in bf16, which holds them exactly: the device has no products in fp8 */
    FP8_ROWS,             /* in fp8, for forward only */
    FP8_ROWS_AND_COLUMNS, /* in fp8, for forward and backward */
};

/* A factor as ops->quantize leaves it; null tensors in FP8_NONE. */
struct fp8_factor {
    tensor rows, columns; /* [n_rows, n_cols] */
    tensor scale;         /* [1] */
};

/* What the backward of a linear layer reads of its forward beside `in` and `w`. */
struct linear_fp8 {
    struct fp8_factor in, w;
};

void fp8_factor_carve(struct fp8_factor *f, struct arena *arena, enum fp8_factors kept, enum dtype format,
                      int64_t n_rows, int64_t n_cols);

/* A tensor [n_rows, n_cols] that becomes a factor: with maxima where that is in fp8, so that they need not be found. */
tensor fp8_source_carve(struct arena *arena, enum fp8_factors kept, enum dtype dtype, int64_t n_rows,
                        int64_t n_cols);

/* What w [n_out, n_in] becomes; and in [T, n_in], which leaves what w has. */
void linear_carve_fp8_weight(struct linear_fp8 *l, struct arena *arena, enum fp8_factors kept, int64_t n_out,
                             int64_t n_in);
void linear_carve_fp8_input(struct linear_fp8 *l, struct arena *arena, enum fp8_factors kept,
                            int64_t n_tokens, int64_t n_in);

/* Rounds a weight that has changed; nothing where products are not in fp8. */
void linear_round_weight(struct exec *x, tensor w, const struct linear_fp8 *l);

/* w as it was last rounded, `history` that of `in`, or null:
 * out = in w^T + bias, and out = gelu(pre), pre = in w^T + bias (ops.h). */
void linear_forward(struct exec *x, tensor out, tensor in, tensor w, tensor bias, const struct linear_fp8 *l,
                    tensor history);
void linear_gelu_forward(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias,
                         const struct linear_fp8 *l, tensor history);

/* dw += dout^T in;  dbias += sum over rows of dout, unless null;  din = dout w, or += if `accumulate`.  dout_fp8 is
 * scratch for the factor that dout becomes, `history` that of dout, or null. */
void linear_backward(struct exec *x, tensor din, bool din_adds, tensor dw, bool dw_adds, tensor dbias,
                     tensor dout, tensor in, tensor w, const struct linear_fp8 *l,
                     const struct fp8_factor *dout_fp8, tensor history);

#endif
