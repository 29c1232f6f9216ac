/* The loss of answer spans: a softmax over the tokens of each sequence, for starts and for ends.  A
 * sequence's two columns have a stride of two, so they are copied into runs of their own first. */
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/vmath.h"

#include <math.h>
#include <string.h>

struct span_call {
    tensor loss, correct, dlogits, logits;
    const int32_t *cu_seqlens, *labels;
    float scale;
};

static void store_column(tensor t, int64_t row, int64_t n, int64_t e, const float *values)
{
    for (int64_t i = 0; i < n; i++) {
        if (t.dtype == DTYPE_BF16) {
            ((uint16_t *)t.data)[2 * (row + i) + e] = bf16_from_f32(values[i]);
        } else {
            ((float *)t.data)[2 * (row + i) + e] = values[i];
        }
    }
}

/* Item 2 b + e: one end of one sequence. */
static void span_item(const void *context, int64_t item, void *lane)
{
    const struct span_call *c = context;
    int64_t b = item / 2, e = item % 2;
    int64_t first = c->cu_seqlens[b], n = c->cu_seqlens[b + 1] - first;
    int32_t label = c->labels[item];
    float *v = lane;
    ((float *)c->loss.data)[item] = 0;
    ((int32_t *)c->correct.data)[item] = 0;
    if (label < 0) {
        return;
    }
    const float *logits = (const float *)c->logits.data + 2 * first + e;
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        v[i] = logits[2 * i];
        best = v[i] > v[best] ? i : best;
    }
    float max = v[best], sum = 0, wanted = v[label];
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        v[i] = vmath_exp(v[i] - max);
        sum += v[i];
    }
    ((float *)c->loss.data)[item] = (float)log((double)sum) + (max - wanted);
    ((int32_t *)c->correct.data)[item] = best == label;
    if (!tensor_is_null(c->dlogits)) {
        float factor = c->scale / sum;
        for (int64_t i = 0; i < n; i++) {
            v[i] *= factor;
        }
        v[label] -= c->scale;
        store_column(c->dlogits, first, n, e, v);
    }
}

/* The longest sequence; -1, with the reason in the exec, if bounds or labels point outside the logits. */
static int64_t longest_sequence(struct exec *x, const char *op, tensor logits, tensor cu_seqlens,
                                tensor labels)
{
    const int32_t *cu = cu_seqlens.data, *label = labels.data;
    int64_t longest = 0;
    for (int64_t b = 0; b < tensor_rows(labels); b++) {
        int64_t n = (int64_t)cu[b + 1] - cu[b];
        if (cu[b] < 0 || n < 0 || cu[b + 1] > tensor_rows(logits) || label[2 * b] >= n ||
            label[2 * b + 1] >= n) {
            exec_fail(x, STATUS_DATA, op, "sequence %lld has the rows [%d, %d) of %lld and the span %d to %d",
                      (long long)b, (int)cu[b], (int)cu[b + 1], (long long)tensor_rows(logits),
                      (int)label[2 * b], (int)label[2 * b + 1]);
            return -1;
        }
        longest = n > longest ? n : longest;
    }
    return longest;
}

static void cpu_span_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                                   tensor cu_seqlens, tensor labels, tensor scale)
{
    const char *op = "span_cross_entropy";
    tensor matrix = tensor_is_null(dlogits) ? logits : dlogits;
    if (!accept_tensors(x, op, ACCEPT_LIST(matrix), ACCEPT_LIST(loss)) ||
        !accept_tensors(x, op, ACCEPT_LIST(logits), NULL, 0)) {
        return;
    }
    if (logits.dtype != DTYPE_F32 || !tensor_is_dense(logits) || !tensor_is_dense(matrix) ||
        scale.dtype != DTYPE_F64) {
        exec_fail(x, STATUS_USAGE, op, "logits must be dense and fp32, and scale fp64");
        return;
    }
    int64_t longest = longest_sequence(x, op, logits, cu_seqlens, labels);
    if (longest < 0) {
        return;
    }
    if (!tensor_is_null(dlogits)) {
        memset(dlogits.data, 0, tensor_bytes(dlogits));
    }
    struct span_call c = {
        loss, correct, dlogits, logits, cu_seqlens.data, labels.data, (float)*(const double *)scale.data};
    lanes_run(x, op, tensor_count(labels), (size_t)longest * sizeof(float), span_item, &c);
}

KERNEL_FILL(span, struct ops)
{
    t->span_cross_entropy = cpu_span_cross_entropy;
}
