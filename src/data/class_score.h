/* class_score: how good the scores of a classifier are, by GLUE's metrics as scikit-learn and scipy compute
 * them.
 *
 * Single-label: accuracy, Matthews' correlation, and F1: that of label 1 if there are two labels, else the
 * macro mean over the labels that occur, and the micro F1 over all decisions.  Multi-label: accuracy of
 * complete rows, macro and micro F1.  Regression: Pearson's and Spearman's correlation, mean squared error.
 * A quotient 0 / 0 counts as 0.
 *
 * The same counts make tables for a page: precision, recall and F1 of each label, and which labels were
 * confused.  A table is JSON, as report/report_chart draws it. */
#ifndef KILN_DATA_CLASS_SCORE_H
#define KILN_DATA_CLASS_SCORE_H

#include "core/json.h"
#include "data/score_list.h"
#include "nn/label_names.h"

/* Scores logits [n, labels->n] against the truth as a batch holds it, [n] classes or [n, labels->n] in the
 * bits of fp32; rows without a label do not count.  Appends tables to the array `tables`, which takes
 * labels->names; NULL: no tables.  STATUS_DATA if no row has a label. */
struct status class_score(struct score_list *out, json_t *tables, const struct model_labels *labels,
                          int64_t n, const float *logits, const int32_t *truth);

/* The label with the highest score; the first of several equal ones. */
int64_t class_score_best(const float *logits, int64_t n_labels);

#endif
