/* Cross entropy over a row of logits: the maximum and its place, the exponentials and their sum, the
 * gradient; the row stays in the second-level cache between the passes.  Over a slice of the classes the
 * passes are ops of their own. */
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/softmax.h"

#include <math.h>
#include <string.h>

struct loss_call {
    tensor loss, correct, dlogits, logits;
    const int32_t *labels;
    int64_t n_classes;
    float scale;
};

static int count_equal(const float *v, int64_t n, float value)
{
    int equal = 0;
#pragma omp simd reduction(+ : equal)
    for (int64_t i = 0; i < n; i++) {
        equal += v[i] == value;
    }
    return equal;
}

/* Whether element `at` is the first of those that equal `max`. */
static bool is_first(const float *v, int64_t at, float max)
{
    return v[at] == max && count_equal(v, at, max) == 0;
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
        float max = softmax_maximum(logits, live), at_label = logits[label];
        correct = is_first(logits, label, max);
        double sum = softmax_exponentials(d, logits, live, max);
        loss = softmax_loss(sum, max, at_label);
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

/* A slice of the classes, from class `first` on; n_here of its columns are classes. */
struct slice_call {
    tensor loss, correct, dlogits, logits, maxima, sums;
    const int32_t *labels;
    int64_t first, n_here;
    float scale;
};

static int64_t classes_here(tensor logits, int64_t first, int64_t n_classes)
{
    int64_t n = kernel_min(n_classes - first, tensor_cols(logits));
    return n < 0 ? 0 : n;
}

/* Checks the arguments of all three steps; the first has no labels. */
static bool accept_slice(struct exec *x, const char *op, tensor matrix, tensor vector, tensor logits,
                         tensor labels, int64_t n_classes)
{
    if (!accept_tensors(x, op, ACCEPT_LIST(matrix), ACCEPT_LIST(vector)) ||
        !accept_tensors(x, op, ACCEPT_LIST(logits), NULL, 0) ||
        (!tensor_is_null(labels) && !accept_indices(x, op, "label", labels, -1, n_classes))) {
        return false;
    }
    if (logits.dtype != DTYPE_F32) {
        exec_fail(x, STATUS_USAGE, op, "logits must be fp32, but are %s", dtype_name(logits.dtype));
    }
    return !failed(x->status);
}

static void slice_maxima_item(const void *context, int64_t row, void *lane)
{
    const struct slice_call *c = context;
    (void)lane;
    ((float *)c->maxima.data)[row] = softmax_maximum(rows_f32(c->logits, row), c->n_here);
}

static void cpu_slice_maxima(struct exec *x, tensor maxima, tensor logits, int64_t first, int64_t n_classes)
{
    const char *op = "slice_maxima";
    if (accept_slice(x, op, logits, maxima, logits, NULL_TENSOR, n_classes)) {
        struct slice_call c = {
            .maxima = maxima, .logits = logits, .n_here = classes_here(logits, first, n_classes)};
        lanes_run(x, op, tensor_rows(logits), 0, slice_maxima_item, &c);
    }
}

static void slice_sums_item(const void *context, int64_t row, void *lane)
{
    const struct slice_call *c = context;
    const float *logits = rows_f32(c->logits, row);
    float max = ((const float *)c->maxima.data)[row];
    int64_t at = c->labels[row] - c->first, n = c->labels[row] < 0 ? 0 : c->n_here;
    double *sums = (double *)c->sums.data + 3 * row;
    sums[0] = softmax_exponentials(lane, logits, n, max);
    sums[1] = at >= 0 && at < n ? (double)logits[at] : 0;
    sums[2] = count_equal(logits, kernel_min(at, n), max);
}

static void cpu_slice_sums(struct exec *x, tensor sums, tensor logits, tensor maxima, tensor labels,
                           int64_t first, int64_t n_classes)
{
    const char *op = "slice_sums";
    if (accept_slice(x, op, logits, maxima, logits, labels, n_classes)) {
        struct slice_call c = {.logits = logits,
                               .maxima = maxima,
                               .sums = sums,
                               .labels = labels.data,
                               .first = first,
                               .n_here = classes_here(logits, first, n_classes)};
        lanes_run(x, op, tensor_rows(logits), (size_t)tensor_cols(logits) * sizeof(float), slice_sums_item,
                  &c);
    }
}

static void slice_loss_item(const void *context, int64_t row, void *lane)
{
    const struct slice_call *c = context;
    const float *logits = rows_f32(c->logits, row);
    const double *sums = (const double *)c->sums.data + 3 * row;
    float max = ((const float *)c->maxima.data)[row];
    bool has_label = c->labels[row] >= 0;
    int64_t at = c->labels[row] - c->first, n = has_label ? c->n_here : 0;
    ((float *)c->loss.data)[row] = has_label ? (float)(log(sums[0]) + ((double)max - sums[1])) : 0;
    ((int32_t *)c->correct.data)[row] = has_label && sums[1] == (double)max && sums[2] == 0;
    if (tensor_is_null(c->dlogits)) {
        return;
    }
    float *d = rows_target(c->dlogits, row, 0, lane);
    softmax_exponentials(d, logits, n, max);
    if (at >= 0 && at < n) {
        d[at] -= (float)sums[0]; /* becomes scale (p - 1) when it is multiplied below */
    }
    store_scaled(c->dlogits, row, d, n, has_label ? (float)((double)c->scale / sums[0]) : 0);
}

static void cpu_slice_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits,
                                    tensor logits, tensor maxima, tensor sums, tensor labels, int64_t first,
                                    int64_t n_classes, tensor scale)
{
    const char *op = "slice_cross_entropy";
    tensor matrix = tensor_is_null(dlogits) ? logits : dlogits;
    if (accept_slice(x, op, matrix, loss, logits, labels, n_classes)) {
        struct slice_call c = {.loss = loss,
                               .correct = correct,
                               .dlogits = dlogits,
                               .logits = logits,
                               .maxima = maxima,
                               .sums = sums,
                               .labels = labels.data,
                               .first = first,
                               .n_here = classes_here(logits, first, n_classes),
                               .scale = (float)*(const double *)scale.data};
        lanes_run(x, op, tensor_rows(logits), (size_t)tensor_cols(logits) * sizeof(float), slice_loss_item,
                  &c);
    }
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
    t->slice_maxima = cpu_slice_maxima;
    t->slice_sums = cpu_slice_sums;
    t->slice_cross_entropy = cpu_slice_cross_entropy;
}
