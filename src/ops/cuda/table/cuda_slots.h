/* cuda_slots: the slots of ops.h on a CUDA device that are kernels, by the files that hold them; products
 * are in cuda_linear.h. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_SLOTS_H
#define KILN_OPS_CUDA_TABLE_CUDA_SLOTS_H

#include "ops/ops.h"

/* cuda_element_slots.c: elements, sums of all, and factors in fp8 */
void cuda_fill(struct exec *x, tensor out, double value);
void cuda_cast(struct exec *x, tensor out, tensor in);
void cuda_add(struct exec *x, tensor out, tensor in);
void cuda_sum(struct exec *x, tensor total, tensor in);
void cuda_find_nonfinite(struct exec *x, tensor index, tensor in);
void cuda_quantize(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history, tensor dbias,
                   tensor in, enum dtype format);
void cuda_gelu_backward(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre);
void cuda_dropout(struct exec *x, tensor out, tensor in, tensor row_keys, struct dropout drop);
void cuda_tanh(struct exec *x, tensor out, tensor in);
void cuda_tanh_backward(struct exec *x, tensor din, tensor dout, tensor out);
void cuda_gelu_tanh(struct exec *x, tensor out, tensor pre);
void cuda_gelu_tanh_backward(struct exec *x, tensor dpre, tensor dout, tensor pre);
void cuda_residual_add(struct exec *x, tensor out, tensor residual, tensor branch);

/* cuda_norm_slots.c: LayerNorms, embeddings, and rows of tables */
void cuda_layernorm(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma,
                    tensor beta, double eps);
void cuda_layernorm_backward(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout, tensor in,
                             tensor mean, tensor rstd, tensor gamma);
void cuda_bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd,
                                     tensor in, tensor bias, tensor residual, tensor gamma, tensor beta,
                                     double eps, tensor row_keys, struct dropout drop);
void cuda_bias_dropout_add_layernorm_backward(struct exec *x, tensor dresidual, tensor din, tensor dbias,
                                              tensor dgamma, tensor dbeta, tensor dout, tensor sum,
                                              tensor mean, tensor rstd, tensor gamma, tensor row_keys,
                                              struct dropout drop, bool accumulate);
void cuda_embed(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids, tensor types,
                tensor positions, tensor word, tensor position, tensor type, tensor gamma, tensor beta,
                double eps, tensor row_keys, struct dropout drop);
void cuda_embed_backward(struct exec *x, tensor dsum, tensor dword, tensor dposition, tensor dtype,
                         tensor dgamma, tensor dbeta, tensor dout, tensor sum, tensor mean, tensor rstd,
                         tensor ids, tensor types, tensor positions, tensor gamma, tensor row_keys,
                         struct dropout drop);
void cuda_gather_rows(struct exec *x, tensor out, tensor in, tensor rows);
void cuda_gather_slice(struct exec *x, tensor out, tensor in, tensor rows, int64_t first, int64_t n_rows);
void cuda_scatter_add_rows(struct exec *x, tensor din, tensor dout, tensor rows);
void cuda_scatter_add_slice(struct exec *x, tensor din, tensor dout, tensor rows, int64_t first,
                            int64_t n_rows);

/* cuda_attention_slots.c: attention */
void cuda_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a);
void cuda_attention_backward(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias, tensor dout,
                             tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a);
void cuda_append_rows(struct exec *x, tensor keys, tensor values, tensor k, tensor v, tensor slots);
void cuda_attention_cached(struct exec *x, tensor out, tensor q, tensor keys, tensor values,
                           struct attention a);

/* cuda_loss_slots.c: losses */
void cuda_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                        tensor labels, int64_t n_classes, tensor scale);
void cuda_slice_maxima(struct exec *x, tensor maxima, tensor logits, int64_t first, int64_t n_classes);
void cuda_slice_sums(struct exec *x, tensor sums, tensor logits, tensor maxima, tensor labels, int64_t first,
                     int64_t n_classes);
void cuda_slice_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                              tensor maxima, tensor sums, tensor labels, int64_t first, int64_t n_classes,
                              tensor scale);
void cuda_span_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                             tensor cu_seqlens, tensor labels, tensor scale);
void cuda_pointwise(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                    tensor targets, enum pointwise_loss kind, tensor scale);

/* cuda_optim_slots.c: sums over gradients, and updates */
void cuda_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans);
void cuda_squares(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans);
void cuda_zeros(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans);
void cuda_norm_of(struct exec *x, tensor norm, tensor sums);
void cuda_lamb_direction(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                         int64_t n_spans, tensor norm, tensor scalars);
void cuda_lamb_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                     tensor sums, tensor norm, tensor scalars);
void cuda_lans_direction(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                         int64_t n_spans, tensor squares, tensor norm, tensor scalars);
void cuda_lans_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                     tensor sums, tensor norm, tensor scalars);
void cuda_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                tensor norm, tensor scalars);
void cuda_nesterov(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                   int64_t n_spans, tensor norm, tensor scalars);
void cuda_unit(struct exec *x, tensor out, tensor in, tensor sums);
void cuda_matrix_polynomial(struct exec *x, tensor out, tensor in, tensor square, double a, double b,
                            double c);
void cuda_descend(struct exec *x, struct optim_buffers b, const struct optim_span *span, tensor in,
                  tensor norm, tensor scalars);

#endif
