/* text_batch: fills a batch (core/batch.h) for a model of text, front to back: batch_clear, then for each
 * sequence text_batch_add and its labels, then batch_finish. */
#ifndef KILN_DATA_TEXT_BATCH_H
#define KILN_DATA_TEXT_BATCH_H

#include "nn/text_batch_layout.h"

/* The limits of a batch of at most `n_sequences` sequences, each of at most `max_seq_length` tokens and
 * `max_masked` labels. */
struct batch_limits text_batch_limits(int64_t n_sequences, int64_t max_seq_length, int64_t max_masked);

/* Allocates a batch with these limits; batch_fini frees it.  STATUS_MEMORY. */
struct status text_batch_init(struct batch *b, struct batch_limits limits);

/* Appends a sequence of n tokens whose first n_first are segment 0, with the key of its dropout rows, and
 * returns ids[n], which the caller fills. */
int32_t *text_batch_add(struct batch *b, int64_t n, int64_t n_first, int32_t nsp_label, int32_t sequence_key);

/* Appends tokens [first, first + n) of a sequence whose keys are kept in `pages` (core/batch.h), all of
 * segment 0, and returns ids[n], which the caller fills. */
int32_t *text_batch_add_cached(struct batch *b, int64_t n, int64_t first, const int32_t *pages,
                               int32_t sequence_key);

/* Sets the answer's place in the last sequence; without this call the sequence has no such label. */
void text_batch_set_span(struct batch *b, int32_t start, int32_t end);

/* The buffers of more predictions in the last sequence, for their places and labels; text_batch_take_masked
 * adds the first m of them to the batch. */
int32_t *text_batch_masked_positions(const struct batch *b);
int32_t *text_batch_masked_labels(const struct batch *b);
void text_batch_take_masked(struct batch *b, int64_t m);

#endif
