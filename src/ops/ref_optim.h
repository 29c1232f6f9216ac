/* ref_optim: the optimizer slots of the reference table (ops/ref.c). */
#ifndef KILN_OPS_REF_OPTIM_H
#define KILN_OPS_REF_OPTIM_H

#include "ops/ops.h"

void ref_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans);
void ref_squares(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans);
void ref_zeros(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans);
void ref_norm_of(struct exec *x, tensor norm, tensor sums);
void ref_lamb_direction(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                        int64_t n_spans, tensor norm, tensor scalars);
void ref_lamb_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                    tensor sums, tensor norm, tensor scalars);
void ref_lans_direction(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                        int64_t n_spans, tensor squares, tensor norm, tensor scalars);
void ref_lans_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                    tensor sums, tensor norm, tensor scalars);
void ref_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
               tensor norm, tensor scalars);
void ref_nesterov(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                  int64_t n_spans, tensor norm, tensor scalars);
void ref_unit(struct exec *x, tensor out, tensor in, tensor sums);
void ref_matrix_polynomial(struct exec *x, tensor out, tensor in, tensor square, double a, double b,
                           double c);
void ref_descend(struct exec *x, struct optim_buffers b, const struct optim_span *span, tensor in,
                 tensor norm, tensor scalars);

#endif
