/* linear: the linear layers of a transformer layer, forward and backward.  They multiply in the dtype of the
 * activations or, if memory was carved for it, in fp8: activations and weights in e4m3, gradients in e5m2,
 * with one scale per tensor.  A weight is rounded once after each change, the other factors when they are
 * used.  In training these have a history (ops.h, quantize) of earlier steps, so that their scale is mostly
 * known in advance.  Biases and results keep their dtype. */
#ifndef KILN_NN_LINEAR_H
#define KILN_NN_LINEAR_H

#include "core/arena.h"
#include "nn/stream.h"
#include "ops/ops.h"

/* Storage of the fp8 factors of products. */
enum fp8_factors {
    FP8_NONE,    /* products are not in fp8 */
    FP8_IN_BF16, /* factors by rows in bf16, which holds them exactly: for a device without fp8 products */
    FP8_ROWS,    /* factors in fp8, for forward only */
    FP8_ROWS_AND_COLUMNS, /* factors in fp8, for forward and backward */
};

/* Factors in fp8 that a linear layer's backward reads in addition to `in` and `w`; null tensors in
 * FP8_NONE. */
struct linear_fp8 {
    struct fp8_factor in, w;
};

/* Destination of a gradient: the tensor is assigned, or added to. */
struct gradient {
    tensor of;
    bool adds;
};

/* A linear layer, out = in w^T + bias, and the gradients that its backward adds to. */
struct linear {
    tensor w, bias;     /* [n_out, n_in]; [n_out], or null */
    struct gradient dw; /* the weight's */
    tensor dbias;       /* the bias's, which is added to; null: another op sums it */
    const struct linear_fp8 *fp8;
};

/* Carves a factor [n_rows, n_cols]; null tensors in FP8_NONE. */
void fp8_factor_carve(struct fp8_factor *f, struct arena *arena, enum fp8_factors kept, enum dtype format,
                      int64_t n_rows, int64_t n_cols);

/* Carves a tensor [n_rows, n_cols] that will be a factor; in fp8 with maxima, so that a separate pass for
 * them is not needed. */
tensor fp8_source_carve(struct arena *arena, enum fp8_factors kept, enum dtype dtype, int64_t n_rows,
                        int64_t n_cols);

/* Marks `t` for the op that writes it: if `f` has a history and is in fp8, that op also rounds it into `f`.
 * The linear layer that reads it then need not. */
tensor fp8_rounded_by_maker(tensor t, const struct fp8_factor *f);

/* Carve the fp8 factors of w [n_out, n_in], and those of in [T, n_in], which leaves those of w as they
 * are. */
void linear_carve_fp8_weight(struct linear_fp8 *l, struct arena *arena, enum fp8_factors kept, int64_t n_out,
                             int64_t n_in);
void linear_carve_fp8_input(struct linear_fp8 *l, struct arena *arena, enum fp8_factors kept,
                            int64_t n_tokens, int64_t n_in);

/* Rounds a weight after a change; does nothing if products are not in fp8. */
void linear_round_weight(struct exec *x, tensor w, const struct linear_fp8 *l);

/* out = in w^T + bias, and out = gelu(pre) with pre = in w^T + bias (ops.h).  In fp8, w is as it was last
 * rounded; `in` is what the op before has rounded it into, else it is rounded here into in_fp8, which is
 * l->fp8->in with or without a history. */
void linear_forward(struct exec *x, const struct linear *l, tensor out, tensor in,
                    const struct fp8_factor *in_fp8);
void linear_gelu_forward(struct exec *x, const struct linear *l, tensor out, tensor pre, tensor in,
                         const struct fp8_factor *in_fp8);

/* linear_forward where each peer (dev/peers.h) has some columns of w, and of `in`: the peers sum their
 * products, of which each keeps its own rows (nn/stream.h), and the first one adds the bias. */
void linear_forward_sum(struct exec *x, const struct linear *l, const struct stream *s, tensor out, tensor in,
                        const struct fp8_factor *in_fp8);

/* dw = dout^T in, dbias += the sum over rows of dout, din = dout w.  dout is rounded into dout_fp8 unless the
 * op before has done so. */
void linear_backward(struct exec *x, const struct linear *l, struct gradient din, tensor dout, tensor in,
                     const struct fp8_factor *dout_fp8);

/* linear_backward where each peer has some rows of w, and columns of dout: the peers sum din, of which each
 * keeps its own rows.  With din.adds the tensor is the same on all peers, and counts once; adding is not
 * possible where rows are divided. */
void linear_backward_sum(struct exec *x, const struct linear *l, const struct stream *s, struct gradient din,
                         tensor dout, tensor in, const struct fp8_factor *dout_fp8);

#endif
