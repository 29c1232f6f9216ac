/* cuda_optim_slots: sums over gradients, and updates of the weights, on a CUDA device. */
#include "ops/cuda/table/cuda_slots.h"

#include "ops/accept.h"
#include "ops/cuda/table/cuda_context.h"
#include "ops/cuda/table/cuda_slot.h"
#include "ops/workspace.h"

_Static_assert((int)LAUNCH_GRAD_SCALE == (int)OPTIM_GRAD_SCALE &&
                   (int)LAUNCH_RATIO_OF_ALL == (int)OPTIM_RATIO_OF_ALL &&
                   (int)LAUNCH_N_SCALARS == (int)OPTIM_N_SCALARS &&
                   (int)LAUNCH_CORRECTION2 == (int)OPTIM_CORRECTION2,
               "launch_scalar is optim_scalar");

void cuda_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans)
{
    if (accept_tensors(x, "clear", ACCEPT_LIST(flat), NULL, 0)) {
        const struct cuda_spans *s = cuda_spans_of(x, "clear", spans, n_spans);
        if (s != NULL) {
            struct launch l = cuda_slot_launch(x, 0);
            cuda_launch_clear(&l, flat.data, &s->table);
            cuda_slot_finish(x, "clear");
        }
    }
}

static void measure_chunks(struct exec *x, const char *op, tensor sums, tensor in,
                           const struct optim_span *spans, int64_t n_spans,
                           void (*launch_op)(const struct launch *l, double *sums, const float *in,
                                             const struct launch_spans *spans))
{
    if (accept_tensors(x, op, ACCEPT_LIST(in), NULL, 0)) {
        const struct cuda_spans *s = cuda_spans_of(x, op, spans, n_spans);
        if (s != NULL) {
            struct launch l = cuda_slot_launch(x, 0);
            launch_op(&l, sums.data, in.data, &s->table);
            cuda_slot_finish(x, op);
        }
    }
}

void cuda_squares(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans)
{
    measure_chunks(x, "squares", sums, in, spans, n_spans, cuda_launch_squares);
}

void cuda_zeros(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans)
{
    measure_chunks(x, "zeros", sums, in, spans, n_spans, cuda_launch_zeros);
}

void cuda_norm_of(struct exec *x, tensor norm, tensor sums)
{
    if (!failed(x->status)) {
        int64_t n = tensor_count(sums);
        struct launch l = cuda_slot_launch(x, workspace_norm_of(n));
        cuda_launch_norm_of(&l, norm.data, sums.data, n, workspace_runs_of_sums(n));
        cuda_slot_finish(x, "norm_of");
    }
}

/* Fills what every optimizer needs; false after a failure. */
static bool prepare_optim(struct exec *x, const char *op, struct launch *l, struct launch_optim *o,
                          struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                          tensor sums, tensor norm, tensor scalars)
{
    if (!accept_tensors(x, op, ACCEPT_LIST(b.master, b.grad, b.exp_avg, b.exp_avg_sq), NULL, 0)) {
        return false;
    }
    const struct cuda_spans *s = cuda_spans_of(x, op, spans, n_spans);
    if (s == NULL) {
        return false;
    }
    *l = cuda_slot_launch(x, 0);
    *o = (struct launch_optim){.master = b.master.data,
                               .grad = b.grad.data,
                               .exp_avg = b.exp_avg.data,
                               .exp_avg_sq = b.exp_avg_sq.data,
                               .working = b.working.data,
                               .working_type = cuda_slot_type(b.working),
                               .spans = s->table,
                               .norm = norm.data,
                               .n_norm = tensor_count(norm),
                               .scalars = scalars.data,
                               .sums = sums.data};
    return true;
}

void cuda_lamb_direction(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                         int64_t n_spans, tensor norm, tensor scalars)
{
    struct launch l;
    struct launch_optim o;
    if (prepare_optim(x, "lamb_direction", &l, &o, b, spans, n_spans, sums, norm, scalars)) {
        cuda_launch_lamb_direction(&l, &o);
        cuda_slot_finish(x, "lamb_direction");
    }
}

/* The second half of an update that needs `workspace` bytes of ratios. */
static void apply(struct exec *x, const char *op, size_t workspace,
                  void (*launch)(const struct launch *, const struct launch_optim *), struct optim_buffers b,
                  const struct optim_span *spans, int64_t n_spans, tensor sums, tensor norm, tensor scalars)
{
    struct launch l;
    struct launch_optim o;
    if (prepare_optim(x, op, &l, &o, b, spans, n_spans, sums, norm, scalars)) {
        o.ratios = exec_scratch(x, workspace);
        launch(&l, &o);
        cuda_slot_finish(x, op);
    }
}

void cuda_lamb_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                     tensor sums, tensor norm, tensor scalars)
{
    apply(x, "lamb_apply", workspace_lamb_apply(n_spans), cuda_launch_lamb_apply, b, spans, n_spans, sums,
          norm, scalars);
}

void cuda_lans_direction(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                         int64_t n_spans, tensor squares, tensor norm, tensor scalars)
{
    struct launch l;
    struct launch_optim o;
    if (prepare_optim(x, "lans_direction", &l, &o, b, spans, n_spans, sums, norm, scalars)) {
        o.squares = squares.data;
        o.factors = exec_scratch(x, workspace_lans_direction(n_spans));
        cuda_launch_lans_direction(&l, &o);
        cuda_slot_finish(x, "lans_direction");
    }
}

void cuda_lans_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                     tensor sums, tensor norm, tensor scalars)
{
    apply(x, "lans_apply", workspace_lans_apply(n_spans), cuda_launch_lans_apply, b, spans, n_spans, sums,
          norm, scalars);
}

void cuda_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                tensor norm, tensor scalars)
{
    struct launch l;
    struct launch_optim o;
    if (prepare_optim(x, "adamw", &l, &o, b, spans, n_spans, NULL_TENSOR, norm, scalars)) {
        cuda_launch_adamw(&l, &o);
        cuda_slot_finish(x, "adamw");
    }
}

void cuda_nesterov(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                   int64_t n_spans, tensor norm, tensor scalars)
{
    struct launch l;
    struct launch_optim o;
    if (prepare_optim(x, "nesterov", &l, &o, b, spans, n_spans, sums, norm, scalars)) {
        cuda_launch_nesterov(&l, &o);
        cuda_slot_finish(x, "nesterov");
    }
}

void cuda_unit(struct exec *x, tensor out, tensor in, tensor sums)
{
    if (accept_tensors(x, "unit", ACCEPT_LIST(out), ACCEPT_LIST(in))) {
        int64_t n = tensor_count(sums);
        struct launch l = cuda_slot_launch(x, workspace_unit(n));
        double *norm = (double *)(void *)l.scratch;
        l.scratch = (float *)(void *)(norm + 1);
        cuda_launch_norm_of(&l, norm, sums.data, n, workspace_runs_of_sums(n));
        cuda_launch_unit(&l, out.data, cuda_slot_type(out), in.data, norm, tensor_count(in));
        cuda_slot_finish(x, "unit");
    }
}

void cuda_matrix_polynomial(struct exec *x, tensor out, tensor in, tensor square, double a, double b,
                            double c)
{
    if (accept_tensors(x, "matrix_polynomial", ACCEPT_LIST(out, in, square), NULL, 0)) {
        struct launch l = cuda_slot_launch(x, 0);
        cuda_launch_matrix_polynomial(&l, out.data, in.data, square.data, cuda_slot_type(out),
                                      tensor_rows(out), a, b, c);
        cuda_slot_finish(x, "matrix_polynomial");
    }
}

void cuda_descend(struct exec *x, struct optim_buffers b, const struct optim_span *span, tensor in,
                  tensor norm, tensor scalars)
{
    if (accept_tensors(x, "descend", ACCEPT_LIST(in), ACCEPT_LIST(b.master))) {
        struct launch l = cuda_slot_launch(x, 0);
        size_t working_bytes = tensor_is_null(b.working) ? 0 : dtype_bytes(b.working.dtype);
        struct launch_optim o = {.master = (float *)b.master.data + span->offset,
                                 .working = working_bytes == 0 ? NULL
                                                               : (char *)b.working.data +
                                                                     (size_t)span->offset * working_bytes,
                                 .working_type = cuda_slot_type(b.working),
                                 .norm = norm.data,
                                 .n_norm = tensor_count(norm),
                                 .scalars = scalars.data};
        cuda_launch_descend(&l, &o, in.data, cuda_slot_type(in), span->n, span->rate, span->weight_decay);
        cuda_slot_finish(x, "descend");
    }
}
