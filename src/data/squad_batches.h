/* squad_batches: features as ragged batches, for training in a keyed order and for prediction by length.
 *
 * What step s trains on is a pure function of (seed, s), as in data/bert_loader.h: the features of epoch e
 * are those of a permutation keyed by (seed, e), batch after batch, the last one smaller. */
#ifndef KILN_DATA_SQUAD_BATCHES_H
#define KILN_DATA_SQUAD_BATCHES_H

#include "data/bert_batch.h"
#include "data/squad_features.h"

struct squad_batches {
    const struct squad_features *features; /* borrowed */
    int64_t *order; /* [features->n] by length, longest first: the order of prediction; NULL for training */
    int64_t batch_size; /* features of an optimizer step, or of a prediction */
    int64_t n_micro;    /* micro-batches of an optimizer step; 1 for prediction */
    uint64_t seed;
    int32_t pad_id;
};

/* For training: batch_size must be a multiple of n_micro (STATUS_USAGE). */
struct status squad_batches_init(struct squad_batches *b, const struct squad_features *f, int64_t batch_size,
                                 int64_t n_micro, uint64_t seed, int32_t pad_id);

/* For prediction: the features sorted by length. */
struct status squad_batches_init_sorted(struct squad_batches *b, const struct squad_features *f,
                                        int64_t batch_size, int32_t pad_id);
void squad_batches_fini(struct squad_batches *b);

int64_t squad_batches_per_epoch(const struct squad_batches *b);

/* Upper bounds of every micro-batch; no position is masked. */
struct batch_limits squad_batches_limits(const struct squad_batches *b);

/* Fills `out` with optimizer step `step`, from 1. */
void squad_batches_step(const struct squad_batches *b, int64_t step, struct batch_step *out);

/* Fills `out` with prediction batch `index`; indices[k] gets the feature of sequence k. */
void squad_batches_sorted(const struct squad_batches *b, int64_t index, struct batch *out, int64_t *indices);

#endif
