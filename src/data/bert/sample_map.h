/* sample_map: where the training samples of one sequence length begin in a token store.
 *
 * Inside a document sentences accumulate until they have the tokens of a sequence, less its special tokens,
 * or the document ends; these sentences are one sample.  So the samples tile the store: sample i
 * is the sentences [first[i], first[i + 1]), and the map takes 4 bytes a sample.  Everything random about
 * a sample (split point, next sentence, masks) is drawn when it is used.
 *
 * Source: create_pretraining_data of the replaced system, whose sentences accumulate in the same way. */
#ifndef KILN_DATA_SAMPLE_MAP_H
#define KILN_DATA_SAMPLE_MAP_H

#include "io/indexed.h"

struct sample_map {
    const struct indexed *store; /* borrowed */
    uint32_t *first;             /* [n_samples + 1] sentence */
    int64_t n_samples;
};

struct sample {
    int64_t document;
    int64_t first;       /* sentence, counted over the complete store */
    int64_t n_sentences; /* at least 1, all of `document` */
};

/* Builds the map of a store, of samples of max_tokens tokens without special ones, which must outlive it, in
 * O(sentences).  STATUS_DATA if the store is empty, has an empty document or sentence, or 2^32 sentences and
 * more. */
struct status sample_map_build(struct sample_map *m, const struct indexed *store, int64_t max_tokens);
void sample_map_fini(struct sample_map *m);

/* Sample `index` of [0, n_samples); O(log documents). */
struct sample sample_map_at(const struct sample_map *m, int64_t index);

#endif
