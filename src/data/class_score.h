/* class_score: how good the scores of a classifier are, by GLUE's metrics as scikit-learn and scipy compute them.
 *
 * Single-label: accuracy, Matthews' correlation, and F1: that of label 1 if there are two labels, else the
 * macro mean over the labels that occur, and the micro F1 over all decisions.  Multi-label: accuracy of whole
 * rows, macro and micro F1.  Regression: Pearson's and Spearman's correlation, mean squared error. 0 / 0
 * counts as 0. */
#ifndef KILN_DATA_CLASS_SCORE_H
#define KILN_DATA_CLASS_SCORE_H

#include "data/score_list.h"
#include "nn/bert/bert_config.h"

/* Scores logits [n, n_labels] against labels as a batch holds them, [n] classes or [n, n_labels] in the bits
 * of fp32; rows without a label do not count.  STATUS_DATA if no row has one. */
struct status class_score(struct score_list *out, enum label_problem problem, int64_t n, int64_t n_labels,
                          const float *logits, const int32_t *labels);

/* The label with the highest score; the first of several equal ones. */
int64_t class_score_best(const float *logits, int64_t n_labels);

#endif
