/* Optimizers over flat buffers.  A span is split into chunks of 1,024 elements.  Each chunk's sums have their own
 * place and are added in order, so norms have the same bits for any number of threads and of ranks. */
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/workspace.h"

#include <math.h>

struct optim_call {
    const struct optim_span *spans;
    int64_t n_spans;
    const float *in;
    float *flat, *w, *grad, *m, *v;
    tensor working;
    double *sums;         /* of each chunk: squares; or [2] squares of w and u */
    const double *ratios; /* [n_spans] of LAMB */
    float factor, beta1, beta2, rest1, rest2, inverse_c1, inverse_c2, eps, lr, step;
};

/* A chunk: elements [first, first + n) of the buffers, which belong to one span. */
struct chunk {
    int64_t first, n, span;
    double decay;
};

/* An item is sixteen chunks; `visit` gets each with its number. */
enum { CHUNKS_PER_ITEM = 16 };

static void for_each_chunk(const struct optim_call *c, int64_t item,
                           void (*visit)(const struct optim_call *c, struct chunk k, int64_t number))
{
    int64_t number = item * CHUNKS_PER_ITEM, span_chunk = 0;
    for (int64_t s = 0; s < c->n_spans; s++) {
        int64_t chunks = kernel_blocks(c->spans[s].n, OPTIM_CHUNK);
        while (number < span_chunk + chunks) {
            int64_t offset = (number - span_chunk) * OPTIM_CHUNK;
            int64_t n = kernel_min(OPTIM_CHUNK, c->spans[s].n - offset);
            struct chunk k = {c->spans[s].offset + offset, n, s, c->spans[s].weight_decay};
            visit(c, k, number);
            number++;
            if (number == (item + 1) * CHUNKS_PER_ITEM) {
                return;
            }
        }
        span_chunk += chunks;
    }
}

static void run(struct exec *x, const char *op, const struct optim_call *c, lanes_body *body)
{
    lanes_run(x, op, kernel_blocks(optim_chunks(c->spans, c->n_spans), CHUNKS_PER_ITEM), 0, body, c);
}

/* Norms, sums and scalars. */
static bool accept_doubles(struct exec *x, const char *op, const char *name, tensor t)
{
    if (!failed(x->status) && (t.dtype != DTYPE_F64 || !tensor_is_dense(t))) {
        exec_fail(x, STATUS_USAGE, op, "%s must be dense fp64, but is %s", name, dtype_name(t.dtype));
    }
    return !failed(x->status);
}

static void clear_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    (void)number;
    memset(c->flat + k.first, 0, (size_t)k.n * sizeof *c->flat);
}

static void clear_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    for_each_chunk(context, item, clear_chunk);
}

static void cpu_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans)
{
    if (accept_tensors(x, "clear", ACCEPT_LIST(flat), ACCEPT_LIST(flat))) {
        struct optim_call c = {.spans = spans, .n_spans = n_spans, .flat = flat.data};
        run(x, "clear", &c, clear_item);
    }
}

static double sum_of_squares(const float *v, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        sum += (double)v[i] * (double)v[i];
    }
    return sum;
}

static void squares_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    c->sums[number] = sum_of_squares(c->in + k.first, k.n);
}

static void squares_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    for_each_chunk(context, item, squares_chunk);
}

static void cpu_squares(struct exec *x, tensor sums, tensor in, const struct optim_span *spans,
                        int64_t n_spans)
{
    if (accept_tensors(x, "squares", ACCEPT_LIST(in), ACCEPT_LIST(in)) &&
        accept_doubles(x, "squares", "the sums", sums)) {
        struct optim_call c = {.spans = spans, .n_spans = n_spans, .in = in.data, .sums = sums.data};
        run(x, "squares", &c, squares_item);
    }
}

static void cpu_norm_of(struct exec *x, tensor norm, tensor sums)
{
    if (accept_doubles(x, "norm_of", "the norm", norm) && accept_doubles(x, "norm_of", "the sums", sums)) {
        const double *v = sums.data;
        double sum = 0;
        for (int64_t i = 0; i < tensor_count(sums); i++) {
            sum += v[i];
        }
        *(double *)norm.data = sqrt(sum);
    }
}

static bool is_finite(tensor norm)
{
    const double *v = norm.data;
    bool all = true;
    for (int64_t i = 0; i < tensor_count(norm); i++) {
        all = all && isfinite(v[i]);
    }
    return all;
}

/* False where nothing is to be done: after a failure, or with gradients that are not finite. */
static bool begin_update(struct exec *x, const char *op, struct optim_call *c, struct optim_buffers b,
                         const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars)
{
    tensor matrix = tensor_is_null(b.working) ? b.master : b.working;
    if (!accept_tensors(x, op, ACCEPT_LIST(matrix), ACCEPT_LIST(b.master, b.grad, b.exp_avg, b.exp_avg_sq)) ||
        !accept_doubles(x, op, "the norm", norm) || !accept_doubles(x, op, "the scalars", scalars) ||
        !is_finite(norm)) {
        return false;
    }
    const double *s = scalars.data;
    double scale = s[OPTIM_GRAD_SCALE], g = scale * *(const double *)norm.data, limit = s[OPTIM_MAX_NORM];
    *c = (struct optim_call){
        .spans = spans,
        .n_spans = n_spans,
        .w = b.master.data,
        .grad = b.grad.data,
        .m = b.exp_avg.data,
        .v = b.exp_avg_sq.data,
        .working = b.working,
        .factor = (float)(limit > 0 && g > limit ? scale * (limit / g) : scale),
        .beta1 = (float)s[OPTIM_BETA1],
        .beta2 = (float)s[OPTIM_BETA2],
        .rest1 = (float)(1.0 - s[OPTIM_BETA1]),
        .rest2 = (float)(1.0 - s[OPTIM_BETA2]),
        .inverse_c1 = (float)(1.0 / s[OPTIM_CORRECTION1]),
        .inverse_c2 = (float)(1.0 / s[OPTIM_CORRECTION2]),
        .eps = (float)s[OPTIM_EPS],
        .lr = (float)s[OPTIM_LR],
        .step = (float)(s[OPTIM_LR] * sqrt(s[OPTIM_CORRECTION2]) / s[OPTIM_CORRECTION1]),
    };
    return true;
}

static void store_working(const struct optim_call *c, struct chunk k)
{
    if (!tensor_is_null(c->working)) {
        if (c->working.dtype == DTYPE_BF16) {
            rows_to_bf16((uint16_t *)c->working.data + k.first, c->w + k.first, k.n);
        } else {
            memcpy((float *)c->working.data + k.first, c->w + k.first, (size_t)k.n * sizeof(float));
        }
    }
}

/* The moments and the direction u, which takes the gradient's place; the squares of w and u. */
static void lamb_direction_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    float *restrict m = c->m + k.first, *restrict v = c->v + k.first, *restrict grad = c->grad + k.first;
    const float *restrict w = c->w + k.first;
    float decay = (float)k.decay;
#pragma omp simd
    for (int64_t i = 0; i < k.n; i++) {
        float g = grad[i] * c->factor;
        m[i] = c->beta1 * m[i] + c->rest1 * g;
        v[i] = c->beta2 * v[i] + c->rest2 * g * g;
        grad[i] = m[i] * c->inverse_c1 / (sqrtf(v[i] * c->inverse_c2) + c->eps) + decay * w[i];
    }
    c->sums[2 * number] = sum_of_squares(w, k.n);
    c->sums[2 * number + 1] = sum_of_squares(grad, k.n);
}

static void lamb_direction_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    for_each_chunk(context, item, lamb_direction_chunk);
}

static void cpu_lamb_direction(struct exec *x, tensor sums, struct optim_buffers b,
                               const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars)
{
    struct optim_call c;
    if (accept_doubles(x, "lamb_direction", "the sums", sums) &&
        begin_update(x, "lamb_direction", &c, b, spans, n_spans, norm, scalars)) {
        c.sums = sums.data;
        run(x, "lamb_direction", &c, lamb_direction_item);
    }
}

/* |w| / |u| of every span's whole parameter. */
static void lamb_ratios(double *ratios, const double *sums, const struct optim_span *spans, int64_t n_spans)
{
    for (int64_t s = 0; s < n_spans; s++) {
        double w = 0, u = 0;
        for (int64_t k = spans[s].first_chunk; k < spans[s].first_chunk + spans[s].n_chunks; k++) {
            w += sums[2 * k];
            u += sums[2 * k + 1];
        }
        ratios[s] = spans[s].weight_decay != 0 && w > 0 && u > 0 ? sqrt(w) / sqrt(u) : 1.0;
    }
}

static void lamb_apply_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    (void)number;
    float *restrict w = c->w + k.first;
    const float *restrict u = c->grad + k.first;
    float step = (float)((double)c->lr * c->ratios[k.span]);
#pragma omp simd
    for (int64_t i = 0; i < k.n; i++) {
        w[i] -= step * u[i];
    }
    store_working(c, k);
}

static void lamb_apply_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    for_each_chunk(context, item, lamb_apply_chunk);
}

static void cpu_lamb_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                           int64_t n_spans, tensor sums, tensor norm, tensor scalars)
{
    struct optim_call c;
    if (accept_doubles(x, "lamb_apply", "the sums", sums) &&
        begin_update(x, "lamb_apply", &c, b, spans, n_spans, norm, scalars)) {
        double *ratios = exec_scratch(x, workspace_lamb_apply(n_spans));
        lamb_ratios(ratios, sums.data, spans, n_spans);
        c.ratios = ratios;
        run(x, "lamb_apply", &c, lamb_apply_item);
    }
}

static void adamw_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    (void)number;
    float *restrict m = c->m + k.first, *restrict v = c->v + k.first, *restrict w = c->w + k.first;
    const float *restrict grad = c->grad + k.first;
    float keep = (float)(1.0 - (double)c->lr * k.decay);
#pragma omp simd
    for (int64_t i = 0; i < k.n; i++) {
        float g = grad[i] * c->factor;
        m[i] = c->beta1 * m[i] + c->rest1 * g;
        v[i] = c->beta2 * v[i] + c->rest2 * g * g;
        w[i] = w[i] * keep - c->step * m[i] / (sqrtf(v[i]) + c->eps);
    }
    store_working(c, k);
}

static void adamw_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    for_each_chunk(context, item, adamw_chunk);
}

static void cpu_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                      tensor norm, tensor scalars)
{
    struct optim_call c;
    if (begin_update(x, "adamw", &c, b, spans, n_spans, norm, scalars)) {
        run(x, "adamw", &c, adamw_item);
    }
}

KERNEL_FILL(optim, struct ops)
{
    t->clear = cpu_clear;
    t->squares = cpu_squares;
    t->norm_of = cpu_norm_of;
    t->lamb_direction = cpu_lamb_direction;
    t->lamb_apply = cpu_lamb_apply;
    t->adamw = cpu_adamw;
}
