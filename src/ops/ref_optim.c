#include "ops/ref_slots.h"

#include <math.h>

void ref_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans)
{
    for (int64_t s = 0; !failed(x->status) && s < n_spans; s++) {
        for (int64_t i = spans[s].offset; i < spans[s].offset + spans[s].n; i++) {
            tensor_set(flat, i, 0);
        }
    }
}

/* The end of the chunk of a span that begins here. */
static int64_t end_of_chunk(const struct optim_span *s, int64_t begin)
{
    int64_t end = begin + OPTIM_CHUNK;
    return end < s->offset + s->n ? end : s->offset + s->n;
}

static double sum_of_squares(tensor in, int64_t begin, int64_t end)
{
    double sum = 0;
    for (int64_t i = begin; i < end; i++) {
        sum += tensor_get(in, i) * tensor_get(in, i);
    }
    return sum;
}

static double count_of_zeros(tensor in, int64_t begin, int64_t end)
{
    double n = 0;
    for (int64_t i = begin; i < end; i++) {
        n += tensor_get(in, i) == 0;
    }
    return n;
}

/* A number of each chunk. */
static void measure_chunks(struct exec *x, tensor sums, tensor in, const struct optim_span *spans,
                           int64_t n_spans, double (*measure)(tensor in, int64_t begin, int64_t end))
{
    int64_t chunk = 0;
    for (const struct optim_span *s = spans; !failed(x->status) && s < spans + n_spans; s++) {
        for (int64_t i = s->offset; i < s->offset + s->n; i += OPTIM_CHUNK) {
            tensor_set(sums, chunk++, measure(in, i, end_of_chunk(s, i)));
        }
    }
}

void ref_squares(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans)
{
    measure_chunks(x, sums, in, spans, n_spans, sum_of_squares);
}

void ref_zeros(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans)
{
    measure_chunks(x, sums, in, spans, n_spans, count_of_zeros);
}

void ref_norm_of(struct exec *x, tensor norm, tensor sums)
{
    double sum = 0;
    for (int64_t i = 0; i < tensor_count(sums); i++) {
        sum += tensor_get(sums, i);
    }
    if (!failed(x->status)) {
        tensor_set(norm, 0, sqrt(sum));
    }
}

/* The factor of gradients: the scale, and less if their norm would be above the limit. */
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
static void update_moments(struct optim_buffers b, tensor scalars, int64_t i, double g)
{
    double beta1 = tensor_get(scalars, OPTIM_BETA1), beta2 = tensor_get(scalars, OPTIM_BETA2);
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

void ref_lamb_direction(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                        int64_t n_spans, tensor norm, tensor scalars)
{
    if (failed(x->status) || !is_finite(norm)) {
        return;
    }
    double factor = gradient_factor(norm, scalars), eps = tensor_get(scalars, OPTIM_EPS);
    double c1 = tensor_get(scalars, OPTIM_CORRECTION1), c2 = tensor_get(scalars, OPTIM_CORRECTION2);
    int64_t chunk = 0;
    for (const struct optim_span *s = spans; s < spans + n_spans; s++) {
        for (int64_t i = s->offset; i < s->offset + s->n; i++) {
            update_moments(b, scalars, i, tensor_get(b.grad, i) * factor);
            tensor_set(b.grad, i,
                       tensor_get(b.exp_avg, i) / c1 / (sqrt(tensor_get(b.exp_avg_sq, i) / c2) + eps) +
                           s->weight_decay * tensor_get(b.master, i));
        }
        for (int64_t i = s->offset; i < s->offset + s->n; i += OPTIM_CHUNK) {
            tensor_set(sums, 2 * chunk, sum_of_squares(b.master, i, end_of_chunk(s, i)));
            tensor_set(sums, 2 * chunk++ + 1, sum_of_squares(b.grad, i, end_of_chunk(s, i)));
        }
    }
}

/* A column of sums [all chunks, cols], of the full parameter. */
static double sum_of_parameter(const struct optim_span *s, tensor sums, int64_t cols, int64_t col)
{
    double sum = 0;
    for (int64_t k = s->first_chunk; k < s->first_chunk + s->n_chunks; k++) {
        sum += tensor_get(sums, cols * k + col);
    }
    return sum;
}

/* |w| / |u| of the full parameter: the squares of w are the first column. */
static double trust_ratio(const struct optim_span *s, tensor sums, int64_t col, tensor scalars)
{
    double w = sum_of_parameter(s, sums, tensor_cols(sums), 0);
    double u = sum_of_parameter(s, sums, tensor_cols(sums), col);
    bool has_one = s->weight_decay != 0 || tensor_get(scalars, OPTIM_RATIO_OF_ALL) != 0;
    if (!has_one || w == 0 || u == 0) {
        return 1;
    }
    return fmax(tensor_get(scalars, OPTIM_MIN_RATIO),
                fmin(sqrt(w) / sqrt(u), tensor_get(scalars, OPTIM_MAX_RATIO)));
}

void ref_lamb_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                    tensor sums, tensor norm, tensor scalars)
{
    if (failed(x->status) || !is_finite(norm)) {
        return;
    }
    for (const struct optim_span *s = spans; s < spans + n_spans; s++) {
        double lr = tensor_get(scalars, OPTIM_LR) * s->rate, ratio = trust_ratio(s, sums, 1, scalars);
        for (int64_t i = s->offset; i < s->offset + s->n; i++) {
            set_weight(b, i, tensor_get(b.master, i) - lr * ratio * tensor_get(b.grad, i));
        }
    }
}

/* Directions of element i, by its moments and its normalised gradient. */
struct lans_directions {
    double r, c;
};

static struct lans_directions lans_directions(struct optim_buffers b, tensor scalars, int64_t i, double decay)
{
    double c1 = tensor_get(scalars, OPTIM_CORRECTION1), c2 = tensor_get(scalars, OPTIM_CORRECTION2);
    double d = sqrt(tensor_get(b.exp_avg_sq, i) / c2) + tensor_get(scalars, OPTIM_EPS);
    double pull = decay * tensor_get(b.master, i);
    return (struct lans_directions){tensor_get(b.exp_avg, i) / c1 / d + pull,
                                    tensor_get(b.grad, i) / d + pull};
}

/* The factor of a parameter's gradients that makes their norm 1 or below. */
static double normalising_factor(const struct optim_span *s, tensor squares, tensor norm, tensor scalars)
{
    double factor = gradient_factor(norm, scalars), n = factor * sqrt(sum_of_parameter(s, squares, 1, 0));
    return n > 0 ? factor / (n + tensor_get(scalars, OPTIM_EPS)) : factor;
}

void ref_lans_direction(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                        int64_t n_spans, tensor squares, tensor norm, tensor scalars)
{
    if (failed(x->status) || !is_finite(norm)) {
        return;
    }
    int64_t chunk = 0;
    for (const struct optim_span *s = spans; s < spans + n_spans; s++) {
        double factor = normalising_factor(s, squares, norm, scalars);
        for (int64_t i = s->offset; i < s->offset + s->n; i += OPTIM_CHUNK, chunk++) {
            double r = 0, c = 0;
            for (int64_t j = i; j < end_of_chunk(s, i); j++) {
                update_moments(b, scalars, j, tensor_get(b.grad, j) * factor);
                tensor_set(b.grad, j, tensor_get(b.grad, j) * factor);
                struct lans_directions d = lans_directions(b, scalars, j, s->weight_decay);
                r += d.r * d.r;
                c += d.c * d.c;
            }
            tensor_set(sums, 3 * chunk, sum_of_squares(b.master, i, end_of_chunk(s, i)));
            tensor_set(sums, 3 * chunk + 1, r);
            tensor_set(sums, 3 * chunk + 2, c);
        }
    }
}

void ref_lans_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                    tensor sums, tensor norm, tensor scalars)
{
    if (failed(x->status) || !is_finite(norm)) {
        return;
    }
    double beta1 = tensor_get(scalars, OPTIM_BETA1);
    for (const struct optim_span *s = spans; s < spans + n_spans; s++) {
        double lr = tensor_get(scalars, OPTIM_LR) * s->rate;
        double step_r = lr * beta1 * trust_ratio(s, sums, 1, scalars);
        double step_c = lr * (1 - beta1) * trust_ratio(s, sums, 2, scalars);
        for (int64_t i = s->offset; i < s->offset + s->n; i++) {
            struct lans_directions d = lans_directions(b, scalars, i, s->weight_decay);
            set_weight(b, i, tensor_get(b.master, i) - (step_r * d.r + step_c * d.c));
        }
    }
}

void ref_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
               tensor norm, tensor scalars)
{
    if (failed(x->status) || !is_finite(norm)) {
        return;
    }
    double factor = gradient_factor(norm, scalars), coupled = tensor_get(scalars, OPTIM_COUPLED);
    double correction = sqrt(tensor_get(scalars, OPTIM_CORRECTION2)) / tensor_get(scalars, OPTIM_CORRECTION1);
    for (const struct optim_span *s = spans; s < spans + n_spans; s++) {
        double lr = tensor_get(scalars, OPTIM_LR) * s->rate, step = lr * correction;
        for (int64_t i = s->offset; i < s->offset + s->n; i++) {
            double w = tensor_get(b.master, i);
            update_moments(b, scalars, i, tensor_get(b.grad, i) * factor + coupled * s->weight_decay * w);
            double direction = tensor_get(b.exp_avg, i) /
                               (sqrt(tensor_get(b.exp_avg_sq, i)) + tensor_get(scalars, OPTIM_EPS));
            set_weight(b, i, w * (1 - (1 - coupled) * lr * s->weight_decay) - step * direction);
        }
    }
}

void ref_nesterov(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                  int64_t n_spans, tensor norm, tensor scalars)
{
    if (failed(x->status) || !is_finite(norm)) {
        return;
    }
    double factor = gradient_factor(norm, scalars), momentum = tensor_get(scalars, OPTIM_MOMENTUM);
    int64_t chunk = 0;
    for (const struct optim_span *s = spans; s < spans + n_spans; s++) {
        for (int64_t i = s->offset; i < s->offset + s->n; i++) {
            double g = tensor_get(b.grad, i) * factor;
            tensor_set(b.exp_avg, i, momentum * tensor_get(b.exp_avg, i) + (1 - momentum) * g);
            tensor_set(b.grad, i, momentum * tensor_get(b.exp_avg, i) + (1 - momentum) * g);
        }
        for (int64_t i = s->offset; i < s->offset + s->n; i += OPTIM_CHUNK) {
            tensor_set(sums, chunk++, sum_of_squares(b.grad, i, end_of_chunk(s, i)));
        }
    }
}

void ref_unit(struct exec *x, tensor out, tensor in, tensor sums)
{
    double sum = 0;
    for (int64_t i = 0; i < tensor_count(sums); i++) {
        sum += tensor_get(sums, i);
    }
    for (int64_t i = 0; !failed(x->status) && i < tensor_count(in); i++) {
        tensor_set(out, i, sum > 0 ? tensor_get(in, i) / sqrt(sum) : 0);
    }
}

void ref_matrix_polynomial(struct exec *x, tensor out, tensor in, tensor square, double a, double b, double c)
{
    int64_t n = tensor_cols(in);
    for (int64_t i = 0; !failed(x->status) && i < n * n; i++) {
        double identity = i % n == i / n;
        tensor_set(out, i, a * identity + b * tensor_get(in, i) + c * tensor_get(square, i));
    }
}

void ref_descend(struct exec *x, struct optim_buffers b, const struct optim_span *span, tensor in,
                 tensor norm, tensor scalars)
{
    if (failed(x->status) || !is_finite(norm)) {
        return;
    }
    double lr = tensor_get(scalars, OPTIM_LR) * span->rate, keep = 1 - lr * span->weight_decay;
    for (int64_t i = 0; i < span->n; i++) {
        double w = tensor_get(b.master, span->offset + i);
        set_weight(b, span->offset + i, w * keep - lr * tensor_get(in, i));
    }
}
