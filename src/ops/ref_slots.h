/* ref_slots: the slots of the reference table (ops/ref.c), by the files that hold them; those of
 * optimizers are in ref_optim.h. */
#ifndef KILN_OPS_REF_SLOTS_H
#define KILN_OPS_REF_SLOTS_H

#include "ops/ops.h"

/* ref_elements.c: elements, factors in fp8, and products */
void ref_fill(struct exec *x, tensor out, double value);
void ref_cast(struct exec *x, tensor out, tensor in);
void ref_quantize(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history, tensor dbias,
                  tensor in, enum dtype format);
void ref_add(struct exec *x, tensor out, tensor in);
void ref_sum(struct exec *x, tensor total, tensor in);
void ref_find_nonfinite(struct exec *x, tensor index, tensor in);
void ref_linear(struct exec *x, tensor out, tensor in, tensor w, tensor bias);
void ref_linear_gelu(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias);
void ref_linear_backward_input(struct exec *x, tensor din, tensor dout, tensor w, bool accumulate);
void ref_linear_backward_weight(struct exec *x, tensor dw, tensor dbias, tensor dout, tensor in,
                                bool accumulate);
void ref_gelu_backward(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre);
void ref_tanh(struct exec *x, tensor out, tensor in);
void ref_tanh_backward(struct exec *x, tensor din, tensor dout, tensor out);
void ref_gelu_tanh(struct exec *x, tensor out, tensor pre);
void ref_gelu_tanh_backward(struct exec *x, tensor dpre, tensor dout, tensor pre);
void ref_residual_add(struct exec *x, tensor out, tensor residual, tensor branch);
void ref_dropout(struct exec *x, tensor out, tensor in, tensor row_keys, struct dropout drop);

/* ref_rows.c: LayerNorms, embeddings, and rows of tables */
void ref_layernorm(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma, tensor beta,
                   double eps);
void ref_layernorm_backward(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout, tensor in,
                            tensor mean, tensor rstd, tensor gamma);
void ref_embed(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids, tensor types,
               tensor positions, tensor word, tensor position, tensor type, tensor gamma, tensor beta,
               double eps, tensor row_keys, struct dropout drop);
void ref_embed_backward(struct exec *x, tensor dsum, tensor dword, tensor dposition, tensor dtype,
                        tensor dgamma, tensor dbeta, tensor dout, tensor sum, tensor mean, tensor rstd,
                        tensor ids, tensor types, tensor positions, tensor gamma, tensor row_keys,
                        struct dropout drop);
void ref_bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd,
                                    tensor in, tensor bias, tensor residual, tensor gamma, tensor beta,
                                    double eps, tensor row_keys, struct dropout drop);
void ref_bias_dropout_add_layernorm_backward(struct exec *x, tensor dresidual, tensor din, tensor dbias,
                                             tensor dgamma, tensor dbeta, tensor dout, tensor sum,
                                             tensor mean, tensor rstd, tensor gamma, tensor row_keys,
                                             struct dropout drop, bool accumulate);
void ref_gather_slice(struct exec *x, tensor out, tensor in, tensor rows, int64_t first, int64_t n_rows);
void ref_gather_rows(struct exec *x, tensor out, tensor in, tensor rows);
void ref_scatter_add_slice(struct exec *x, tensor din, tensor dout, tensor rows, int64_t first,
                           int64_t n_rows);
void ref_scatter_add_rows(struct exec *x, tensor din, tensor dout, tensor rows);

/* ref_attention.c: attention */
void ref_attention(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a);
void ref_attention_backward(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias, tensor dout,
                            tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a);
void ref_append_rows(struct exec *x, tensor keys, tensor values, tensor k, tensor v, tensor slots);
void ref_attention_cached(struct exec *x, tensor out, tensor q, tensor keys, tensor values,
                          struct attention a);

/* ref_losses.c: losses */
void ref_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                       tensor labels, int64_t n_classes, tensor scale);
void ref_slice_maxima(struct exec *x, tensor maxima, tensor logits, int64_t first, int64_t n_classes);
void ref_slice_sums(struct exec *x, tensor sums, tensor logits, tensor maxima, tensor labels, int64_t first,
                    int64_t n_classes);
void ref_slice_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                             tensor maxima, tensor sums, tensor labels, int64_t first, int64_t n_classes,
                             tensor scale);
void ref_span_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                            tensor cu_seqlens, tensor labels, tensor scale);
void ref_pointwise(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits, tensor targets,
                   enum pointwise_loss kind, tensor scale);

#endif
