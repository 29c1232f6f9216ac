#include "data/class_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Counts for one label: correct predictions of it, all predictions of it, and its true occurrences. */
struct tally {
    double hit, said, meant;
};

struct scoring {
    struct score_list *out;
    int64_t n_labels;
    struct tally *tallies; /* [n_labels] */
    double n, n_right;
};

int64_t class_score_best(const float *logits, int64_t n_labels)
{
    int64_t best = 0;
    for (int64_t k = 1; k < n_labels; k++) {
        best = logits[k] > logits[best] ? k : best;
    }
    return best;
}

static double quotient(double a, double b)
{
    return b == 0 ? 0 : a / b;
}

static double f1_of(struct tally t)
{
    return quotient(2 * t.hit, t.said + t.meant);
}

/* F1 over all decisions (micro) and the mean over labels (macro); labels that are neither predicted nor true
 * count only with `all`. */
static void tell_f1(struct scoring *s, bool all)
{
    struct tally sum = {0};
    double mean = 0;
    int64_t n = 0;
    for (int64_t k = 0; k < s->n_labels; k++) {
        struct tally t = s->tallies[k];
        sum = (struct tally){sum.hit + t.hit, sum.said + t.said, sum.meant + t.meant};
        mean += f1_of(t);
        n += all || t.said + t.meant > 0;
    }
    score_list_add(s->out, "f1_micro", f1_of(sum));
    score_list_add(s->out, "f1_macro", quotient(mean, (double)n));
}

/* Gorodkin 2004, doi 10.1016/j.compbiolchem.2004.09.006, equation 6. */
static double matthews(const struct scoring *s)
{
    double both = s->n_right * s->n, said = s->n * s->n, truth = s->n * s->n;
    for (int64_t k = 0; k < s->n_labels; k++) {
        struct tally t = s->tallies[k];
        both -= t.said * t.meant;
        said -= t.said * t.said;
        truth -= t.meant * t.meant;
    }
    return quotient(both, sqrt(said * truth));
}

static void score_one_label(struct scoring *s, int64_t n, const float *logits, const int32_t *labels)
{
    for (int64_t i = 0; i < n; i++) {
        if (labels[i] < 0) {
            continue;
        }
        int64_t said = class_score_best(logits + i * s->n_labels, s->n_labels);
        s->tallies[said].said++;
        s->tallies[labels[i]].meant++;
        s->tallies[said].hit += said == labels[i];
        s->n_right += said == labels[i];
        s->n++;
    }
    score_list_add(s->out, "accuracy", quotient(s->n_right, s->n));
    if (s->n_labels == 2) {
        score_list_add(s->out, "f1", f1_of(s->tallies[1]));
    } else {
        tell_f1(s, false);
    }
    score_list_add(s->out, "matthews_correlation", matthews(s));
}

static float number_of(int32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void score_any_labels(struct scoring *s, int64_t n, const float *logits, const int32_t *labels)
{
    for (int64_t i = 0; i < n; i++) {
        const float *row = logits + i * s->n_labels;
        bool right = true, known = true;
        for (int64_t k = 0; k < s->n_labels; k++) {
            known = known && !isnan(number_of(labels[i * s->n_labels + k]));
        }
        for (int64_t k = 0; k < s->n_labels && known; k++) {
            bool said = row[k] > 0, is_true = number_of(labels[i * s->n_labels + k]) > 0.5F;
            s->tallies[k].said += said;
            s->tallies[k].meant += is_true;
            s->tallies[k].hit += said && is_true;
            right = right && said == is_true;
        }
        s->n += known;
        s->n_right += known && right;
    }
    score_list_add(s->out, "accuracy", quotient(s->n_right, s->n));
    tell_f1(s, true);
}

/* A value and its row, for qsort. */
struct ranked {
    double value;
    int64_t row;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* Replaces values by their ranks; equal values share their mean rank. */
static void rank(struct ranked *list, int64_t n, double *values)
{
    for (int64_t i = 0; i < n; i++) {
        list[i] = (struct ranked){values[i], i};
    }
    qsort(list, (size_t)n, sizeof *list, by_value);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && list[end].value == list[i].value;) {
            end++;
        }
        for (int64_t k = i; k < end; k++) {
            values[list[k].row] = (double)(i + end + 1) / 2;
        }
    }
}

static double correlation(const double *x, const double *y, int64_t n)
{
    double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < n; i++) {
        mean_x += x[i] / (double)n;
        mean_y += y[i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        yy += (y[i] - mean_y) * (y[i] - mean_y);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
    }
    return quotient(xy, sqrt(xx) * sqrt(yy));
}

static struct status score_numbers(struct scoring *s, int64_t n, const float *logits, const int32_t *labels)
{
    int64_t n_known = 0;
    double error = 0, *x = calloc((size_t)n + 1, sizeof *x), *y = calloc((size_t)n + 1, sizeof *y);
    struct ranked *list = calloc((size_t)n + 1, sizeof *list);
    if (x == NULL || y == NULL || list == NULL) {
        free(x), free(y), free(list);
        return status_error(STATUS_MEMORY, "out of memory for the ranks of %lld numbers", (long long)n);
    }
    for (int64_t i = 0; i < n; i++) {
        if (!isnan(number_of(labels[i]))) {
            x[n_known] = logits[i];
            y[n_known] = number_of(labels[i]);
            error += (x[n_known] - y[n_known]) * (x[n_known] - y[n_known]);
            n_known++;
        }
    }
    s->n = (double)n_known;
    score_list_add(s->out, "pearson", correlation(x, y, n_known));
    rank(list, n_known, x);
    rank(list, n_known, y);
    score_list_add(s->out, "spearmanr", correlation(x, y, n_known));
    score_list_add(s->out, "mse", quotient(error, (double)n_known));
    free(x);
    free(y);
    free(list);
    return status_ok();
}

struct status class_score(struct score_list *out, enum label_problem problem, int64_t n, int64_t n_labels,
                          const float *logits, const int32_t *labels)
{
    struct scoring s = {.out = out, .n_labels = n_labels};
    struct status status = status_ok();
    *out = (struct score_list){0};
    s.tallies = calloc((size_t)n_labels, sizeof *s.tallies);
    if (s.tallies == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the counts of %lld labels",
                            (long long)n_labels);
    }
    if (problem == PROBLEM_SINGLE_LABEL) {
        score_one_label(&s, n, logits, labels);
    } else if (problem == PROBLEM_MULTI_LABEL) {
        score_any_labels(&s, n, logits, labels);
    } else {
        status = score_numbers(&s, n * n_labels, logits, labels);
    }
    free(s.tallies);
    TRY(status);
    return s.n > 0 ? status_ok() : status_error(STATUS_DATA, "no row has a label to score against");
}
