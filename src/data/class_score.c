#include "data/class_score.h"

#include "core/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MATRIX_LABELS = 20, /* a matrix of more is not read */
    MOST_PAIRS = 50,
    MOST_ROWS = 1000,
};

/* Counts for one label: correct predictions of it, all predictions of it, and its true occurrences. */
struct tally {
    double hit, said, meant;
};

struct measures {
    double precision, recall, f1;
};

/* One row, or all rows with the same two labels: the true label and the predicted one. */
struct decision {
    int64_t meant, said, count;
};

struct scoring {
    struct score_list *out;
    const struct model_labels *labels;
    int64_t n_labels;
    struct tally *tallies;      /* [n_labels] */
    struct decision *decisions; /* [n] of single labels */
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

static struct measures measures_of(struct tally t)
{
    return (struct measures){quotient(t.hit, t.said), quotient(t.hit, t.meant),
                             quotient(2 * t.hit, t.said + t.meant)};
}

/* The counts of all decisions (micro). */
static struct tally sum_of(const struct scoring *s)
{
    struct tally sum = {0};
    for (int64_t k = 0; k < s->n_labels; k++) {
        struct tally t = s->tallies[k];
        sum = (struct tally){sum.hit + t.hit, sum.said + t.said, sum.meant + t.meant};
    }
    return sum;
}

/* The means over labels (macro); labels that are neither predicted nor true count only in multi-label
 * problems. */
static struct measures mean_of(const struct scoring *s)
{
    struct measures mean = {0};
    double n = 0;
    for (int64_t k = 0; k < s->n_labels; k++) {
        struct measures m = measures_of(s->tallies[k]);
        mean = (struct measures){mean.precision + m.precision, mean.recall + m.recall, mean.f1 + m.f1};
        n += s->labels->problem == PROBLEM_MULTI_LABEL || s->tallies[k].said + s->tallies[k].meant > 0;
    }
    return (struct measures){quotient(mean.precision, n), quotient(mean.recall, n), quotient(mean.f1, n)};
}

static void tell_f1(struct scoring *s)
{
    score_list_add(s->out, "f1_micro", measures_of(sum_of(s)).f1);
    score_list_add(s->out, "f1_macro", mean_of(s).f1);
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
        s->decisions[(int64_t)s->n] = (struct decision){labels[i], said, 1};
        s->n++;
    }
    score_list_add(s->out, "accuracy", quotient(s->n_right, s->n));
    if (s->n_labels == 2) {
        score_list_add(s->out, "f1", measures_of(s->tallies[1]).f1);
    } else {
        tell_f1(s);
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
    tell_f1(s);
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

/* ---- tables ---- */

static const char *name_of(const struct scoring *s, int64_t label)
{
    return label_names_get(s->labels->names, label);
}

/* The label of all rows, of a model that does not tell them apart; -1: it gives several, or there are few
 * rows, or all have it. */
static int64_t only_label(const struct scoring *s)
{
    enum { FEWEST_ROWS = 10 };
    for (int64_t k = 0; k < s->n_labels; k++) {
        if (s->labels->problem == PROBLEM_SINGLE_LABEL && s->n >= FEWEST_ROWS && s->tallies[k].said == s->n &&
            s->tallies[k].meant < s->n) {
            return k;
        }
    }
    return -1;
}

static void add_measures(json_t *rows, const char *name, struct tally t, struct measures m)
{
    json_array_append_new(rows, json_pack("[o, f, f, f, I, I]", json_text(name), m.precision, m.recall, m.f1,
                                          (json_int_t)t.meant, (json_int_t)t.said));
}

static int by_labels(const void *a, const void *b)
{
    const struct decision *x = a, *y = b;
    return x->meant != y->meant ? (x->meant > y->meant) - (x->meant < y->meant)
                                : (x->said > y->said) - (x->said < y->said);
}

/* Orders by count, the largest first; equal counts by their labels. */
static int by_count(const void *a, const void *b)
{
    const struct decision *x = a, *y = b;
    return x->count == y->count ? by_labels(a, b) : (x->count < y->count) - (x->count > y->count);
}

/* The labels in the order of their rows: as they are, or if there are many, the most frequent first. */
static struct decision *order_labels(const struct scoring *s)
{
    struct decision *order = calloc((size_t)s->n_labels, sizeof *order);
    for (int64_t k = 0; order != NULL && k < s->n_labels; k++) {
        order[k] = (struct decision){k, k, (int64_t)s->tallies[k].meant};
    }
    if (order != NULL && s->n_labels > MATRIX_LABELS) {
        qsort(order, (size_t)s->n_labels, sizeof *order, by_count);
    }
    return order;
}

static struct status add_label_table(const struct scoring *s, json_t *tables)
{
    json_t *rows = json_array();
    struct decision *order = order_labels(s);
    if (order == NULL) {
        json_decref(rows);
        return status_error(STATUS_MEMORY, "out of memory for a table of %lld labels",
                            (long long)s->n_labels);
    }
    struct tally sum = sum_of(s);
    char note[320] = "";
    add_measures(rows, "macro average", sum, mean_of(s));
    if (s->labels->problem == PROBLEM_MULTI_LABEL) { /* single labels would have the accuracy here, thrice */
        add_measures(rows, "micro average", sum, measures_of(sum));
    }
    for (int64_t i = 0; i < s->n_labels && i < MOST_ROWS; i++) {
        struct tally t = s->tallies[order[i].meant];
        add_measures(rows, name_of(s, order[i].meant), t, measures_of(t));
    }
    free(order);
    if (s->n_labels > MATRIX_LABELS) {
        snprintf(note, sizeof note, "%lld of %lld labels, the most frequent first",
                 (long long)(s->n_labels < MOST_ROWS ? s->n_labels : MOST_ROWS), (long long)s->n_labels);
    }
    int64_t only = only_label(s);
    if (only >= 0) {
        snprintf(note, sizeof note,
                 "The model gives every text the label %.200s: it has not learnt to tell them apart.",
                 name_of(s, only));
    }
    json_array_append_new(tables, json_pack("{s:s, s:s, s:[s, s, s, s, s, s], s:o}", "title", "Labels",
                                            "note", note, "columns", "label", "precision", "recall", "F1",
                                            "true", "predicted", "rows", rows));
    return status_ok();
}

static void add_matrix(const struct scoring *s, json_t *tables)
{
    int64_t counts[MATRIX_LABELS][MATRIX_LABELS] = {0};
    json_t *columns = json_pack("[s]", "true label"), *rows = json_array();
    for (int64_t i = 0; i < (int64_t)s->n; i++) {
        counts[s->decisions[i].meant][s->decisions[i].said]++;
    }
    for (int64_t k = 0; k < s->n_labels; k++) {
        json_t *row = json_pack("[o]", json_text(name_of(s, k)));
        json_array_append_new(columns, json_text(name_of(s, k)));
        for (int64_t said = 0; said < s->n_labels; said++) {
            json_array_append_new(row, json_integer(counts[k][said]));
        }
        json_array_append_new(rows, row);
    }
    json_array_append_new(tables, json_pack("{s:s, s:s, s:b, s:o, s:o}", "title", "Confusion matrix", "note",
                                            "a row for each true label, a column for each predicted one",
                                            "shaded", 1, "columns", columns, "rows", rows));
}

/* Moves each pair of different labels to the front, with its count; returns how many there are. */
static int64_t count_confusions(const struct scoring *s)
{
    int64_t n = (int64_t)s->n, n_pairs = 0;
    struct decision *d = s->decisions;
    qsort(d, (size_t)n, sizeof *d, by_labels);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && by_labels(&d[i], &d[end]) == 0;) {
            end++;
        }
        if (d[i].meant != d[i].said) {
            d[n_pairs++] = (struct decision){d[i].meant, d[i].said, end - i};
        }
    }
    return n_pairs;
}

static void add_confused_pairs(const struct scoring *s, json_t *tables)
{
    int64_t n_pairs = count_confusions(s);
    json_t *rows = json_array();
    char note[160];
    qsort(s->decisions, (size_t)n_pairs, sizeof *s->decisions, by_count);
    for (int64_t i = 0; i < n_pairs && i < MOST_PAIRS; i++) {
        struct decision d = s->decisions[i];
        json_array_append_new(rows, json_pack("[o, o, I, f]", json_text(name_of(s, d.meant)),
                                              json_text(name_of(s, d.said)), (json_int_t)d.count,
                                              quotient((double)d.count, s->tallies[d.meant].meant)));
    }
    snprintf(note, sizeof note, "%lld of %lld pairs of labels that were confused, the most frequent first",
             (long long)(n_pairs < MOST_PAIRS ? n_pairs : MOST_PAIRS), (long long)n_pairs);
    json_array_append_new(tables, json_pack("{s:s, s:s, s:[s, s, s, s], s:o}", "title", "Confused labels",
                                            "note", note, "columns", "true label", "predicted label", "times",
                                            "fraction of the true label", "rows", rows));
}

/* Nothing was counted of numbers, which have no tables. */
static struct status add_tables(const struct scoring *s, json_t *tables)
{
    if (s->tallies == NULL || s->decisions == NULL) {
        return status_ok();
    }
    TRY(add_label_table(s, tables));
    if (s->labels->problem == PROBLEM_SINGLE_LABEL) {
        (s->n_labels <= MATRIX_LABELS ? add_matrix : add_confused_pairs)(s, tables);
    }
    return status_ok();
}

/* Warns of a model that gives all rows one label, where they have several. */
static void warn_of_one_label(const struct scoring *s)
{
    int64_t k = s->tallies == NULL ? -1 : only_label(s);
    if (k >= 0) {
        log_warning("the model gives all %.0f texts the label %s, which %.0f of them have: it has not "
                    "learnt to tell them apart; train for more epochs, at another rate, or on labels "
                    "that are as frequent as each other",
                    s->n, name_of(s, k), s->tallies[k].meant);
    }
}

static struct status score(struct scoring *s, int64_t n, const float *logits, const int32_t *truth)
{
    enum label_problem problem = s->labels->problem;
    if (problem == PROBLEM_REGRESSION) {
        return score_numbers(s, n * s->n_labels, logits, truth);
    }
    s->tallies = calloc((size_t)s->n_labels, sizeof *s->tallies);
    s->decisions = calloc(problem == PROBLEM_SINGLE_LABEL ? (size_t)n + 1 : 1, sizeof *s->decisions);
    FAIL_IF(s->tallies == NULL || s->decisions == NULL, STATUS_MEMORY,
            "out of memory for the counts of %lld labels and %lld rows", (long long)s->n_labels,
            (long long)n);
    (problem == PROBLEM_SINGLE_LABEL ? score_one_label : score_any_labels)(s, n, logits, truth);
    return status_ok();
}

struct status class_score(struct score_list *out, json_t *tables, const struct model_labels *labels,
                          int64_t n, const float *logits, const int32_t *truth)
{
    struct scoring s = {.out = out, .labels = labels, .n_labels = labels->n};
    *out = (struct score_list){0};
    struct status status = score(&s, n, logits, truth);
    if (!failed(status) && s.n == 0) {
        status = status_error(STATUS_DATA, "no row has a label to score against");
    }
    if (!failed(status) && tables != NULL) {
        warn_of_one_label(&s);
    }
    if (!failed(status) && tables != NULL) {
        status = add_tables(&s, tables);
    }
    free(s.tallies);
    free(s.decisions);
    return status;
}
