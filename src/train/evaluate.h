/* evaluate: losses and accuracies on held-out text, and those of a model that knows only how often each word
 * occurs. */
#ifndef KILN_TRAIN_EVALUATE_H
#define KILN_TRAIN_EVALUATE_H

#include "data/batch_source.h"
#include "train/trainer.h"

/* The unigram baseline: always predict the training text's word frequencies. */
struct unigram {
    double loss;     /* cross-entropy of the held-out labels, in nats */
    double accuracy; /* share of the held-out labels that are the most frequent word */
};

/* The n-gram baseline: Kneser-Ney's counts of n-grams of the training text (ngram/kneser_ney.h). */
struct ngram_score {
    double loss; /* cross-entropy of held-out tokens, in nats; they read what the model reads */
    int64_t n_counted, n_samples; /* tokens of the training text; held-out samples; 0: not measured */
    int order;                    /* tokens of the longest n-grams */
    double seconds;               /* time that the measurement took */
    size_t most_bytes;            /* most memory in use while it was measured */
};

/* A held-out set: batches fixed once, the same at every trainer_evaluate. */
struct evaluation {
    struct batch_step batches; /* one micro-batch each */
    struct unigram unigram;
};

/* Draws the first `n_samples` samples of the source `heldout` and measures the baseline, counting the words
 * of the source `train`; `labels` is the batch's field that holds the words to predict (model.sums). */
struct status evaluation_init(struct evaluation *e, const struct batch_source *heldout, int64_t n_samples,
                              const struct batch_source *train, int labels, int64_t vocab_size);
void evaluation_fini(struct evaluation *e);

#endif
