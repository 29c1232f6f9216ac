/* gpt_counts: what counts of n-grams (ngram/kneser_ney.h) lose on held-out samples: the baseline for a run of
 * a decoder.
 *
 * The rule: they see what the model sees: the store as one long text, in which documents follow each other;
 * and only the held-out sample's own tokens. */
#ifndef KILN_TASK_GPT_COUNTS_H
#define KILN_TASK_GPT_COUNTS_H

#include "data/gpt/token_windows.h"
#include "train/evaluate.h"

/* Counts n_tokens of the tokens of `sets`, of each its share of them or all that it has, in stretches that
 * are spread evenly over a set, and measures the first n_samples of `heldout`.  STATUS_DATA: an id that
 * n_words of the sets does not have; STATUS_MEMORY. */
struct status gpt_counts_measure(struct ngram_score *score, const struct token_windows *sets,
                                 const double *shares, int n_sets, int64_t n_tokens,
                                 const struct batch_source *heldout, int64_t n_samples);

#endif
