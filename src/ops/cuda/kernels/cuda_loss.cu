/* cuda_loss: cross-entropy with its gradient, over the columns of a row, and over the rows of a sequence.
 *
 * A block owns a row (a column of a sequence) and reads it twice, the second time from the cache: largest
 * value and sum of exponentials at once (Milakov and Gimelshein 2018, arXiv:1805.02867), then the gradient.
 * Bound by memory: logits are read once, gradients written once. */
#include "ops/cuda/kernels/tally_code.cuh"

template <typename A>
__global__ static void cross_entropy_kernel(float *loss, int32_t *correct, launch_rows dlogits,
                                            launch_rows logits, const int32_t *labels, int64_t cols,
                                            int64_t n_classes, const double *loss_scale, int32_t *fault)
{
    float scale = (float)*loss_scale;
    int64_t row = blockIdx.x, step = (int64_t)blockDim.x * EIGHT;
    const float *values = (const float *)logits.data + row * logits.stride;
    A *gradient = dlogits.data == NULL ? NULL : (A *)dlogits.data + row * dlogits.stride;
    int64_t label = labels[row] < 0 ? -1 : checked_index(labels, row, n_classes, fault);
    tally t = row_tally(values, n_classes);
    float lse = log_sum_exp(t);
    if (threadIdx.x == 0) {
        loss[row] = label < 0 ? 0.0f : lse - values[label];
        correct[row] = label >= 0 && t.at == label;
    }
    __syncthreads(); /* the gradient may overwrite the logits */
    for (int64_t c = threadIdx.x * EIGHT; gradient != NULL && c < cols; c += step) {
        eight e = load_eight(values, c, n_classes);
        for (int k = 0; k < EIGHT; k++) {
            float probability = c + k < n_classes ? expf(e.v[k] - lse) : 0.0f;
            e.v[k] = label < 0 ? 0.0f : scale * (probability - (c + k == label ? 1.0f : 0.0f));
        }
        store_eight(gradient, c, cols, e);
    }
}

void cuda_launch_cross_entropy(const launch *l, float *loss, int32_t *correct, launch_rows dlogits,
                               launch_type dlogits_type, launch_rows logits, const int32_t *labels,
                               int64_t rows, int64_t cols, int64_t n_classes, const double *loss_scale)
{
    if (rows == 0) {
        return;
    }
    BY_TYPE(dlogits_type, LAUNCH(l, cross_entropy_kernel<A>, (unsigned)rows, threads_for(n_classes), 0, loss,
                                 correct, dlogits, logits, labels, cols, n_classes, loss_scale, l->fault));
}

/* The loss of cross_entropy_kernel in three launches, between which ranks combine the results of their slices
 * of the classes: the first two and the third read a row once each. */
__global__ static void slice_maxima_kernel(float *maxima, launch_classes s)
{
    int64_t row = blockIdx.x, step = (int64_t)blockDim.x * EIGHT;
    const float *values = (const float *)s.logits.data + row * s.logits.stride;
    tally t = empty_tally();
    for (int64_t c = threadIdx.x * EIGHT; c < s.here; c += step) {
        eight e = load_eight(values, c, s.here);
        for (int k = 0; k < EIGHT && c + k < s.here; k++) {
            t.largest = fmaxf(t.largest, e.v[k]);
        }
    }
    t = block_tally(t);
    if (threadIdx.x == 0) {
        maxima[row] = t.largest;
    }
}

void cuda_launch_slice_maxima(const launch *l, float *maxima, const launch_classes *c)
{
    if (c->rows > 0) {
        LAUNCH(l, slice_maxima_kernel, (unsigned)c->rows, threads_for(c->here), 0, maxima, *c);
    }
}

__global__ static void slice_sums_kernel(double *sums, const float *maxima, launch_classes s, int32_t *fault)
{
    __shared__ double partial[WARP];
    int64_t row = blockIdx.x, step = (int64_t)blockDim.x * EIGHT;
    const float *values = (const float *)s.logits.data + row * s.logits.stride;
    int64_t label = s.labels[row] < 0 ? -1 : checked_index(s.labels, row, s.n_classes, fault);
    int64_t n = label < 0 ? 0 : s.here, at = label - s.first;
    float max = maxima[row], sum = 0;
    int equal = 0;
    for (int64_t c = threadIdx.x * EIGHT; c < n; c += step) {
        eight e = load_eight(values, c, n);
        for (int k = 0; k < EIGHT && c + k < n; k++) {
            sum += expf(e.v[k] - max);
            equal += c + k < at && e.v[k] == max;
        }
    }
    double all = block_sum((double)sum, partial), before = block_sum((double)equal, partial);
    if (threadIdx.x == 0) {
        sums[3 * row] = all;
        sums[3 * row + 1] = at >= 0 && at < n ? values[at] : 0.0;
        sums[3 * row + 2] = before;
    }
}

void cuda_launch_slice_sums(const launch *l, double *sums, const float *maxima, const launch_classes *c)
{
    if (c->rows > 0) {
        LAUNCH(l, slice_sums_kernel, (unsigned)c->rows, threads_for(c->here), 0, sums, maxima, *c, l->fault);
    }
}

/* A thread writes the columns that it has read, so the gradient may overwrite the logits. */
template <typename A>
__global__ static void slice_loss_kernel(float *loss, int32_t *correct, launch_rows dlogits,
                                         const float *maxima, const double *sums, launch_classes s,
                                         const double *loss_scale, int32_t *fault)
{
    float scale = (float)*loss_scale;
    int64_t row = blockIdx.x, step = (int64_t)blockDim.x * EIGHT;
    const float *values = (const float *)s.logits.data + row * s.logits.stride;
    A *gradient = dlogits.data == NULL ? NULL : (A *)dlogits.data + row * dlogits.stride;
    int64_t label = s.labels[row] < 0 ? -1 : checked_index(s.labels, row, s.n_classes, fault);
    const double *of_row = sums + 3 * row;
    float max = maxima[row], lse = max + logf((float)of_row[0]), at_label = (float)of_row[1];
    if (threadIdx.x == 0) {
        loss[row] = label < 0 ? 0.0f : lse - at_label;
        correct[row] = label >= 0 && at_label == max && of_row[2] == 0;
    }
    for (int64_t c = threadIdx.x * EIGHT; gradient != NULL && c < s.cols; c += step) {
        eight e = load_eight(values, c, s.here);
        for (int k = 0; k < EIGHT; k++) {
            float probability = c + k < s.here ? expf(e.v[k] - lse) : 0.0f;
            e.v[k] = label < 0 ? 0.0f : scale * (probability - (s.first + c + k == label ? 1.0f : 0.0f));
        }
        store_eight(gradient, c, s.cols, e);
    }
}

void cuda_launch_slice_cross_entropy(const launch *l, float *loss, int32_t *correct, launch_rows dlogits,
                                     launch_type dlogits_type, const float *maxima, const double *sums,
                                     const launch_classes *c, const double *loss_scale)
{
    if (c->rows > 0) {
        BY_TYPE(dlogits_type, LAUNCH(l, slice_loss_kernel<A>, (unsigned)c->rows, threads_for(c->here), 0,
                                     loss, correct, dlogits, maxima, sums, *c, loss_scale, l->fault));
    }
}

template <typename A>
__global__ static void span_kernel(float *loss, int32_t *correct, A *dlogits, const float *logits,
                                   const int32_t *cu_seqlens, const int32_t *labels, const double *loss_scale,
                                   int32_t *fault)
{
    float scale = (float)*loss_scale;
    int64_t b = blockIdx.x, e = blockIdx.y, first = cu_seqlens[b], n = cu_seqlens[b + 1] - first;
    if (labels[2 * b + e] < 0) {
        if (threadIdx.x == 0) {
            loss[2 * b + e] = 0;
            correct[2 * b + e] = 0;
        }
        return;
    }
    int64_t label = checked_index(labels, 2 * b + e, n, fault);
    const float *values = logits + 2 * first + e;
    tally seen = empty_tally();
    for (int64_t t = threadIdx.x; t < n; t += blockDim.x) {
        take(&seen, values[2 * t], (int)t);
    }
    seen = block_tally(seen);
    float lse = log_sum_exp(seen);
    if (threadIdx.x == 0) {
        loss[2 * b + e] = lse - values[2 * label];
        correct[2 * b + e] = seen.at == label;
    }
    for (int64_t t = threadIdx.x; dlogits != NULL && t < n; t += blockDim.x) {
        from_float(&dlogits[2 * (first + t) + e],
                   scale * (expf(values[2 * t] - lse) - (t == label ? 1.0f : 0.0f)));
    }
}

void cuda_launch_span_cross_entropy(const launch *l, float *loss, int32_t *correct, void *dlogits,
                                    launch_type dlogits_type, const float *logits, const int32_t *cu_seqlens,
                                    const int32_t *labels, int64_t n_sequences, int64_t rows,
                                    const double *loss_scale)
{
    launch_rows gradient = {dlogits, 2};
    dim3 grid((unsigned)n_sequences, 2);
    if (dlogits != NULL) {
        cuda_launch_fill(l, gradient, dlogits_type, rows, 2, 0);
    }
    if (n_sequences == 0) {
        return;
    }
    BY_TYPE(dlogits_type, LAUNCH(l, span_kernel<A>, grid, BLOCK, 0, loss, correct, (A *)dlogits, logits,
                                 cu_seqlens, labels, loss_scale, l->fault));
}

/* One thread per element; bound by its launch. */
template <typename A>
__global__ static void pointwise_kernel(float *loss, int32_t *correct, A *dlogits, const float *logits,
                                        const float *targets, int64_t n, int sigmoid,
                                        const double *loss_scale)
{
    float scale = (float)*loss_scale;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    float z = logits[i], y = targets[i], apart = z - y;
    float value = sigmoid ? fmaxf(z, 0.0f) - z * y + log1pf(expf(-fabsf(z))) : apart * apart;
    float slope = sigmoid ? 1.0f / (1.0f + expf(-z)) - y : 2.0f * apart;
    bool is_label = !isnan(y);
    loss[i] = is_label ? value : 0.0f;
    correct[i] = is_label && sigmoid && (z > 0.0f) == (y > 0.5f);
    if (dlogits != NULL) {
        from_float(&dlogits[i], is_label ? scale * slope : 0.0f);
    }
}

void cuda_launch_pointwise(const launch *l, float *loss, int32_t *correct, void *dlogits,
                           launch_type dlogits_type, const float *logits, const float *targets, int64_t n,
                           int sigmoid, const double *loss_scale)
{
    if (n > 0) {
        BY_TYPE(dlogits_type, LAUNCH(l, pointwise_kernel<A>, (unsigned)((n + BLOCK - 1) / BLOCK), BLOCK, 0,
                                     loss, correct, (A *)dlogits, logits, targets, n, sigmoid, loss_scale));
    }
}
