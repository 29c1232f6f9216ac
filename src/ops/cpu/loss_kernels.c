/* Cross entropy over a row of logits: the maximum and its place, the exponentials and their sum, the
 * gradient; the row stays in the second-level cache between the passes. */
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/vmath.h"

#include <math.h>
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

/* Whether element `at` is the first of those that equal `max`. */
static bool is_first(const float *v, int64_t at, float max)
{
    int equal_before = 0;
    if (v[at] != max) {
        return false;
    }
#pragma omp simd reduction(+ : equal_before)
    for (int64_t i = 0; i < at; i++) {
        equal_before += v[i] == max;
    }
    return equal_before == 0;
}

/* e^(v - max) into `out`, which may be `v`.  Returns their sum: runs of 256 are summed in fp32 and the runs
 * in fp64, so the error does not grow with the vocabulary. */
static double exponentials(float *out, const float *v, int64_t n, float max)
{
    enum { RUN = 256 };
    double total = 0;
    for (int64_t first = 0; first < n; first += RUN) {
        float sum = 0;
        int64_t end = kernel_min(n, first + RUN);
#pragma omp simd reduction(+ : sum)
        for (int64_t i = first; i < end; i++) {
            out[i] = vmath_exp2((v[i] - max) * VMATH_LOG2_E);
            sum += out[i];
        }
        total += (double)sum;
    }
    return total;
}

/* Row `row` of `out` = factor v, then zeros from column n. */
static void store_scaled(tensor out, int64_t row, const float *v, int64_t n, float factor)
{
    int64_t cols = tensor_cols(out);
    if (out.dtype == DTYPE_F32) {
        float *to = rows_f32(out, row);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            to[i] = factor * v[i];
        }
        memset(to + n, 0, (size_t)(cols - n) * sizeof *to);
    } else {
        uint16_t *to = rows_bf16(out, row);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            to[i] = bf16_from_f32(factor * v[i]);
        }
        memset(to + n, 0, (size_t)(cols - n) * sizeof *to);
    }
}

static void loss_item(const void *context, int64_t row, void *lane)
{
    const struct loss_call *c = context;
    const float *logits = rows_f32(c->logits, row);
    int64_t label = c->labels[row], live = label < 0 ? 0 : c->n_classes;
    bool with_gradient = !tensor_is_null(c->dlogits);
    float *d = with_gradient ? rows_target(c->dlogits, row, 0, lane) : lane;
    float loss = 0, factor = 0;
    int32_t correct = 0;
    if (label >= 0) {
        float max = maximum(logits, live), at_label = logits[label];
        correct = is_first(logits, label, max);
        double sum = exponentials(d, logits, live, max);
        loss = (float)log(sum) + (max - at_label);
        factor = (float)((double)c->scale / sum);
        d[label] -= (float)sum; /* becomes scale (p - 1) when it is multiplied below */
    }
    ((float *)c->loss.data)[row] = loss;
    ((int32_t *)c->correct.data)[row] = correct;
    if (with_gradient) {
        store_scaled(c->dlogits, row, d, live, factor);
    }
}

static void cpu_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                              tensor labels, int64_t n_classes, tensor scale)
{
    const char *op = "cross_entropy";
    tensor matrix = tensor_is_null(dlogits) ? logits : dlogits;
    if (!accept_tensors(x, op, ACCEPT_LIST(matrix), ACCEPT_LIST(loss)) ||
        !accept_tensors(x, op, ACCEPT_LIST(logits), NULL, 0) ||
        !accept_indices(x, op, "label", labels, -1, n_classes)) {
        return;
    }
    if (logits.dtype != DTYPE_F32 || correct.dtype != DTYPE_I32 || scale.dtype != DTYPE_F64) {
        exec_fail(x, STATUS_USAGE, op,
                  "logits must be fp32, correct i32 and scale fp64, but are %s, %s and %s",
                  dtype_name(logits.dtype), dtype_name(correct.dtype), dtype_name(scale.dtype));
        return;
    }
    struct loss_call c = {
        loss, correct, dlogits, logits, labels.data, n_classes, (float)*(const double *)scale.data};
    lanes_run(x, op, tensor_rows(logits), (size_t)tensor_cols(logits) * sizeof(float), loss_item, &c);
}

struct pointwise_call {
    tensor loss, correct, dlogits, logits, targets;
    enum pointwise_loss kind;
    float scale;
};

static void pointwise_item(const void *context, int64_t i, void *lane)
{
    const struct pointwise_call *c = context;
    float z = ((const float *)c->logits.data)[i], y = ((const float *)c->targets.data)[i];
    bool sigmoid = c->kind == POINTWISE_SIGMOID, is_label = !isnan(y);
    float apart = z - y, small = expf(-fabsf(z)), s = z < 0 ? small / (1 + small) : 1 / (1 + small);
    float value = sigmoid ? fmaxf(z, 0) - z * y + log1pf(small) : apart * apart;
    float slope = is_label ? c->scale * (sigmoid ? s - y : 2 * apart) : 0;
    (void)lane;
    ((float *)c->loss.data)[i] = is_label ? value : 0;
    ((int32_t *)c->correct.data)[i] = is_label && sigmoid && (z > 0) == (y > 0.5F);
    if (c->dlogits.dtype == DTYPE_BF16) {
        ((uint16_t *)c->dlogits.data)[i] = bf16_from_f32(slope);
    } else if (!tensor_is_null(c->dlogits)) {
        ((float *)c->dlogits.data)[i] = slope;
    }
}

static void cpu_pointwise(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                          tensor targets, enum pointwise_loss kind, tensor scale)
{
    const char *op = "pointwise";
    tensor matrix = tensor_is_null(dlogits) ? logits : dlogits;
    if (!accept_tensors(x, op, ACCEPT_LIST(matrix), ACCEPT_LIST(loss)) ||
        !accept_tensors(x, op, ACCEPT_LIST(logits, targets), NULL, 0)) {
        return;
    }
    if (logits.dtype != DTYPE_F32 || targets.dtype != DTYPE_F32 || !tensor_is_dense(logits) ||
        !tensor_is_dense(matrix) || scale.dtype != DTYPE_F64) {
        exec_fail(x, STATUS_USAGE, op, "logits and targets must be dense and fp32, and scale fp64");
        return;
    }
    struct pointwise_call c = {
        loss, correct, dlogits, logits, targets, kind, (float)*(const double *)scale.data};
    lanes_run(x, op, tensor_count(logits), 0, pointwise_item, &c);
}

KERNEL_FILL(loss, struct ops)
{
    t->pointwise = cpu_pointwise;
    t->cross_entropy = cpu_cross_entropy;
}
