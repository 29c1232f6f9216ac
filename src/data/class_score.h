/* class_score: how good the scores of a classifier are, by GLUE's metrics as scikit-learn and scipy compute them.
 *
 * One label: accuracy, Matthews' correlation, and the F1 of label 1 where there are two labels, else the mean over the
 * labels that occur and the one over all decisions.  Any labels: accuracy of whole rows and both means of F1.  Numbers:
 * correlations of Pearson and Spearman, mean squared error.  What is 0 / 0 counts as 0. */
#ifndef KILN_DATA_CLASS_SCORE_H
#define KILN_DATA_CLASS_SCORE_H

#include "data/score_list.h"
#include "nn/bert_config.h"

/* Of logits [n, n_labels] and labels as a batch holds them, [n] classes or [n, n_labels] in the bits of fp32; rows without
 * a label do not count.  STATUS_DATA if no row has one. */
struct status class_score(struct score_list *out, enum bert_problem problem, int64_t n, int64_t n_labels,
                          const float *logits, const int32_t *labels);

/* The label with the highest score; the first of equals. */
int64_t class_score_best(const float *logits, int64_t n_labels);

#endif
