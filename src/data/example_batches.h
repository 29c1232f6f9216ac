/* example_batches: examples as ragged batches, in a keyed random order for training and sorted by length for
 * prediction.
 *
 * The examples of step s are a pure function of (seed, s), as in data/bert_loader.h: the examples of epoch e
 * are those of a permutation keyed by (seed, e), batch after batch, the last one smaller. */
#ifndef KILN_DATA_EXAMPLE_BATCHES_H
#define KILN_DATA_EXAMPLE_BATCHES_H

#include "data/bert_batch.h"

/* A source of examples: the code that makes them fills it in, and it borrows them. */
struct example_source {
    const char *name; /* for messages: "features" */
    const void *self;
    int64_t n, max_length; /* the number of examples; the length of the longest */
    int64_t (*length)(const void *self, int64_t i);
    /* Appends example i as a sequence, labels included, with the key of its dropout rows. */
    void (*add)(const void *self, int64_t i, int32_t key, struct batch *out);
};

struct example_batches {
    struct example_source source;
    int64_t *order;     /* [source.n] by length, longest first: the order of prediction; NULL for training */
    int64_t batch_size; /* examples of an optimizer step, or of a prediction batch */
    int64_t n_micro;    /* micro-batches of an optimizer step; 1 for prediction */
    uint64_t seed;
    int32_t pad_id;
};

/* For training: batch_size must be a multiple of n_micro (STATUS_USAGE). */
struct status example_batches_init(struct example_batches *b, const struct example_source *source,
                                   int64_t batch_size, int64_t n_micro, uint64_t seed, int32_t pad_id);

/* For prediction: the examples sorted by length. */
struct status example_batches_init_sorted(struct example_batches *b, const struct example_source *source,
                                          int64_t batch_size, int32_t pad_id);
void example_batches_fini(struct example_batches *b);

int64_t example_batches_per_epoch(const struct example_batches *b);

/* Upper bounds of every micro-batch; no position is masked. */
struct batch_limits example_batches_limits(const struct example_batches *b);

/* Fills `out` with optimizer step `step`, from 1: as batch_source.fill does. */
void example_batches_step(const struct example_batches *b, int64_t step, struct batch_step *out);

/* Fills `out` with prediction batch `index`; indices[k] gets the example of sequence k. */
void example_batches_sorted(const struct example_batches *b, int64_t index, struct batch *out,
                            int64_t *indices);

#endif
