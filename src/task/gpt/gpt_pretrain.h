/* gpt_pretrain: the pre-training of decoders, GPT-2's and BLOOM's: the next token of one long text. */
#ifndef KILN_TASK_GPT_PRETRAIN_H
#define KILN_TASK_GPT_PRETRAIN_H

#include "data/gpt/token_windows.h"
#include "task/pretrain_kind.h"
#include "train/evaluate.h"

/* Flags of decoders only: pretrain_options.own. */
struct gpt_pretrain_options {
    bool megatron_order; /* training samples in the order of Megatron-LM's index files */
    /* the directory where these files are read, and written if they are missing; NULL: there are none */
    const char *data_cache_path;

    int64_t ngram_tokens; /* tokens of the training text whose n-grams are counted as a baseline; 0: none */

    /* fields of `kiln pretrain-gpt`, where one store has all parts; else NULL and 0 */
    const char *split;   /* the parts of its documents, such as "949,50,1" */
    int64_t n_wanted[3]; /* samples of each part, which its order depends on */

    /* Several stores that are blended; n_sets 0: pretrain_options.input_dir is the only one.  Borrowed. */
    int n_sets;
    const char *const *set_prefixes; /* [n_sets] */
    const double *set_weights;       /* [n_sets] above 0 */
};

extern const struct pretrain_kind gpt2_pretrain, bloom_pretrain;

/* The pre-training of another decoder, of the same stores; its options have a struct gpt_pretrain_options. */
struct pretrain_kind gpt_pretrain_kind(const struct model_family *family);

/* The kind of this family; NULL: the family is no decoder. */
const struct pretrain_kind *gpt_pretrain_find(const struct model_family *family);

/* The samples that a run finds in a store. */
struct gpt_samples {
    int64_t n_train;   /* windows to train on, or examples */
    int64_t n_longest; /* tokens that a sample has at most */
    bool of_answers;   /* the samples are examples (data/gpt/answer_examples.h) */
    int64_t n_examples;
};

/* Measures a store with this split, in windows of `length` tokens.  STATUS_DATA. */
struct status gpt_pretrain_measure(struct gpt_samples *s, const char *prefix, const char *split,
                                   int64_t length);

/* What counts of n-grams (ngram/kneser_ney.h) lose on held-out samples: the baseline for a run of a decoder.
 * They see what the model sees: the store as one long text, in which documents follow each other; and only
 * the held-out sample's own tokens (gpt_counts.c).
 *
 * Counts n_tokens of the tokens of `sets`, of each its share of them or all that it has, in stretches that
 * are spread evenly over a set, and measures the first n_samples of `heldout`.  STATUS_DATA: an id that
 * n_words of the sets does not have; STATUS_MEMORY. */
struct status gpt_counts_measure(struct ngram_score *score, const struct token_windows *sets,
                                 const double *shares, int n_sets, int64_t n_tokens,
                                 const struct batch_source *heldout, int64_t n_samples);

#endif
