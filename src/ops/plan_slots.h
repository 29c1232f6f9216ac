/* plan_slots: the slots of the planning table (ops/plan.c), by the files that hold them. */
#ifndef KILN_OPS_PLAN_SLOTS_H
#define KILN_OPS_PLAN_SLOTS_H

#include "ops/ops.h"

/* plan_elements.c: elements, factors in fp8, and products */
void plan_fill(struct exec *x, tensor out, double value);
void plan_cast(struct exec *x, tensor out, tensor in);
void plan_quantize(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history, tensor dbias,
                   tensor in, enum dtype format);
void plan_add(struct exec *x, tensor out, tensor in);
void plan_sum(struct exec *x, tensor total, tensor in);
void plan_find_nonfinite(struct exec *x, tensor index, tensor in);
void plan_linear(struct exec *x, tensor out, tensor in, tensor w, tensor bias);
void plan_linear_gelu(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias);
void plan_linear_backward_input(struct exec *x, tensor din, tensor dout, tensor w, bool accumulate);
void plan_linear_backward_weight(struct exec *x, tensor dw, tensor dbias, tensor dout, tensor in,
                                 bool accumulate);
void plan_gelu_backward(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre);
void plan_tanh(struct exec *x, tensor out, tensor in);
void plan_tanh_backward(struct exec *x, tensor din, tensor dout, tensor out);
void plan_gelu_tanh(struct exec *x, tensor out, tensor pre);
void plan_gelu_tanh_backward(struct exec *x, tensor dpre, tensor dout, tensor pre);
void plan_residual_add(struct exec *x, tensor out, tensor residual, tensor branch);
void plan_dropout(struct exec *x, tensor out, tensor in, tensor row_keys, struct dropout drop);

/* plan_rows.c: LayerNorms, embeddings, and rows of tables */
void plan_statistics(struct exec *x, const char *op, tensor mean, tensor rstd, int64_t rows, int vector);
void plan_normalized_sum(struct exec *x, const char *op, tensor out, tensor sum, int of_sum, tensor mean,
                         tensor rstd, tensor gamma, tensor beta);
void plan_layernorm(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma,
                    tensor beta, double eps);
void plan_norm_backward(struct exec *x, tensor din, int of_din, tensor dgamma, tensor dbeta, tensor dout,
                        tensor in, tensor mean, tensor rstd, tensor gamma);
void plan_layernorm_backward(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout, tensor in,
                             tensor mean, tensor rstd, tensor gamma);
void plan_embed(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids, tensor types,
                tensor positions, tensor word, tensor position, tensor type, tensor gamma, tensor beta,
                double eps, tensor row_keys, struct dropout drop);
void plan_embed_backward(struct exec *x, tensor dsum, tensor dword, tensor dposition, tensor dtype,
                         tensor dgamma, tensor dbeta, tensor dout, tensor sum, tensor mean, tensor rstd,
                         tensor ids, tensor types, tensor positions, tensor gamma, tensor row_keys,
                         struct dropout drop);
void plan_bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd,
                                     tensor in, tensor bias, tensor residual, tensor gamma, tensor beta,
                                     double eps, tensor row_keys, struct dropout drop);
void plan_bias_dropout_add_layernorm_backward(struct exec *x, tensor dresidual, tensor din, tensor dbias,
                                              tensor dgamma, tensor dbeta, tensor dout, tensor sum,
                                              tensor mean, tensor rstd, tensor gamma, tensor row_keys,
                                              struct dropout drop, bool accumulate);
void plan_gather(struct exec *x, const char *op, tensor out, tensor in, tensor rows);
void plan_gather_rows(struct exec *x, tensor out, tensor in, tensor rows);
void plan_scatter_add_rows(struct exec *x, tensor din, tensor dout, tensor rows);
void plan_gather_slice(struct exec *x, tensor out, tensor in, tensor rows, int64_t first, int64_t n_rows);
void plan_scatter_add_slice(struct exec *x, tensor din, tensor dout, tensor rows, int64_t first,
                            int64_t n_rows);

/* plan_attention.c: attention */
void plan_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a);
void plan_attention_backward(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias, tensor dout,
                             tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a);
void plan_append_rows(struct exec *x, tensor keys, tensor values, tensor k, tensor v, tensor slots);
void plan_attention_cached(struct exec *x, tensor out, tensor q, tensor keys, tensor values,
                           struct attention a);

/* plan_losses.c: losses */
void plan_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                        tensor labels, int64_t n_classes, tensor scale);
void plan_slice_maxima(struct exec *x, tensor maxima, tensor logits, int64_t first, int64_t n_classes);
void plan_slice_sums(struct exec *x, tensor sums, tensor logits, tensor maxima, tensor labels, int64_t first,
                     int64_t n_classes);
void plan_slice_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                              tensor maxima, tensor sums, tensor labels, int64_t first, int64_t n_classes,
                              tensor scale);
void plan_span_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                             tensor cu_seqlens, tensor labels, tensor scale);
void plan_pointwise(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                    tensor targets, enum pointwise_loss kind, tensor scale);

/* plan_optim.c: sums over gradients, and updates */
void plan_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans);
void plan_squares(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans);
void plan_zeros(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans);
void plan_norm_of(struct exec *x, tensor norm, tensor sums);
void plan_update(struct exec *x, const char *op, struct optim_buffers b, tensor norm, tensor scalars);
void plan_moments(struct exec *x, const char *op, struct optim_buffers b);
void plan_new_weights(struct exec *x, const char *op, struct optim_buffers b);
void plan_lamb_direction(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                         int64_t n_spans, tensor norm, tensor scalars);
void plan_lamb_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                     tensor sums, tensor norm, tensor scalars);
void plan_lans_direction(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                         int64_t n_spans, tensor squares, tensor norm, tensor scalars);
void plan_lans_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                     tensor sums, tensor norm, tensor scalars);
void plan_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                tensor norm, tensor scalars);
void plan_nesterov(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                   int64_t n_spans, tensor norm, tensor scalars);
void plan_unit(struct exec *x, tensor out, tensor in, tensor sums);
void plan_matrix_polynomial(struct exec *x, tensor out, tensor in, tensor square, double a, double b,
                            double c);
void plan_descend(struct exec *x, struct optim_buffers b, const struct optim_span *span, tensor in,
                  tensor norm, tensor scalars);

#endif
