/* cuda_optim: clearing, norms, LAMB, LANS and AdamW over flat buffers of many spans at once
 * (docs/math/optimizers.md).
 *
 * A block owns a chunk of 1,024 elements of one span, a thread eight of them.  Sums of chunks are doubles
 * that are added in an order of their own, so the bits do not depend on scheduling.  Bound by memory: LAMB
 * reads w, g, m, v and writes m, v, u, then reads w, u and writes w and its copy; LANS reads all four both
 * times. */
#include "ops/cuda/kernels/device_code.cuh"

static_assert(LAUNCH_SPAN_CHUNK == BLOCK * EIGHT, "a chunk is what the threads of a block have");

/* A chunk: its span, and its elements [first, first + n) of the buffers. */
struct chunk {
    int64_t first, n;
    int span;
    double weight_decay, rate;
};

__device__ static inline chunk chunk_at(const launch_spans &spans, int64_t number)
{
    int span = spans.span_of_chunk[number];
    launch_span s = spans.spans[span];
    int64_t begin = (number - s.first_chunk) * LAUNCH_SPAN_CHUNK, left = s.n - begin;
    int64_t n = left < LAUNCH_SPAN_CHUNK ? left : LAUNCH_SPAN_CHUNK;
    return chunk{s.offset + begin, n, span, s.weight_decay, s.rate};
}

/* The first of this thread's elements of a chunk. */
__device__ static inline int64_t own_column(void)
{
    return (int64_t)threadIdx.x * EIGHT;
}

enum { NORM_CHUNKS = 4 }; /* chunks of a block that only reads */

struct square_of {
    __device__ static double of(float v)
    {
        return (double)v * (double)v;
    }
};

struct is_zero {
    __device__ static double of(float v)
    {
        return v == 0.0f ? 1.0 : 0.0;
    }
};

/* The sum of a number of each element of a chunk. */
template <class Number>
__global__ static void measure_kernel(double *sums, const float *in, launch_spans spans)
{
    __shared__ double partial[WARP];
    packed_eight<float> own[NORM_CHUNKS];
    int64_t left[NORM_CHUNKS]; /* elements from this thread's first on */
    UNROLL
    for (int k = 0; k < NORM_CHUNKS; k++) {
        int64_t number = (int64_t)blockIdx.x * NORM_CHUNKS + k;
        chunk c = number < spans.n_chunks ? chunk_at(spans, number) : chunk{};
        own[k] = load_packed(in + c.first, own_column(), c.n);
        left[k] = c.n - own_column();
    }
    UNROLL
    for (int k = 0; k < NORM_CHUNKS; k++) {
        int64_t number = (int64_t)blockIdx.x * NORM_CHUNKS + k;
        double sum = 0;
        for (int i = 0; i < EIGHT; i++) {
            sum += i < left[k] ? Number::of(unpack(own[k]).v[i]) : 0.0;
        }
        sum = block_sum(sum, partial);
        if (threadIdx.x == 0 && number < spans.n_chunks) {
            sums[number] = sum;
        }
    }
}

template <class Number>
static void launch_measure(const launch *l, double *sums, const float *in, const launch_spans *spans)
{
    int64_t blocks = (spans->n_chunks + NORM_CHUNKS - 1) / NORM_CHUNKS;
    if (blocks > 0) {
        LAUNCH(l, measure_kernel<Number>, (unsigned)blocks, BLOCK, 0, sums, in, *spans);
    }
}

void cuda_launch_squares(const launch *l, double *sums, const float *in, const launch_spans *spans)
{
    launch_measure<square_of>(l, sums, in, spans);
}

void cuda_launch_zeros(const launch *l, double *sums, const float *in, const launch_spans *spans)
{
    launch_measure<is_zero>(l, sums, in, spans);
}

__global__ static void clear_kernel(float *flat, launch_spans spans)
{
    chunk c = chunk_at(spans, blockIdx.x);
    if (own_column() < c.n) {
        store_eight(flat + c.first, own_column(), c.n, eight{});
    }
}

void cuda_launch_clear(const launch *l, float *flat, const launch_spans *spans)
{
    if (spans->n_chunks > 0) {
        LAUNCH(l, clear_kernel, (unsigned)spans->n_chunks, BLOCK, 0, flat, *spans);
    }
}

static_assert(LAUNCH_RUN_OF_SUMS == BLOCK * EIGHT, "a run is what the threads of a block have");

/* A run of sums is added by a block. */
__global__ static void sum_runs_kernel(double *partials, const double *sums, int64_t n)
{
    __shared__ double partial[WARP];
    double sum = 0;
    UNROLL
    for (int k = 0; k < EIGHT; k++) {
        int64_t i = ((int64_t)blockIdx.x * EIGHT + k) * BLOCK + threadIdx.x;
        sum += i < n ? sums[i] : 0;
    }
    sum = block_sum(sum, partial);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
    }
}

/* One block: a thread adds every 1024th sum, then the threads are added. */
__global__ static void root_of_sum_kernel(double *norm, const double *partials, int64_t n)
{
    __shared__ double partial[WARP];
    double sum = 0;
    UNROLL_BY(8)
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        sum += partials[i];
    }
    sum = block_sum(sum, partial);
    if (threadIdx.x == 0) {
        *norm = sqrt(sum);
    }
}

void cuda_launch_norm_of(const launch *l, double *norm, const double *sums, int64_t n, int64_t runs)
{
    double *partials = (double *)l->scratch;
    if (runs > 0) {
        LAUNCH(l, sum_runs_kernel, (unsigned)runs, BLOCK, 0, partials, sums, n);
    }
    LAUNCH(l, root_of_sum_kernel, 1, 8 * BLOCK, 0, norm, runs > 0 ? (const double *)partials : sums,
           runs > 0 ? runs : n);
}

/* Whether there is an update at all: the host has not looked at the norm yet. */
__device__ static inline bool all_finite(const launch_optim &o)
{
    bool all = true;
    for (int64_t i = 0; i < o.n_norm; i++) {
        all = all && isfinite(o.norm[i]);
    }
    return all;
}

/* The factor of gradients: the scale, and less if their norm would be above the limit. */
__device__ static inline float gradient_factor(const launch_optim &o)
{
    double limit = o.scalars[LAUNCH_MAX_NORM], scale = o.scalars[LAUNCH_GRAD_SCALE], norm = scale * *o.norm;
    return (float)(limit > 0 && norm > limit ? scale * (limit / norm) : scale);
}

/* A thread's elements of a chunk; zeros beyond its end. */
struct elements {
    eight w, g, m, v;
};

__device__ static inline elements load_elements(const launch_optim &o, const chunk &c)
{
    int64_t i = own_column();
    packed_eight<float> w = load_packed(o.master + c.first, i, c.n),
                        g = load_packed(o.grad + c.first, i, c.n);
    packed_eight<float> m = load_packed(o.exp_avg + c.first, i, c.n),
                        v = load_packed(o.exp_avg_sq + c.first, i, c.n);
    return elements{unpack(w), unpack(g), unpack(m), unpack(v)};
}

/* g = scale g + pull w;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2. */
__device__ static inline void update_moments(const launch_optim &o, const chunk &c, float scale, float pull,
                                             elements *e)
{
    float beta1 = (float)o.scalars[LAUNCH_BETA1], beta2 = (float)o.scalars[LAUNCH_BETA2];
    float rest1 = (float)(1 - o.scalars[LAUNCH_BETA1]), rest2 = (float)(1 - o.scalars[LAUNCH_BETA2]);
    for (int k = 0; k < EIGHT; k++) {
        float g = e->g.v[k] * scale + pull * e->w.v[k];
        e->g.v[k] = g;
        e->m.v[k] = beta1 * e->m.v[k] + rest1 * g;
        e->v.v[k] = beta2 * e->v.v[k] + rest2 * g * g;
    }
    store_eight(o.exp_avg + c.first, own_column(), c.n, e->m);
    store_eight(o.exp_avg_sq + c.first, own_column(), c.n, e->v);
}

__device__ static inline void store_weights(const launch_optim &o, const chunk &c, const eight &w)
{
    store_eight(o.master + c.first, own_column(), c.n, w);
    if (o.working != NULL && o.working_type == LAUNCH_F16) {
        store_eight((f16 *)o.working + c.first, own_column(), c.n, w);
    } else if (o.working != NULL) {
        store_eight((bf16 *)o.working + c.first, own_column(), c.n, w);
    }
}

template <int COLS> struct columns {
    double v[COLS];
};

/* Stores this chunk's row of sums [chunks, COLS], which adds the numbers `own` of all threads. */
template <int COLS> __device__ static inline void store_sums(const launch_optim &o, const columns<COLS> &own)
{
    __shared__ double partial[WARP];
    UNROLL
    for (int k = 0; k < COLS; k++) {
        double sum = block_sum(own.v[k], partial);
        if (threadIdx.x == 0) {
            o.sums[COLS * (int64_t)blockIdx.x + k] = sum;
        }
    }
}

/* Moments and the direction u, which takes the gradient's place; sums of w^2 and of u^2. */
__global__ static void lamb_direction_kernel(launch_optim o)
{
    if (!all_finite(o)) {
        return;
    }
    chunk c = chunk_at(o.spans, blockIdx.x);
    elements e = load_elements(o, c);
    float eps = (float)o.scalars[LAUNCH_EPS], decay = (float)c.weight_decay;
    float c1 = (float)o.scalars[LAUNCH_CORRECTION1], c2 = (float)o.scalars[LAUNCH_CORRECTION2];
    columns<2> sums = {};
    update_moments(o, c, gradient_factor(o), 0, &e);
    for (int k = 0; k < EIGHT; k++) { /* beyond the end all are 0 */
        float u = e.m.v[k] / c1 / (sqrtf(e.v.v[k] / c2) + eps) + decay * e.w.v[k];
        u = own_column() + k < c.n ? u : 0.0f;
        e.g.v[k] = u;
        sums.v[0] += (double)e.w.v[k] * e.w.v[k];
        sums.v[1] += (double)u * u;
    }
    store_eight(o.grad + c.first, own_column(), c.n, e.g);
    store_sums(o, sums);
}

/* The sums [all chunks, COLS] of a span's full parameter, added by a block. */
template <int COLS>
__device__ static inline columns<COLS> sums_of_parameter(const double *sums, const launch_span &s)
{
    __shared__ double partial[WARP];
    columns<COLS> all = {};
    sums += COLS * s.first_of_all;
    UNROLL_BY(4)
    for (int64_t i = threadIdx.x; i < s.n_of_all; i += blockDim.x) {
        UNROLL
        for (int k = 0; k < COLS; k++) {
            all.v[k] += sums[COLS * i + k];
        }
    }
    UNROLL
    for (int k = 0; k < COLS; k++) {
        all.v[k] = block_sum(all.v[k], partial);
    }
    return all;
}

/* |w| / |u| by their squares. */
__device__ static inline double trust_ratio(const launch_optim &o, const launch_span &s, double w, double u)
{
    bool has_one = s.weight_decay != 0 || o.scalars[LAUNCH_RATIO_OF_ALL] != 0;
    if (!has_one || w == 0 || u == 0) {
        return 1;
    }
    return fmax(o.scalars[LAUNCH_MIN_RATIO], fmin(sqrt(w) / sqrt(u), o.scalars[LAUNCH_MAX_RATIO]));
}

/* r of each span, times its part of the rate. */
__global__ static void lamb_ratio_kernel(launch_optim o)
{
    if (!all_finite(o)) {
        return;
    }
    launch_span s = o.spans.spans[blockIdx.x];
    columns<2> sums = sums_of_parameter<2>(o.sums, s);
    if (threadIdx.x == 0) {
        o.ratios[blockIdx.x] = s.rate * trust_ratio(o, s, sums.v[0], sums.v[1]);
    }
}

__global__ static void lamb_step_kernel(launch_optim o)
{
    if (!all_finite(o)) {
        return;
    }
    chunk c = chunk_at(o.spans, blockIdx.x);
    eight w = load_eight(o.master + c.first, own_column(), c.n),
          u = load_eight(o.grad + c.first, own_column(), c.n);
    float rate = (float)(o.scalars[LAUNCH_LR] * o.ratios[c.span]);
    for (int k = 0; k < EIGHT; k++) {
        w.v[k] -= rate * u.v[k];
    }
    store_weights(o, c, w);
}

void cuda_launch_lamb_direction(const launch *l, const launch_optim *o)
{
    if (o->spans.n_chunks > 0) {
        LAUNCH(l, lamb_direction_kernel, (unsigned)o->spans.n_chunks, BLOCK, 0, *o);
    }
}

void cuda_launch_lamb_apply(const launch *l, const launch_optim *o)
{
    if (o->spans.n_chunks > 0) {
        LAUNCH(l, lamb_ratio_kernel, (unsigned)o->spans.n_spans, 4 * BLOCK, 0, *o);
        LAUNCH(l, lamb_step_kernel, (unsigned)o->spans.n_chunks, BLOCK, 0, *o);
    }
}

/* The factor of each span's gradients that makes the norm of its parameter's gradients 1 or below. */
__global__ static void lans_factor_kernel(launch_optim o)
{
    if (!all_finite(o)) {
        return;
    }
    columns<1> squares = sums_of_parameter<1>(o.squares, o.spans.spans[blockIdx.x]);
    if (threadIdx.x == 0) {
        double factor = gradient_factor(o), n = factor * sqrt(squares.v[0]);
        o.factors[blockIdx.x] = n > 0 ? factor / (n + o.scalars[LAUNCH_EPS]) : factor;
    }
}

/* Both directions of a thread's elements, by their moments and their normalised gradients: those of r, then
 * those of c. */
struct lans_directions {
    eight r, c;
};

__device__ static inline lans_directions directions_of(const launch_optim &o, const chunk &c,
                                                       const elements &e)
{
    float eps = (float)o.scalars[LAUNCH_EPS], decay = (float)c.weight_decay;
    float c1 = (float)o.scalars[LAUNCH_CORRECTION1], c2 = (float)o.scalars[LAUNCH_CORRECTION2];
    lans_directions out;
    for (int k = 0; k < EIGHT; k++) { /* beyond the end all are 0 */
        float d = sqrtf(e.v.v[k] / c2) + eps, pull = decay * e.w.v[k];
        out.r.v[k] = e.m.v[k] / c1 / d + pull;
        out.c.v[k] = e.g.v[k] / d + pull;
    }
    return out;
}

/* Moments and the normalised gradient; sums of w^2, r^2 and c^2. */
__global__ static void lans_direction_kernel(launch_optim o)
{
    if (!all_finite(o)) {
        return;
    }
    chunk c = chunk_at(o.spans, blockIdx.x);
    elements e = load_elements(o, c);
    update_moments(o, c, (float)o.factors[c.span], 0, &e);
    store_eight(o.grad + c.first, own_column(), c.n, e.g);
    lans_directions u = directions_of(o, c, e);
    columns<3> sums = {};
    for (int k = 0; k < EIGHT; k++) {
        sums.v[0] += (double)e.w.v[k] * e.w.v[k];
        sums.v[1] += (double)u.r.v[k] * u.r.v[k];
        sums.v[2] += (double)u.c.v[k] * u.c.v[k];
    }
    store_sums(o, sums);
}

/* Both ratios of each span, times its part of the rate. */
__global__ static void lans_ratio_kernel(launch_optim o)
{
    if (!all_finite(o)) {
        return;
    }
    launch_span s = o.spans.spans[blockIdx.x];
    columns<3> sums = sums_of_parameter<3>(o.sums, s);
    if (threadIdx.x == 0) {
        o.ratios[2 * blockIdx.x] = s.rate * trust_ratio(o, s, sums.v[0], sums.v[1]);
        o.ratios[2 * blockIdx.x + 1] = s.rate * trust_ratio(o, s, sums.v[0], sums.v[2]);
    }
}

__global__ static void lans_step_kernel(launch_optim o)
{
    if (!all_finite(o)) {
        return;
    }
    chunk c = chunk_at(o.spans, blockIdx.x);
    elements e = load_elements(o, c);
    double lr = o.scalars[LAUNCH_LR], beta1 = o.scalars[LAUNCH_BETA1];
    float rate_r = (float)(lr * beta1 * o.ratios[2 * c.span]);
    float rate_c = (float)(lr * (1 - beta1) * o.ratios[2 * c.span + 1]);
    lans_directions u = directions_of(o, c, e);
    for (int k = 0; k < EIGHT; k++) {
        e.w.v[k] -= rate_r * u.r.v[k] + rate_c * u.c.v[k];
    }
    store_weights(o, c, e.w);
}

void cuda_launch_lans_direction(const launch *l, const launch_optim *o)
{
    if (o->spans.n_chunks > 0) {
        LAUNCH(l, lans_factor_kernel, (unsigned)o->spans.n_spans, 4 * BLOCK, 0, *o);
        LAUNCH(l, lans_direction_kernel, (unsigned)o->spans.n_chunks, BLOCK, 0, *o);
    }
}

void cuda_launch_lans_apply(const launch *l, const launch_optim *o)
{
    if (o->spans.n_chunks > 0) {
        LAUNCH(l, lans_ratio_kernel, (unsigned)o->spans.n_spans, 4 * BLOCK, 0, *o);
        LAUNCH(l, lans_step_kernel, (unsigned)o->spans.n_chunks, BLOCK, 0, *o);
    }
}

__global__ static void adamw_kernel(launch_optim o)
{
    if (!all_finite(o)) {
        return;
    }
    chunk c = chunk_at(o.spans, blockIdx.x);
    elements e = load_elements(o, c);
    double coupled = o.scalars[LAUNCH_COUPLED], lr = o.scalars[LAUNCH_LR] * c.rate;
    float eps = (float)o.scalars[LAUNCH_EPS], keep = (float)(1 - (1 - coupled) * lr * c.weight_decay);
    float step = (float)(lr * sqrt(o.scalars[LAUNCH_CORRECTION2]) / o.scalars[LAUNCH_CORRECTION1]);
    update_moments(o, c, gradient_factor(o), (float)(coupled * c.weight_decay), &e);
    for (int k = 0; k < EIGHT; k++) {
        e.w.v[k] = e.w.v[k] * keep - step * e.m.v[k] / (sqrtf(e.v.v[k]) + eps);
    }
    store_weights(o, c, e.w);
}

void cuda_launch_adamw(const launch *l, const launch_optim *o)
{
    if (o->spans.n_chunks > 0) {
        LAUNCH(l, adamw_kernel, (unsigned)o->spans.n_chunks, BLOCK, 0, *o);
    }
}

/* The moment and the direction u, which takes the gradient's place; sums of u^2. */
__global__ static void nesterov_kernel(launch_optim o)
{
    if (!all_finite(o)) {
        return;
    }
    chunk c = chunk_at(o.spans, blockIdx.x);
    eight g = load_eight(o.grad + c.first, own_column(), c.n),
          m = load_eight(o.exp_avg + c.first, own_column(), c.n);
    float scale = gradient_factor(o), keep = (float)o.scalars[LAUNCH_MOMENTUM], rest = 1 - keep;
    columns<1> sums = {};
    for (int k = 0; k < EIGHT; k++) { /* beyond the end all are 0 */
        float scaled = g.v[k] * scale;
        m.v[k] = keep * m.v[k] + rest * scaled;
        g.v[k] = keep * m.v[k] + rest * scaled;
        sums.v[0] += (double)g.v[k] * g.v[k];
    }
    store_eight(o.exp_avg + c.first, own_column(), c.n, m);
    store_eight(o.grad + c.first, own_column(), c.n, g);
    store_sums(o, sums);
}

void cuda_launch_nesterov(const launch *l, const launch_optim *o)
{
    if (o->spans.n_chunks > 0) {
        LAUNCH(l, nesterov_kernel, (unsigned)o->spans.n_chunks, BLOCK, 0, *o);
    }
}

template <typename A>
__global__ static void descend_kernel(launch_optim o, const A *in, int64_t n, double rate, double decay)
{
    chunk c = chunk{(int64_t)blockIdx.x * LAUNCH_SPAN_CHUNK, n - (int64_t)blockIdx.x * LAUNCH_SPAN_CHUNK};
    if (!all_finite(o)) {
        return;
    }
    eight w = load_eight(o.master + c.first, own_column(), c.n),
          u = load_eight(in + c.first, own_column(), c.n);
    double lr = o.scalars[LAUNCH_LR] * rate;
    float step = (float)lr, keep = (float)(1 - lr * decay);
    for (int k = 0; k < EIGHT; k++) {
        w.v[k] = w.v[k] * keep - step * u.v[k];
    }
    store_weights(o, c, w);
}

void cuda_launch_descend(const launch *l, const launch_optim *o, const void *in, launch_type type, int64_t n,
                         double rate, double weight_decay)
{
    if (n > 0) {
        BY_TYPE(type, LAUNCH(l, descend_kernel<A>, blocks_of(n, LAUNCH_SPAN_CHUNK), BLOCK, 0, *o,
                             (const A *)in, n, rate, weight_decay));
    }
}

template <typename A>
__global__ static void unit_kernel(A *out, const float *in, const double *norm, int64_t n)
{
    int64_t first = (int64_t)blockIdx.x * LAUNCH_SPAN_CHUNK;
    eight v = load_eight(in + first, own_column(), n - first);
    float factor = (float)(*norm > 0 ? 1 / *norm : 0);
    for (int k = 0; k < EIGHT; k++) {
        v.v[k] *= factor;
    }
    store_eight(out + first, own_column(), n - first, v);
}

void cuda_launch_unit(const launch *l, void *out, launch_type type, const float *in, const double *norm,
                      int64_t n)
{
    if (n > 0) {
        BY_TYPE(type,
                LAUNCH(l, unit_kernel<A>, blocks_of(n, LAUNCH_SPAN_CHUNK), BLOCK, 0, (A *)out, in, norm, n));
    }
}

/* A block has a part of a row. */
template <typename A>
__global__ static void matrix_polynomial_kernel(A *out, const A *in, const A *square, int64_t m, float a,
                                                float b, float c)
{
    int64_t row = blockIdx.x, first = (int64_t)blockIdx.y * LAUNCH_SPAN_CHUNK, n = m - first;
    int64_t begin = row * m + first;
    eight v = load_eight(in + begin, own_column(), n), s = load_eight(square + begin, own_column(), n);
    for (int k = 0; k < EIGHT; k++) {
        v.v[k] = b * v.v[k] + c * s.v[k] + (first + own_column() + k == row ? a : 0.0f);
    }
    store_eight(out + begin, own_column(), n, v);
}

void cuda_launch_matrix_polynomial(const launch *l, void *out, const void *in, const void *square,
                                   launch_type type, int64_t m, double a, double b, double c)
{
    if (m > 0) {
        dim3 grid((unsigned)m, (unsigned)blocks_of(m, LAUNCH_SPAN_CHUNK));
        BY_TYPE(type, LAUNCH(l, matrix_polynomial_kernel<A>, grid, BLOCK, 0, (A *)out, (const A *)in,
                             (const A *)square, m, (float)a, (float)b, (float)c));
    }
}
