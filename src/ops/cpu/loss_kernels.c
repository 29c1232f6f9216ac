/* Cross entropy over a row of logits: the maximum and its place, the sum of exponentials, the gradient; the row stays in
 * the second-level cache between the passes. */
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/vmath.h"

#include <string.h>

struct loss_call {
    tensor loss, correct, dlogits, logits;
    const int32_t *labels;
    int64_t n_classes;
    float scale;
};

static float maximum(const float *v, int64_t n)
{
    float max = v[0];
#pragma omp simd reduction(max : max)
    for (int64_t i = 0; i < n; i++) {
        max = v[i] > max ? v[i] : max;
    }
    return max;
}

/* Index of the first element that equals `value`; 0 if none does (a row of NaNs). */
static int64_t first_equal(const float *v, int64_t n, float value)
{
    int64_t i = 0;
    while (i < n && v[i] != value) {
        i++;
    }
    return i < n ? i : 0;
}

/* In runs of 4,096 summed in fp32, whose sums are added in fp64: the error does not grow with the vocabulary. */
static double sum_of_exponentials(const float *v, int64_t n, float max)
{
    double total = 0;
    for (int64_t first = 0; first < n; first += 4096) {
        float sum = 0;
        int64_t end = kernel_min(n, first + 4096);
#pragma omp simd reduction(+ : sum)
        for (int64_t i = first; i < end; i++) {
            sum += vmath_exp(v[i] - max);
        }
        total += (double)sum;
    }
    return total;
}

static void write_gradient(const struct loss_call *c, int64_t row, const float *logits, float lse,
                           float *buffer)
{
    int64_t cols = tensor_cols(c->logits), label = c->labels[row];
    enum { BLOCK = 1024 };
    for (int64_t first = 0; first < cols; first += BLOCK) {
        int64_t n = kernel_min(BLOCK, cols - first);
        int64_t live = label < 0 || first >= c->n_classes ? 0 : kernel_min(n, c->n_classes - first);
        float *d = rows_target(c->dlogits, row, first, buffer);
#pragma omp simd
        for (int64_t i = 0; i < live; i++) {
            d[i] = c->scale * vmath_exp(logits[first + i] - lse);
        }
        memset(d + live, 0, (size_t)(n - live) * sizeof(float));
        if (label >= first && label < first + live) {
            d[label - first] -= c->scale;
        }
        rows_store(c->dlogits, row, first, n, d);
    }
}

static void loss_item(const void *context, int64_t row, void *lane)
{
    const struct loss_call *c = context;
    const float *logits = rows_f32(c->logits, row);
    int64_t label = c->labels[row];
    float loss = 0, lse = 0;
    int32_t correct = 0;
    if (label >= 0) {
        float max = maximum(logits, c->n_classes);
        float log_sum = (float)log(sum_of_exponentials(logits, c->n_classes, max));
        lse = max + log_sum;
        loss = log_sum + (max - logits[label]);
        correct = first_equal(logits, c->n_classes, max) == label;
    }
    ((float *)c->loss.data)[row] = loss;
    ((int32_t *)c->correct.data)[row] = correct;
    if (!tensor_is_null(c->dlogits)) {
        write_gradient(c, row, logits, lse, lane);
    }
}

static void cpu_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                              tensor labels, int64_t n_classes, double scale)
{
    const char *op = "cross_entropy";
    tensor matrix = tensor_is_null(dlogits) ? logits : dlogits;
    if (!accept_tensors(x, op, ACCEPT_LIST(matrix), ACCEPT_LIST(loss)) ||
        !accept_tensors(x, op, ACCEPT_LIST(logits), NULL, 0) ||
        !accept_indices(x, op, "label", labels, -1, n_classes)) {
        return;
    }
    if (logits.dtype != DTYPE_F32 || correct.dtype != DTYPE_I32) {
        exec_fail(x, STATUS_USAGE, op, "logits must be fp32 and correct i32, but are %s and %s",
                  dtype_name(logits.dtype), dtype_name(correct.dtype));
        return;
    }
    struct loss_call c = {loss, correct, dlogits, logits, labels.data, n_classes, (float)scale};
    lanes_run(x, op, tensor_rows(logits), 1024 * sizeof(float), loss_item, &c);
}

KERNEL_FILL(loss, struct ops)
{
    t->cross_entropy = cpu_cross_entropy;
}
