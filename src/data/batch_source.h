/* batch_source: the interface of anything that makes batches. data/bert/bert_loader makes them from a token
 * store, data/bert/shard_loader from HDF5 shards.
 *
 * The rule: the contents of step s and of held-out batch i depend only on the source's configuration and on s
 * or i. */
#ifndef KILN_DATA_BATCH_SOURCE_H
#define KILN_DATA_BATCH_SOURCE_H

#include "core/batch.h"

/* The flags that say what a step has. */
struct batch_flags {
    int64_t max_seq_length;              /* tokens of a sequence, special tokens included */
    int64_t train_batch_size;            /* sequences of an optimizer step; records, of HDF5 files */
    int64_t gradient_accumulation_steps; /* micro-batches that they are cut into */
    bool in_order;                       /* samples as they lie in their file, without a permutation */
};

struct batch_source {
    const void *self;                  /* borrowed; NULL: there is no source */
    const struct batch_layout *layout; /* layout of every batch */
    struct batch_limits limits;        /* limits of every micro-batch and held-out batch */
    int64_t n_micro;                   /* micro-batches of a step */

    /* Fills `out`, whose micro-batches have these limits, with those of step `step` (from 1) from
     * out->first_micro on: all of the step or, where ranks share it, a part.  Counts those.  One thread at a
     * time. */
    struct status (*fill)(const void *self, int64_t step, struct batch_step *out);

    /* How many held-out batches the first min(n, all) samples make, in a fixed order that is the same in
     * every run. */
    int64_t (*heldout_batches)(const void *self, int64_t n);

    /* Fills `out`, of these limits, with held-out batch `index`. */
    struct status (*heldout)(const void *self, int64_t n, int64_t index, struct batch *out);

    /* Adds the number of occurrences of each piece in the source's text, or in a fair part of it, to
     * counts[vocab_size]. */
    struct status (*count_words)(const void *self, double *counts, int64_t vocab_size);
};

#endif
