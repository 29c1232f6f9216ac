/* ref_optim: the optimizer slots of the reference table (ops/ref.c). */
#ifndef KILN_OPS_REF_OPTIM_H
#define KILN_OPS_REF_OPTIM_H

#include "ops/ops.h"

void ref_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans);
void ref_global_norm(struct exec *x, tensor norm, tensor in, const struct optim_span *spans, int64_t n_spans);
void ref_lamb(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
              tensor norm, tensor scalars);
void ref_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
               tensor norm, tensor scalars);

#endif
