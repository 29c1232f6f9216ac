#include "ops/ref_optim.h"

#include <math.h>

void ref_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans)
{
    for (int64_t s = 0; !failed(x->status) && s < n_spans; s++) {
        for (int64_t i = spans[s].offset; i < spans[s].offset + spans[s].n; i++) {
            tensor_set(flat, i, 0);
        }
    }
}

void ref_global_norm(struct exec *x, tensor norm, tensor in, const struct optim_span *spans, int64_t n_spans)
{
    if (failed(x->status)) {
        return;
    }
    double sum = 0;
    for (int64_t s = 0; s < n_spans; s++) {
        for (int64_t i = spans[s].offset; i < spans[s].offset + spans[s].n; i++) {
            sum += tensor_get(in, i) * tensor_get(in, i);
        }
    }
    tensor_set(norm, 0, sqrt(sum));
}

/* What gradients are multiplied by: the scale, and less if their norm would be above the limit. */
static double gradient_factor(tensor norm, tensor scalars)
{
    double limit = tensor_get(scalars, OPTIM_MAX_NORM), scale = tensor_get(scalars, OPTIM_GRAD_SCALE);
    double g = scale * tensor_get(norm, 0);
    return limit > 0 && g > limit ? scale * (limit / g) : scale;
}

static bool is_finite(tensor norm)
{
    bool all = true;
    for (int64_t i = 0; i < tensor_count(norm); i++) {
        all = all && isfinite(tensor_get(norm, i));
    }
    return all;
}

/* m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2. */
static void update_moments(struct optim_buffers b, tensor scalars, int64_t i, double factor)
{
    double beta1 = tensor_get(scalars, OPTIM_BETA1), beta2 = tensor_get(scalars, OPTIM_BETA2);
    double g = tensor_get(b.grad, i) * factor;
    tensor_set(b.exp_avg, i, beta1 * tensor_get(b.exp_avg, i) + (1 - beta1) * g);
    tensor_set(b.exp_avg_sq, i, beta2 * tensor_get(b.exp_avg_sq, i) + (1 - beta2) * g * g);
}

static void set_weight(struct optim_buffers b, int64_t i, double w)
{
    tensor_set(b.master, i, w);
    if (!tensor_is_null(b.working)) {
        tensor_set(b.working, i, tensor_get(b.master, i));
    }
}

void ref_lamb(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
              tensor norm, tensor scalars)
{
    if (failed(x->status) || !is_finite(norm)) {
        return;
    }
    double factor = gradient_factor(norm, scalars), lr = tensor_get(scalars, OPTIM_LR);
    double c1 = tensor_get(scalars, OPTIM_CORRECTION1), c2 = tensor_get(scalars, OPTIM_CORRECTION2);
    for (const struct optim_span *s = spans; s < spans + n_spans; s++) {
        double w_squares = 0, u_squares = 0;
        for (int64_t i = s->offset; i < s->offset + s->n; i++) {
            update_moments(b, scalars, i, factor);
            double w = tensor_get(b.master, i);
            double u = tensor_get(b.exp_avg, i) / c1 /
                           (sqrt(tensor_get(b.exp_avg_sq, i) / c2) + tensor_get(scalars, OPTIM_EPS)) +
                       s->weight_decay * w;
            tensor_set(b.grad, i, u);
            w_squares += w * w;
            u_squares += u * u;
        }
        bool adapt = s->weight_decay != 0 && w_squares > 0 && u_squares > 0;
        double ratio = adapt ? sqrt(w_squares) / sqrt(u_squares) : 1.0;
        for (int64_t i = s->offset; i < s->offset + s->n; i++) {
            set_weight(b, i, tensor_get(b.master, i) - lr * ratio * tensor_get(b.grad, i));
        }
    }
}

void ref_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
               tensor norm, tensor scalars)
{
    if (failed(x->status) || !is_finite(norm)) {
        return;
    }
    double factor = gradient_factor(norm, scalars), lr = tensor_get(scalars, OPTIM_LR);
    double step = lr * sqrt(tensor_get(scalars, OPTIM_CORRECTION2)) / tensor_get(scalars, OPTIM_CORRECTION1);
    for (const struct optim_span *s = spans; s < spans + n_spans; s++) {
        for (int64_t i = s->offset; i < s->offset + s->n; i++) {
            update_moments(b, scalars, i, factor);
            double direction = tensor_get(b.exp_avg, i) /
                               (sqrt(tensor_get(b.exp_avg_sq, i)) + tensor_get(scalars, OPTIM_EPS));
            set_weight(b, i, tensor_get(b.master, i) * (1 - lr * s->weight_decay) - step * direction);
        }
    }
}
