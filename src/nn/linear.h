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

/* What the backward of a linear layer reads of its forward beside `in` and `w`; null tensors in FP8_NONE. */
struct linear_fp8 {
    struct fp8_factor in, w;
};

void fp8_factor_carve(struct fp8_factor *f, struct arena *arena, enum fp8_factors kept, enum dtype format,
                      int64_t n_rows, int64_t n_cols);

/* A tensor [n_rows, n_cols] that becomes a factor: with maxima where that is in fp8, so that they need not be found. */
tensor fp8_source_carve(struct arena *arena, enum fp8_factors kept, enum dtype dtype, int64_t n_rows,
                        int64_t n_cols);

/* `t` for the op that makes it, which rounds it to `f` on the way where that has a history and is in fp8; and for the linear
 * layer behind, which then does not. */
tensor fp8_rounded_by_maker(tensor t, const struct fp8_factor *f);

/* What w [n_out, n_in] becomes; and in [T, n_in], which leaves what w has. */
void linear_carve_fp8_weight(struct linear_fp8 *l, struct arena *arena, enum fp8_factors kept, int64_t n_out,
                             int64_t n_in);
void linear_carve_fp8_input(struct linear_fp8 *l, struct arena *arena, enum fp8_factors kept,
                            int64_t n_tokens, int64_t n_in);

/* Rounds a weight that has changed; nothing where products are not in fp8. */
void linear_round_weight(struct exec *x, tensor w, const struct linear_fp8 *l);

/* w as it was last rounded, `in` as its maker has rounded it or as in_fp8, which is l->in with a history or without, is now:
 * out = in w^T + bias, and out = gelu(pre), pre = in w^T + bias (ops.h). */
void linear_forward(struct exec *x, tensor out, tensor in, tensor w, tensor bias, const struct linear_fp8 *l,
                    const struct fp8_factor *in_fp8);
void linear_gelu_forward(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias,
                         const struct linear_fp8 *l, const struct fp8_factor *in_fp8);

/* dw += dout^T in;  dbias += sum over rows of dout, unless null;  din = dout w, or += if `accumulate`.  dout_fp8 is
 * the factor that dout becomes, if it is not already. */
void linear_backward(struct exec *x, tensor din, bool din_adds, tensor dw, bool dw_adds, tensor dbias,
                     tensor dout, tensor in, tensor w, const struct linear_fp8 *l,
                     const struct fp8_factor *dout_fp8);

#endif
