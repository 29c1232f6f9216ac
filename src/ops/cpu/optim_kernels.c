/* Optimizers over flat buffers.  A span is split into chunks of 1,024 elements.  Each chunk's sums have their
 * own place in the workspace and are added in order, so norms have the same bits for any number of
 * threads. */
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
    double *sums; /* [chunks][2] squares of w and u; lamb then puts a span's ratio in its first chunk */
    float factor, beta1, beta2, rest1, rest2, inverse_c1, inverse_c2, eps, lr, step;
};

/* A chunk: elements [first, first + n) of the buffers, which belong to one span whose chunks begin at
 * span_chunk. */
struct chunk {
    int64_t first, n, span_chunk;
    double decay;
};

static int64_t count_chunks(const struct optim_span *spans, int64_t n_spans)
{
    int64_t chunks = 0;
    for (int64_t s = 0; s < n_spans; s++) {
        chunks += kernel_blocks(spans[s].n, WORKSPACE_SPAN_CHUNK);
    }
    return chunks;
}

/* An item is sixteen chunks; `visit` gets each with its number. */
enum { CHUNKS_PER_ITEM = 16 };

static void for_each_chunk(const struct optim_call *c, int64_t item,
                           void (*visit)(const struct optim_call *c, struct chunk k, int64_t number))
{
    int64_t number = item * CHUNKS_PER_ITEM, span_chunk = 0;
    for (int64_t s = 0; s < c->n_spans; s++) {
        int64_t chunks = kernel_blocks(c->spans[s].n, WORKSPACE_SPAN_CHUNK);
        while (number < span_chunk + chunks) {
            int64_t offset = (number - span_chunk) * WORKSPACE_SPAN_CHUNK;
            int64_t n = kernel_min(WORKSPACE_SPAN_CHUNK, c->spans[s].n - offset);
            struct chunk k = {c->spans[s].offset + offset, n, span_chunk, c->spans[s].weight_decay};
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
    lanes_run(x, op, kernel_blocks(count_chunks(c->spans, c->n_spans), CHUNKS_PER_ITEM), 0, body, c);
}

static bool accept_norm(struct exec *x, const char *op, tensor norm)
{
    if (norm.dtype != DTYPE_F64) {
        exec_fail(x, STATUS_USAGE, op, "the norm must be fp64, but is %s", dtype_name(norm.dtype));
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

static double squares(const float *v, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        sum += (double)v[i] * (double)v[i];
    }
    return sum;
}

static void norm_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    c->sums[number] = squares(c->in + k.first, k.n);
}

static void norm_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    for_each_chunk(context, item, norm_chunk);
}

static void cpu_global_norm(struct exec *x, tensor norm, tensor in, const struct optim_span *spans,
                            int64_t n_spans)
{
    if (!accept_tensors(x, "global_norm", ACCEPT_LIST(in), ACCEPT_LIST(in)) ||
        !accept_norm(x, "global_norm", norm)) {
        return;
    }
    struct optim_call c = {.spans = spans, .n_spans = n_spans, .in = in.data};
    c.sums = exec_scratch(x, workspace_optim(spans, n_spans));
    run(x, "global_norm", &c, norm_item);
    double sum = 0;
    for (int64_t i = 0; i < count_chunks(spans, n_spans); i++) {
        sum += c.sums[i];
    }
    *(double *)norm.data = sqrt(sum);
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
        !accept_norm(x, op, norm) || !accept_norm(x, op, scalars) || !is_finite(norm)) {
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
        .sums = exec_scratch(x, workspace_optim(spans, n_spans)),
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
    c->sums[2 * number] = squares(w, k.n);
    c->sums[2 * number + 1] = squares(grad, k.n);
}

static void lamb_direction_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    for_each_chunk(context, item, lamb_direction_chunk);
}

/* |w| / |u| of every span, into the place of its first chunk. */
static void lamb_ratios(const struct optim_call *c)
{
    int64_t chunk = 0;
    for (int64_t s = 0; s < c->n_spans; s++) {
        int64_t first = chunk;
        double w = 0, u = 0;
        for (; chunk < first + kernel_blocks(c->spans[s].n, WORKSPACE_SPAN_CHUNK); chunk++) {
            w += c->sums[2 * chunk];
            u += c->sums[2 * chunk + 1];
        }
        if (chunk > first) {
            c->sums[2 * first] = c->spans[s].weight_decay != 0 && w > 0 && u > 0 ? sqrt(w) / sqrt(u) : 1.0;
        }
    }
}

static void lamb_apply_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    (void)number;
    float *restrict w = c->w + k.first;
    const float *restrict u = c->grad + k.first;
    float step = (float)((double)c->lr * c->sums[2 * k.span_chunk]);
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

static void cpu_lamb(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                     tensor norm, tensor scalars)
{
    struct optim_call c;
    if (begin_update(x, "lamb", &c, b, spans, n_spans, norm, scalars)) {
        run(x, "lamb", &c, lamb_direction_item);
        lamb_ratios(&c);
        run(x, "lamb", &c, lamb_apply_item);
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
    t->global_norm = cpu_global_norm;
    t->lamb = cpu_lamb;
    t->adamw = cpu_adamw;
}
