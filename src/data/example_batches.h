/* example_batches: examples as ragged batches for training, in a keyed random order.
 *
 * The examples of step s are a pure function of (seed, s), as in data/bert/bert_loader.h: the examples of
 * epoch e are those of a permutation keyed by (seed, e), batch after batch, the last one smaller. */
#ifndef KILN_DATA_EXAMPLE_BATCHES_H
#define KILN_DATA_EXAMPLE_BATCHES_H

#include "data/example_source.h"

struct example_batches {
    struct example_source source;
    int64_t batch_size; /* examples of an optimizer step */
    int64_t n_micro;    /* micro-batches of an optimizer step */
    uint64_t seed;
    int32_t pad_id;
};

/* batch_size must be a multiple of n_micro (STATUS_USAGE). */
struct status example_batches_init(struct example_batches *b, const struct example_source *source,
                                   int64_t batch_size, int64_t n_micro, uint64_t seed, int32_t pad_id);

/* Optimizer steps in which each example comes once. */
int64_t example_batches_per_epoch(const struct example_batches *b);

/* Upper bounds of every micro-batch; no position is masked. */
struct batch_limits example_batches_limits(const struct example_batches *b);

/* Fills `out` with optimizer step `step`, from 1: as batch_source.fill does. */
void example_batches_step(const struct example_batches *b, int64_t step, struct batch_step *out);

#endif
