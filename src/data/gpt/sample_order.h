/* sample_order: which tokens a sample of GPT pre-training is, in the order of Megatron-LM's index files: the
 * documents of all epochs in a shuffled row, cut into windows, and the windows shuffled.
 *
 * The rule: all three arrays are those that the replaced system makes, number by number.  One generator,
 * numpy's RandomState(seed), shuffles documents, then windows.  If the last epoch supplies less than four
 * fifths of an epoch's samples, it is shuffled apart and comes last.
 *
 * Source: megatron/data/gpt_dataset.py and dataset_utils.py of Megatron-DeepSpeed. */
#ifndef KILN_DATA_GPT_SAMPLE_ORDER_H
#define KILN_DATA_GPT_SAMPLE_ORDER_H

#include "core/progress.h"
#include "core/status.h"

#include <stddef.h>

struct sample_order {
    int64_t n_epochs;
    bool last_apart; /* the last epoch was shuffled apart */
    /* documents: all, and those that were shuffled first, without the last epoch if that is apart */
    int64_t n_documents, n_first_documents;
    int64_t n_samples, n_first_samples; /* samples: all, and those shuffled first */
    /* borrowed; NULL: only the sizes are known */
    const int32_t *document;  /* [n_documents] number of a sequence of the store */
    const int32_t *starts;    /* [n_samples + 1, 2] of each window its place in `document`, the token in it */
    const uint32_t *shuffled; /* [n_samples] the window of each sample */
};

struct sample_order_config {
    const unsigned char *sizes; /* sizes of the store's sequences, i32 each, unaligned (io/indexed.h) */
    int64_t first, end;         /* the sequences of this split */
    int64_t n_wanted;           /* samples */
    int64_t seq_length;         /* S; a window is S + 1 tokens, of which one is the next's first */
    uint32_t seed;
};

/* Computes the sizes of the arrays.  STATUS_DATA: the split has no token or too few for a sample;
 * STATUS_USAGE: more documents or windows than 32 bits number. */
struct status sample_order_plan(struct sample_order *o, const struct sample_order_config *config);

/* Bytes of all three arrays. */
size_t sample_order_bytes(const struct sample_order *o);

/* Fills document[n_documents] and shuffled[n_samples]. */
void sample_order_shuffle(const struct sample_order *o, const struct sample_order_config *config,
                          int32_t *document, uint32_t *shuffled, struct progress *progress);

/* A row of `starts`; a zeroed one is the row of the first window. */
struct sample_start {
    int32_t place, token;
};
void sample_start_next(struct sample_start *start, const int32_t *document,
                       const struct sample_order_config *config);

/* Finds which array is wrong, SAMPLE_ORDER_N_ARRAYS for none: documents and windows must be complete
 * permutations of what the sizes say, and the starts follow from the documents.  STATUS_MEMORY. */
enum sample_order_array {
    SAMPLE_ORDER_DOCUMENT,
    SAMPLE_ORDER_STARTS,
    SAMPLE_ORDER_SHUFFLED,
    SAMPLE_ORDER_N_ARRAYS,
};
struct status sample_order_check(enum sample_order_array *wrong, const struct sample_order *o,
                                 const struct sample_order_config *config);

/* Bounds [4] of the sequences of training, validation and test by a list such as "949,50,1", with commas or
 * slashes; a single number is all for training.  STATUS_USAGE. */
struct status sample_order_split(int64_t bounds[4], const char *list, int64_t n_sequences);

#endif
