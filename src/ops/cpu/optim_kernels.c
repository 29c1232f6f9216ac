/* Optimizers over flat buffers.  A span is split into chunks of 1,024 elements.  Each chunk's sums have their
 * own place and are added in order, so norms have the same bits for any number of threads and of ranks. */
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/workspace.h"

#include <math.h>

/* A chunk: elements [first, first + n) of the buffers, which belong to one span. */
struct chunk {
    int64_t first, n, span;
    double decay, rate;
};

struct optim_call;
typedef void optim_visit(const struct optim_call *c, struct chunk k, int64_t number);

struct optim_call {
    optim_visit *visit;
    const struct optim_span *spans;
    int64_t n_spans;
    const float *in;
    float *flat, *w, *grad, *m, *v;
    tensor working;
    double *sums;          /* squares of each chunk; or those of w and of each direction, side by side */
    const double *factors; /* [n_spans] of LANS, instead of `factor` */
    const double *ratios;  /* [n_spans] of LAMB, [n_spans, 2] of LANS */
    tensor direction;      /* the direction of `descend` */
    float factor, beta1, beta2, rest1, rest2, inverse_c1, inverse_c2, eps, lr, step, coupled, momentum;
};

/* An item is sixteen chunks; `visit` gets each with its number. */
enum { CHUNKS_PER_ITEM = 16 };

static void visit_item(const void *context, int64_t item, void *lane)
{
    (void)lane;
    const struct optim_call *c = context;
    int64_t number = item * CHUNKS_PER_ITEM, span_chunk = 0;
    for (int64_t s = 0; s < c->n_spans; s++) {
        int64_t chunks = kernel_blocks(c->spans[s].n, OPTIM_CHUNK);
        while (number < span_chunk + chunks) {
            int64_t offset = (number - span_chunk) * OPTIM_CHUNK;
            int64_t n = kernel_min(OPTIM_CHUNK, c->spans[s].n - offset);
            struct chunk k = {c->spans[s].offset + offset, n, s, c->spans[s].weight_decay, c->spans[s].rate};
            c->visit(c, k, number);
            number++;
            if (number == (item + 1) * CHUNKS_PER_ITEM) {
                return;
            }
        }
        span_chunk += chunks;
    }
}

static void run(struct exec *x, const char *op, struct optim_call *c, optim_visit *visit)
{
    c->visit = visit;
    lanes_run(x, op, kernel_blocks(optim_chunks(c->spans, c->n_spans), CHUNKS_PER_ITEM), 0, visit_item, c);
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

static void cpu_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans)
{
    if (accept_tensors(x, "clear", ACCEPT_LIST(flat), ACCEPT_LIST(flat))) {
        struct optim_call c = {.spans = spans, .n_spans = n_spans, .flat = flat.data};
        run(x, "clear", &c, clear_chunk);
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

static void zeros_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    const float *v = c->in + k.first;
    int32_t n = 0;
#pragma omp simd reduction(+ : n)
    for (int64_t i = 0; i < k.n; i++) {
        n += v[i] == 0;
    }
    c->sums[number] = n;
}

/* A number of each chunk. */
static void measure_chunks(struct exec *x, const char *op, tensor sums, tensor in,
                           const struct optim_span *spans, int64_t n_spans,
                           void (*measure)(const struct optim_call *c, struct chunk k, int64_t number))
{
    if (accept_tensors(x, op, ACCEPT_LIST(in), ACCEPT_LIST(in)) && accept_doubles(x, op, "the sums", sums)) {
        struct optim_call c = {.spans = spans, .n_spans = n_spans, .in = in.data, .sums = sums.data};
        run(x, op, &c, measure);
    }
}

static void cpu_squares(struct exec *x, tensor sums, tensor in, const struct optim_span *spans,
                        int64_t n_spans)
{
    measure_chunks(x, "squares", sums, in, spans, n_spans, squares_chunk);
}

static void cpu_zeros(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans)
{
    measure_chunks(x, "zeros", sums, in, spans, n_spans, zeros_chunk);
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
        .coupled = (float)s[OPTIM_COUPLED],
        .momentum = (float)s[OPTIM_MOMENTUM],
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

/* m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2. */
static inline void update_moments(const struct optim_call *c, float *m, float *v, float g)
{
    *m = c->beta1 * *m + c->rest1 * g;
    *v = c->beta2 * *v + c->rest2 * g * g;
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
        update_moments(c, &m[i], &v[i], g);
        grad[i] = m[i] * c->inverse_c1 / (sqrtf(v[i] * c->inverse_c2) + c->eps) + decay * w[i];
    }
    c->sums[2 * number] = sum_of_squares(w, k.n);
    c->sums[2 * number + 1] = sum_of_squares(grad, k.n);
}

static void cpu_lamb_direction(struct exec *x, tensor sums, struct optim_buffers b,
                               const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars)
{
    struct optim_call c;
    if (accept_doubles(x, "lamb_direction", "the sums", sums) &&
        begin_update(x, "lamb_direction", &c, b, spans, n_spans, norm, scalars)) {
        c.sums = sums.data;
        run(x, "lamb_direction", &c, lamb_direction_chunk);
    }
}

/* A column of sums [all chunks, cols], of the span's full parameter. */
static double sum_of_parameter(const double *sums, int64_t cols, int64_t col, const struct optim_span *s)
{
    double sum = 0;
    for (int64_t k = s->first_chunk; k < s->first_chunk + s->n_chunks; k++) {
        sum += sums[cols * k + col];
    }
    return sum;
}

/* |w| / |u| of a direction: the squares of w are the first column. */
static double trust_ratio(tensor sums, int64_t col, const struct optim_span *s, const double *scalars)
{
    double w = sum_of_parameter(sums.data, tensor_cols(sums), 0, s);
    double u = sum_of_parameter(sums.data, tensor_cols(sums), col, s);
    bool has_one = s->weight_decay != 0 || scalars[OPTIM_RATIO_OF_ALL] != 0;
    if (!has_one || w == 0 || u == 0) {
        return 1;
    }
    return fmax(scalars[OPTIM_MIN_RATIO], fmin(sqrt(w) / sqrt(u), scalars[OPTIM_MAX_RATIO]));
}

/* The second half of an update whose steps are as long as norms say. */
static void apply(struct exec *x, const char *op, size_t workspace, optim_visit *visit,
                  struct optim_buffers b, const struct optim_span *spans, int64_t n_spans, tensor sums,
                  tensor norm, tensor scalars)
{
    struct optim_call c;
    int64_t n = tensor_cols(sums) - 1; /* directions */
    if (accept_doubles(x, op, "the sums", sums) &&
        begin_update(x, op, &c, b, spans, n_spans, norm, scalars)) {
        double *ratios = exec_scratch(x, workspace);
        for (int64_t i = 0; i < n * n_spans; i++) {
            ratios[i] = trust_ratio(sums, i % n + 1, &spans[i / n], scalars.data);
        }
        c.ratios = ratios;
        run(x, op, &c, visit);
    }
}

static void lamb_apply_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    (void)number;
    float *restrict w = c->w + k.first;
    const float *restrict u = c->grad + k.first;
    float step = (float)((double)c->lr * k.rate * c->ratios[k.span]);
#pragma omp simd
    for (int64_t i = 0; i < k.n; i++) {
        w[i] -= step * u[i];
    }
    store_working(c, k);
}

static void cpu_lamb_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                           int64_t n_spans, tensor sums, tensor norm, tensor scalars)
{
    apply(x, "lamb_apply", workspace_lamb_apply(n_spans), lamb_apply_chunk, b, spans, n_spans, sums, norm,
          scalars);
}

/* Directions of an element, by its moments and its normalised gradient. */
struct lans_directions {
    float r, c;
};

static inline struct lans_directions lans_directions(const struct optim_call *c, float m, float v, float g,
                                                     float pull)
{
    float d = sqrtf(v * c->inverse_c2) + c->eps;
    return (struct lans_directions){m * c->inverse_c1 / d + pull, g / d + pull};
}

/* The moments and the normalised gradient; the squares of w and of both directions. */
static void lans_direction_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    float *restrict m = c->m + k.first, *restrict v = c->v + k.first, *restrict grad = c->grad + k.first;
    const float *restrict w = c->w + k.first;
    float decay = (float)k.decay, factor = (float)c->factors[k.span];
    double sum_r = 0, sum_c = 0;
#pragma omp simd reduction(+ : sum_r, sum_c)
    for (int64_t i = 0; i < k.n; i++) {
        grad[i] *= factor;
        update_moments(c, &m[i], &v[i], grad[i]);
        struct lans_directions d = lans_directions(c, m[i], v[i], grad[i], decay * w[i]);
        sum_r += (double)d.r * (double)d.r;
        sum_c += (double)d.c * (double)d.c;
    }
    c->sums[3 * number] = sum_of_squares(w, k.n);
    c->sums[3 * number + 1] = sum_r;
    c->sums[3 * number + 2] = sum_c;
}

static void cpu_lans_direction(struct exec *x, tensor sums, struct optim_buffers b,
                               const struct optim_span *spans, int64_t n_spans, tensor squares, tensor norm,
                               tensor scalars)
{
    struct optim_call c;
    if (accept_doubles(x, "lans_direction", "the sums", sums) &&
        accept_doubles(x, "lans_direction", "the squares", squares) &&
        begin_update(x, "lans_direction", &c, b, spans, n_spans, norm, scalars)) {
        double *factors = exec_scratch(x, workspace_lans_direction(n_spans));
        for (int64_t s = 0; s < n_spans; s++) {
            double n = (double)c.factor * sqrt(sum_of_parameter(squares.data, 1, 0, &spans[s]));
            factors[s] = n > 0 ? (double)c.factor / (n + (double)c.eps) : (double)c.factor;
        }
        c.factors = factors;
        c.sums = sums.data;
        run(x, "lans_direction", &c, lans_direction_chunk);
    }
}

static void lans_apply_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    (void)number;
    float *restrict w = c->w + k.first;
    const float *restrict m = c->m + k.first, *restrict v = c->v + k.first,
                          *restrict grad = c->grad + k.first;
    float decay = (float)k.decay;
    float step_r = (float)((double)c->lr * k.rate * (double)c->beta1 * c->ratios[2 * k.span]);
    float step_c = (float)((double)c->lr * k.rate * (double)c->rest1 * c->ratios[2 * k.span + 1]);
#pragma omp simd
    for (int64_t i = 0; i < k.n; i++) {
        struct lans_directions d = lans_directions(c, m[i], v[i], grad[i], decay * w[i]);
        w[i] -= step_r * d.r + step_c * d.c;
    }
    store_working(c, k);
}

static void cpu_lans_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                           int64_t n_spans, tensor sums, tensor norm, tensor scalars)
{
    apply(x, "lans_apply", workspace_lans_apply(n_spans), lans_apply_chunk, b, spans, n_spans, sums, norm,
          scalars);
}

static void adamw_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    (void)number;
    float *restrict m = c->m + k.first, *restrict v = c->v + k.first, *restrict w = c->w + k.first;
    const float *restrict grad = c->grad + k.first;
    float keep = (float)(1.0 - (1.0 - (double)c->coupled) * (double)c->lr * k.rate * k.decay);
    float step = (float)((double)c->step * k.rate), pull = c->coupled * (float)k.decay;
#pragma omp simd
    for (int64_t i = 0; i < k.n; i++) {
        float g = grad[i] * c->factor + pull * w[i];
        update_moments(c, &m[i], &v[i], g);
        w[i] = w[i] * keep - step * m[i] / (sqrtf(v[i]) + c->eps);
    }
    store_working(c, k);
}

static void cpu_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                      tensor norm, tensor scalars)
{
    struct optim_call c;
    if (begin_update(x, "adamw", &c, b, spans, n_spans, norm, scalars)) {
        run(x, "adamw", &c, adamw_chunk);
    }
}

static void nesterov_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    float *restrict m = c->m + k.first, *restrict grad = c->grad + k.first;
    float keep = c->momentum, rest = 1 - c->momentum;
#pragma omp simd
    for (int64_t i = 0; i < k.n; i++) {
        float g = grad[i] * c->factor;
        m[i] = keep * m[i] + rest * g;
        grad[i] = keep * m[i] + rest * g;
    }
    c->sums[number] = sum_of_squares(grad, k.n);
}

static void cpu_nesterov(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                         int64_t n_spans, tensor norm, tensor scalars)
{
    struct optim_call c;
    if (accept_doubles(x, "nesterov", "the sums", sums) &&
        begin_update(x, "nesterov", &c, b, spans, n_spans, norm, scalars)) {
        c.sums = sums.data;
        run(x, "nesterov", &c, nesterov_chunk);
    }
}

static void descend_chunk(const struct optim_call *c, struct chunk k, int64_t number)
{
    float buffer[OPTIM_CHUNK], *restrict w = c->w + k.first;
    const float *u = rows_load(c->direction, 0, number * OPTIM_CHUNK, k.n, buffer);
    float step = (float)((double)c->lr * k.rate), keep = (float)(1.0 - (double)c->lr * k.rate * k.decay);
#pragma omp simd
    for (int64_t i = 0; i < k.n; i++) {
        w[i] = w[i] * keep - step * u[i];
    }
    store_working(c, k);
}

static void cpu_descend(struct exec *x, struct optim_buffers b, const struct optim_span *span, tensor in,
                        tensor norm, tensor scalars)
{
    struct optim_call c;
    if (accept_tensors(x, "descend", ACCEPT_LIST(in), NULL, 0) &&
        begin_update(x, "descend", &c, b, span, 1, norm, scalars)) {
        c.direction = tensor_1d(in.data, in.dtype, span->n);
        run(x, "descend", &c, descend_chunk);
    }
}

KERNEL_FILL(optim, struct ops)
{
    t->clear = cpu_clear;
    t->squares = cpu_squares;
    t->zeros = cpu_zeros;
    t->norm_of = cpu_norm_of;
    t->lamb_direction = cpu_lamb_direction;
    t->lamb_apply = cpu_lamb_apply;
    t->lans_direction = cpu_lans_direction;
    t->lans_apply = cpu_lans_apply;
    t->adamw = cpu_adamw;
    t->nesterov = cpu_nesterov;
    t->descend = cpu_descend;
}
