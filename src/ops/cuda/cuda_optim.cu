/* cuda_optim: the global norm, LAMB and AdamW over flat buffers of many spans at once (docs/math/optimizers.md).
 *
 * A block owns a chunk of 1,024 elements of one span, found by bisection.  Partial sums of chunks are doubles that one
 * block adds in order, so the bits do not depend on scheduling.  Bound by memory: LAMB reads w, g, m, v and writes m, v, u,
 * then reads w, u and writes w and its copy. */
#include "ops/cuda/device_code.cuh"

/* The span of a chunk: the last one that begins at or before it. */
__device__ static inline int64_t span_of(const launch_span *spans, int64_t n_spans, int64_t chunk)
{
    int64_t low = 0, high = n_spans - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (spans[middle].first_chunk <= chunk) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* The elements [first, end) of the chunk of this block, and its span. */
struct chunk {
    int64_t first, end, span;
    double weight_decay;
};

__device__ static inline chunk own_chunk(const launch_span *spans, int64_t n_spans)
{
    int64_t s = span_of(spans, n_spans, blockIdx.x), last = spans[s].offset + spans[s].n;
    int64_t first = spans[s].offset + (blockIdx.x - spans[s].first_chunk) * LAUNCH_SPAN_CHUNK;
    int64_t end = first + LAUNCH_SPAN_CHUNK;
    return chunk{first, end < last ? end : last, s, spans[s].weight_decay};
}

__global__ static void squares_kernel(double *partials, const float *in, const launch_span *spans, int64_t n_spans)
{
    __shared__ double partial[WARP];
    chunk c = own_chunk(spans, n_spans);
    double sum = 0;
    for (int64_t i = c.first + threadIdx.x; i < c.end; i += blockDim.x) {
        sum += (double)in[i] * (double)in[i];
    }
    sum = block_sum(sum, partial);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
    }
}

/* One block: a thread adds a run of partial sums in order, then the threads are added. */
__global__ static void root_of_sum_kernel(double *norm, const double *partials, int64_t n)
{
    __shared__ double partial[WARP];
    int64_t first = n * threadIdx.x / blockDim.x, end = n * (threadIdx.x + 1) / blockDim.x;
    double sum = 0;
    for (int64_t i = first; i < end; i++) {
        sum += partials[i];
    }
    sum = block_sum(sum, partial);
    if (threadIdx.x == 0) {
        *norm = sqrt(sum);
    }
}

void cuda_launch_global_norm(const launch *l, double *norm, const float *in, const launch_span *spans, int64_t n_spans,
                             int64_t n_chunks)
{
    double *partials = (double *)l->scratch;
    if (n_chunks > 0) {
        LAUNCH(l, squares_kernel, (unsigned)n_chunks, BLOCK, 0, partials, in, spans, n_spans);
    }
    LAUNCH(l, root_of_sum_kernel, 1, 8 * BLOCK, 0, norm, partials, n_chunks);
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

/* What gradients are multiplied by: the scale, and less if their norm would be above the limit. */
__device__ static inline float gradient_factor(const launch_optim &o)
{
    double limit = o.scalars[LAUNCH_MAX_NORM], scale = o.scalars[LAUNCH_GRAD_SCALE], norm = scale * *o.norm;
    return (float)(limit > 0 && norm > limit ? scale * (limit / norm) : scale);
}

/* m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2. */
__device__ static inline void update_moments(const launch_optim &o, int64_t i, float scale, float *m, float *v)
{
    float beta1 = (float)o.scalars[LAUNCH_BETA1], beta2 = (float)o.scalars[LAUNCH_BETA2];
    float rest1 = (float)(1 - o.scalars[LAUNCH_BETA1]), rest2 = (float)(1 - o.scalars[LAUNCH_BETA2]);
    float g = o.grad[i] * scale;
    *m = beta1 * o.exp_avg[i] + rest1 * g;
    *v = beta2 * o.exp_avg_sq[i] + rest2 * g * g;
    o.exp_avg[i] = *m;
    o.exp_avg_sq[i] = *v;
}

__device__ static inline void set_weight(const launch_optim &o, int64_t i, float w)
{
    o.master[i] = w;
    if (o.working != NULL && o.working_type == LAUNCH_F16) {
        from_float((f16 *)o.working + i, w);
    } else if (o.working != NULL) {
        from_float((bf16 *)o.working + i, w);
    }
}

/* Moments and the direction u, which takes the gradient's place; partial sums of w^2 and of u^2. */
__global__ static void lamb_direction_kernel(double *partials, launch_optim o)
{
    if (!all_finite(o)) {
        return;
    }
    __shared__ double partial[WARP];
    chunk c = own_chunk(o.spans, o.n_spans);
    float scale = gradient_factor(o), eps = (float)o.scalars[LAUNCH_EPS];
    float c1 = (float)o.scalars[LAUNCH_CORRECTION1], c2 = (float)o.scalars[LAUNCH_CORRECTION2];
    double weights = 0, directions = 0;
    for (int64_t i = c.first + threadIdx.x; i < c.end; i += blockDim.x) {
        float m, v, w = o.master[i];
        update_moments(o, i, scale, &m, &v);
        float u = m / c1 / (sqrtf(v / c2) + eps) + (float)c.weight_decay * w;
        o.grad[i] = u;
        weights += (double)w * w;
        directions += (double)u * u;
    }
    weights = block_sum(weights, partial);
    directions = block_sum(directions, partial);
    if (threadIdx.x == 0) {
        partials[2 * blockIdx.x] = weights;
        partials[2 * blockIdx.x + 1] = directions;
    }
}

/* r = |w| / |u| of each span: a block adds the partial sums of its chunks. */
__global__ static void lamb_ratio_kernel(launch_optim o, const double *partials)
{
    if (!all_finite(o)) {
        return;
    }
    __shared__ double partial[WARP];
    launch_span s = o.spans[blockIdx.x];
    int64_t n = (s.n + LAUNCH_SPAN_CHUNK - 1) / LAUNCH_SPAN_CHUNK;
    double weights = 0, directions = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        weights += partials[2 * (s.first_chunk + i)];
        directions += partials[2 * (s.first_chunk + i) + 1];
    }
    weights = block_sum(weights, partial);
    directions = block_sum(directions, partial);
    if (threadIdx.x == 0) {
        bool adapt = s.weight_decay != 0 && weights > 0 && directions > 0;
        o.ratios[blockIdx.x] = adapt ? sqrt(weights) / sqrt(directions) : 1.0;
    }
}

__global__ static void lamb_step_kernel(launch_optim o)
{
    if (!all_finite(o)) {
        return;
    }
    chunk c = own_chunk(o.spans, o.n_spans);
    float rate = (float)(o.scalars[LAUNCH_LR] * o.ratios[c.span]);
    for (int64_t i = c.first + threadIdx.x; i < c.end; i += blockDim.x) {
        set_weight(o, i, o.master[i] - rate * o.grad[i]);
    }
}

void cuda_launch_lamb(const launch *l, const launch_optim *o)
{
    double *partials = (double *)l->scratch;
    if (o->n_chunks == 0) {
        return;
    }
    LAUNCH(l, lamb_direction_kernel, (unsigned)o->n_chunks, BLOCK, 0, partials, *o);
    LAUNCH(l, lamb_ratio_kernel, (unsigned)o->n_spans, BLOCK, 0, *o, (const double *)partials);
    LAUNCH(l, lamb_step_kernel, (unsigned)o->n_chunks, BLOCK, 0, *o);
}

__global__ static void adamw_kernel(launch_optim o)
{
    if (!all_finite(o)) {
        return;
    }
    chunk c = own_chunk(o.spans, o.n_spans);
    float scale = gradient_factor(o), eps = (float)o.scalars[LAUNCH_EPS];
    float keep = (float)(1 - o.scalars[LAUNCH_LR] * c.weight_decay);
    float step = (float)(o.scalars[LAUNCH_LR] * sqrt(o.scalars[LAUNCH_CORRECTION2]) / o.scalars[LAUNCH_CORRECTION1]);
    for (int64_t i = c.first + threadIdx.x; i < c.end; i += blockDim.x) {
        float m, v;
        update_moments(o, i, scale, &m, &v);
        set_weight(o, i, o.master[i] * keep - step * m / (sqrtf(v) + eps));
    }
}

void cuda_launch_adamw(const launch *l, const launch_optim *o)
{
    if (o->n_chunks > 0) {
        LAUNCH(l, adamw_kernel, (unsigned)o->n_chunks, BLOCK, 0, *o);
    }
}
