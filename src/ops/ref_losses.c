/* ref_losses: the definition of the losses (ops/ref.c). */
#include "ops/ref_slots.h"

#include "ops/ref_access.h"

#include <math.h>

void ref_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                       tensor labels, int64_t n_classes, tensor scale)
{
    for (int64_t m = 0; !stopped(x) && m < tensor_rows(logits); m++) {
        int64_t label = index_at(labels, m), best = 0;
        double sum = 0;
        for (int64_t c = 1; c < n_classes; c++) {
            best = get2(logits, m, c) > get2(logits, m, best) ? c : best;
        }
        double max = get2(logits, m, best);
        for (int64_t c = 0; c < n_classes; c++) {
            sum += exp(get2(logits, m, c) - max);
        }
        double lse = max + log(sum);
        tensor_set(loss, m, label < 0 ? 0.0 : lse - get2(logits, m, label));
        tensor_set(correct, m, label >= 0 && best == label);
        for (int64_t c = 0; !tensor_is_null(dlogits) && c < tensor_cols(logits); c++) {
            double p = c < n_classes ? exp(get2(logits, m, c) - lse) : 0.0;
            set2(dlogits, m, c, label < 0 ? 0.0 : tensor_get(scale, 0) * (p - (c == label)));
        }
    }
}

/* The number of columns of a slice from class `first` on that are classes. */
static int64_t classes_here(tensor logits, int64_t first, int64_t n_classes)
{
    int64_t n = n_classes - first;
    return n < 0 ? 0 : n < tensor_cols(logits) ? n : tensor_cols(logits);
}

void ref_slice_maxima(struct exec *x, tensor maxima, tensor logits, int64_t first, int64_t n_classes)
{
    for (int64_t m = 0; !stopped(x) && m < tensor_rows(logits); m++) {
        double max = -INFINITY;
        for (int64_t c = 0; c < classes_here(logits, first, n_classes); c++) {
            max = get2(logits, m, c) > max ? get2(logits, m, c) : max;
        }
        tensor_set(maxima, m, max);
    }
}

void ref_slice_sums(struct exec *x, tensor sums, tensor logits, tensor maxima, tensor labels, int64_t first,
                    int64_t n_classes)
{
    for (int64_t m = 0; !stopped(x) && m < tensor_rows(logits); m++) {
        int64_t label = index_at(labels, m);
        double max = tensor_get(maxima, m), sum = 0, at_label = 0, before = 0;
        for (int64_t c = 0; label >= 0 && c < classes_here(logits, first, n_classes); c++) {
            double logit = get2(logits, m, c);
            sum += exp(logit - max);
            at_label += first + c == label ? logit : 0;
            before += first + c < label && logit == max;
        }
        set2(sums, m, 0, sum);
        set2(sums, m, 1, at_label);
        set2(sums, m, 2, before);
    }
}

void ref_slice_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                             tensor maxima, tensor sums, tensor labels, int64_t first, int64_t n_classes,
                             tensor scale)
{
    for (int64_t m = 0; !stopped(x) && m < tensor_rows(logits); m++) {
        int64_t label = index_at(labels, m);
        double max = tensor_get(maxima, m), lse = max + log(get2(sums, m, 0)), at_label = get2(sums, m, 1);
        tensor_set(loss, m, label < 0 ? 0.0 : lse - at_label);
        tensor_set(correct, m, label >= 0 && at_label == max && get2(sums, m, 2) == 0);
        for (int64_t c = 0; !tensor_is_null(dlogits) && c < tensor_cols(logits); c++) {
            bool here = c < classes_here(logits, first, n_classes);
            double p = here ? exp(get2(logits, m, c) - lse) : 0.0;
            set2(dlogits, m, c, label < 0 ? 0.0 : tensor_get(scale, 0) * (p - (first + c == label)));
        }
    }
}

/* One end of one sequence: the column `e` of its rows. */
static void span_of_sequence(tensor loss, tensor correct, tensor dlogits, tensor logits, int64_t first,
                             int64_t end, int64_t b, int64_t e, int64_t label, double scale)
{
    int64_t best = first;
    double sum = 0;
    for (int64_t t = first + 1; t < end; t++) {
        best = get2(logits, t, e) > get2(logits, best, e) ? t : best;
    }
    double max = get2(logits, best, e);
    for (int64_t t = first; t < end; t++) {
        sum += exp(get2(logits, t, e) - max);
    }
    double lse = max + log(sum);
    set2(loss, b, e, lse - get2(logits, first + label, e));
    set2(correct, b, e, best == first + label);
    for (int64_t t = first; !tensor_is_null(dlogits) && t < end; t++) {
        set2(dlogits, t, e, scale * (exp(get2(logits, t, e) - lse) - (t == first + label)));
    }
}

void ref_span_cross_entropy(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                            tensor cu_seqlens, tensor labels, tensor scale)
{
    ref_fill(x, loss, 0);
    ref_fill(x, correct, 0);
    if (!tensor_is_null(dlogits)) {
        ref_fill(x, dlogits, 0);
    }
    for (int64_t b = 0; !stopped(x) && b < tensor_rows(labels); b++) {
        for (int64_t e = 0; e < 2; e++) {
            int64_t label = (int64_t)get2(labels, b, e);
            if (label >= 0) {
                span_of_sequence(loss, correct, dlogits, logits, index_at(cu_seqlens, b),
                                 index_at(cu_seqlens, b + 1), b, e, label, tensor_get(scale, 0));
            }
        }
    }
}

void ref_pointwise(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits, tensor targets,
                   enum pointwise_loss kind, tensor scale)
{
    double factor = tensor_get(scale, 0);
    for (int64_t i = 0; !stopped(x) && i < tensor_count(logits); i++) {
        double z = tensor_get(logits, i), y = tensor_get(targets, i), s = 1 / (1 + exp(-z));
        double value =
            kind == POINTWISE_SQUARED ? (z - y) * (z - y) : fmax(z, 0) - z * y + log1p(exp(-fabs(z)));
        double slope = kind == POINTWISE_SQUARED ? 2 * (z - y) : s - y;
        bool is_label = !isnan(y), right = kind == POINTWISE_SIGMOID && (z > 0) == (y > 0.5);
        tensor_set(loss, i, is_label ? value : 0);
        tensor_set(correct, i, is_label && right);
        if (!tensor_is_null(dlogits)) {
            tensor_set(dlogits, i, is_label ? factor * slope : 0);
        }
    }
}
