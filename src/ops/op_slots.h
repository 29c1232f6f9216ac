/* op_slots: every slot of struct ops, for tables that have a function for each slot, or wrap another table,
 * such as a timer.
 *
 * _(slot, (parameters after the exec), (the same as arguments), tensors whose shapes say what it was called
 * with: outputs first) */
#ifndef KILN_OPS_OP_SLOTS_H
#define KILN_OPS_OP_SLOTS_H

#include "ops/ops.h"

#define OP_UNPACK(...) __VA_ARGS__

/* clang-format off */
#define OP_SLOTS(_) \
    _(fill, (tensor out, double value), (out, value), out) \
    _(cast, (tensor out, tensor in), (out, in), out, in) \
    _(quantize, (tensor rows, tensor columns, tensor scale, tensor history, tensor dbias, tensor in, \
       enum dtype format), \
      (rows, columns, scale, history, dbias, in, format), rows, in) \
    _(add, (tensor out, tensor in), (out, in), out) \
    _(sum, (tensor total, tensor in), (total, in), in) \
    _(find_nonfinite, (tensor index, tensor in), (index, in), in) \
    _(linear, (tensor out, tensor in, tensor w, tensor bias), (out, in, w, bias), out, in, w) \
    _(linear_gelu, (tensor out, tensor pre, tensor in, tensor w, tensor bias), \
      (out, pre, in, w, bias), out, in, w) \
    _(linear_backward_input, (tensor din, tensor dout, tensor w, bool accumulate), \
      (din, dout, w, accumulate), din, dout, w) \
    _(linear_backward_weight, (tensor dw, tensor dbias, tensor dout, tensor in, bool accumulate), \
      (dw, dbias, dout, in, accumulate), dw, dout, in) \
    _(gelu_backward, (tensor dpre, tensor dbias, tensor dout, tensor pre), (dpre, dbias, dout, pre), dpre) \
    _(tanh, (tensor out, tensor in), (out, in), out) \
    _(tanh_backward, (tensor din, tensor dout, tensor out), (din, dout, out), din) \
    _(relu, (tensor out, tensor in), (out, in), out) \
    _(relu_backward, (tensor din, tensor dout, tensor out), (din, dout, out), din) \
    _(gelu_tanh, (tensor out, tensor pre), (out, pre), out) \
    _(gelu_tanh_backward, (tensor dpre, tensor dout, tensor pre), (dpre, dout, pre), dpre) \
    _(gated, (tensor out, tensor pre, enum gate_function f), (out, pre, f), out) \
    _(gated_backward, (tensor dpre, tensor dout, tensor pre, enum gate_function f), (dpre, dout, pre, f), \
       dpre) \
    _(rotate, (tensor heads, tensor turns, tensor positions, bool back), (heads, turns, positions, back), \
       heads) \
    _(residual_add, (tensor out, tensor residual, tensor branch), (out, residual, branch), out) \
    _(dropout, (tensor out, tensor in, tensor row_keys, struct dropout drop), \
      (out, in, row_keys, drop), out) \
    _(embed, (tensor out, tensor sum, tensor mean, tensor rstd, tensor ids, tensor types, tensor positions, \
       tensor word, tensor position, tensor type, tensor gamma, tensor beta, double eps, tensor row_keys, \
       struct dropout drop), \
      (out, sum, mean, rstd, ids, types, positions, word, position, type, gamma, beta, eps, row_keys, drop), \
       out, word) \
    _(embed_backward, (tensor dsum, tensor dword, tensor dposition, tensor dtype, tensor dgamma, \
       tensor dbeta, tensor dout, tensor sum, tensor mean, tensor rstd, tensor ids, tensor types, \
       tensor positions, tensor gamma, tensor row_keys, struct dropout drop), \
      (dsum, dword, dposition, dtype, dgamma, dbeta, dout, sum, mean, rstd, ids, types, positions, gamma, \
       row_keys, drop), dword, dsum) \
    _(layernorm, (tensor out, tensor mean, tensor rstd, tensor in, tensor gamma, tensor beta, double eps), \
      (out, mean, rstd, in, gamma, beta, eps), out) \
    _(layernorm_backward, (tensor din, tensor dgamma, tensor dbeta, tensor dout, tensor in, tensor mean, \
       tensor rstd, tensor gamma), \
      (din, dgamma, dbeta, dout, in, mean, rstd, gamma), din) \
    _(bias_dropout_add_layernorm, (tensor out, tensor sum, tensor mean, tensor rstd, tensor in, tensor bias, \
       tensor residual, tensor gamma, tensor beta, double eps, tensor row_keys, struct dropout drop), \
      (out, sum, mean, rstd, in, bias, residual, gamma, beta, eps, row_keys, drop), out) \
    _(bias_dropout_add_layernorm_backward, (tensor dresidual, tensor din, tensor dbias, tensor dgamma, \
       tensor dbeta, tensor dout, tensor sum, tensor mean, tensor rstd, tensor gamma, tensor row_keys, \
       struct dropout drop, bool accumulate), \
      (dresidual, din, dbias, dgamma, dbeta, dout, sum, mean, rstd, gamma, row_keys, drop, accumulate), din) \
    _(attention, (tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a), \
      (out, lse, q, k, v, a), q, k) \
    _(attention_backward, (tensor dq, tensor dk, tensor dv, tensor dbias, tensor dout, tensor out, \
       tensor lse, tensor q, tensor k, tensor v, struct attention a), \
      (dq, dk, dv, dbias, dout, out, lse, q, k, v, a), dq, dk) \
    _(append_rows, (tensor keys, tensor values, tensor k, tensor v, tensor slots), \
      (keys, values, k, v, slots), k) \
    _(attention_cached, (tensor out, tensor q, tensor keys, tensor values, struct attention a), \
      (out, q, keys, values, a), q, keys) \
    _(gather_rows, (tensor out, tensor in, tensor rows), (out, in, rows), out, in) \
    _(scatter_add_rows, (tensor din, tensor dout, tensor rows), (din, dout, rows), din, dout) \
    _(gather_slice, (tensor out, tensor in, tensor rows, int64_t first, int64_t n_rows), \
      (out, in, rows, first, n_rows), out, in) \
    _(scatter_add_slice, (tensor din, tensor dout, tensor rows, int64_t first, int64_t n_rows), \
      (din, dout, rows, first, n_rows), din, dout) \
    _(cross_entropy, (tensor loss, tensor correct, tensor dlogits, tensor logits, tensor labels, \
       int64_t n_classes, tensor scale), \
      (loss, correct, dlogits, logits, labels, n_classes, scale), logits) \
    _(slice_maxima, (tensor maxima, tensor logits, int64_t first, int64_t n_classes), \
      (maxima, logits, first, n_classes), logits) \
    _(slice_sums, (tensor sums, tensor logits, tensor maxima, tensor labels, int64_t first, \
       int64_t n_classes), \
      (sums, logits, maxima, labels, first, n_classes), logits) \
    _(slice_cross_entropy, (tensor loss, tensor correct, tensor dlogits, tensor logits, tensor maxima, \
       tensor sums, tensor labels, int64_t first, int64_t n_classes, tensor scale), \
      (loss, correct, dlogits, logits, maxima, sums, labels, first, n_classes, scale), logits) \
    _(span_cross_entropy, (tensor loss, tensor correct, tensor dlogits, tensor logits, tensor cu_seqlens, \
       tensor labels, tensor scale), \
      (loss, correct, dlogits, logits, cu_seqlens, labels, scale), logits) \
    _(pointwise, (tensor loss, tensor correct, tensor dlogits, tensor logits, tensor targets, \
       enum pointwise_loss kind, tensor scale), \
      (loss, correct, dlogits, logits, targets, kind, scale), logits) \
    _(choose_tokens, (tensor tokens, tensor log_ps, tensor changes, tensor logits, tensor options, \
       tensor starts, int64_t n_tokens, int64_t n_words), \
      (tokens, log_ps, changes, logits, options, starts, n_tokens, n_words), logits) \
    _(clear, (tensor flat, const struct optim_span *spans, int64_t n_spans), (flat, spans, n_spans), flat) \
    _(squares, (tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans), \
      (sums, in, spans, n_spans), in) \
    _(zeros, (tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans), \
      (sums, in, spans, n_spans), in) \
    _(norm_of, (tensor norm, tensor sums), (norm, sums), sums) \
    _(lamb_direction, (tensor sums, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans, \
       tensor norm, tensor scalars), \
      (sums, b, spans, n_spans, norm, scalars), b.master) \
    _(lamb_apply, (struct optim_buffers b, const struct optim_span *spans, int64_t n_spans, tensor sums, \
       tensor norm, tensor scalars), \
      (b, spans, n_spans, sums, norm, scalars), b.master) \
    _(lans_direction, (tensor sums, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans, \
       tensor squares, tensor norm, tensor scalars), \
      (sums, b, spans, n_spans, squares, norm, scalars), b.master) \
    _(lans_apply, (struct optim_buffers b, const struct optim_span *spans, int64_t n_spans, tensor sums, \
       tensor norm, tensor scalars), \
      (b, spans, n_spans, sums, norm, scalars), b.master) \
    _(adamw, (struct optim_buffers b, const struct optim_span *spans, int64_t n_spans, tensor norm, \
       tensor scalars), \
      (b, spans, n_spans, norm, scalars), b.master) \
    _(nesterov, (tensor sums, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans, \
       tensor norm, tensor scalars), \
      (sums, b, spans, n_spans, norm, scalars), b.master) \
    _(unit, (tensor out, tensor in, tensor sums), (out, in, sums), out) \
    _(matrix_polynomial, (tensor out, tensor in, tensor square, double a, double b, double c), \
      (out, in, square, a, b, c), out) \
    _(descend, (struct optim_buffers b, const struct optim_span *span, tensor in, tensor norm, \
       tensor scalars), \
      (b, span, in, norm, scalars), in)
/* clang-format on */

#define OP_SLOT_ONE(...) +1
_Static_assert(sizeof(struct ops) ==
                   sizeof(const char *) + (0 OP_SLOTS(OP_SLOT_ONE)) * sizeof(void (*)(void)),
               "a slot of ops.h is missing here");

#endif
