/* token_windows: batches for a decoder from a store of tokens (io/indexed.h), read as one long text: windows
 * of S + 1 tokens that overlap by one, each token but the last an input and each but the first a label.
 *
 * The rule: sample number g of a run is window number permute(g mod W) of W, under a permutation keyed by the
 * seed and the epoch g / W.  So any step can be made directly, a resumed run sees the same samples, and no
 * index files are needed.  Windows cross the ends of documents, as Megatron-LM's do. */
#ifndef KILN_DATA_GPT_TOKEN_WINDOWS_H
#define KILN_DATA_GPT_TOKEN_WINDOWS_H

#include "data/batch_source.h"
#include "io/indexed.h"

struct token_windows {
    const struct indexed *index; /* borrowed */
    const char *path;            /* of it, for messages; borrowed */
    int64_t first, end;          /* tokens of the store */
    int64_t length;              /* S, the tokens of a sample */
    int64_t n_words;             /* ids from here on are refused */
    int64_t batch_size, micro_size;
    uint64_t seed;
};

/* Sequences [first, end) of a store that are part k of the weights of a split, "949,50,1", rounded as
 * Megatron-LM's get_train_valid_test_split_ rounds them.  STATUS_USAGE names a split that is none. */
struct status token_windows_split(int64_t *first, int64_t *end, const char *split, int k,
                                  int64_t n_sequences);

/* Windows of a sample each; 0 if there are fewer than S + 1 tokens. */
int64_t token_windows_count(const struct token_windows *w);

/* A source of them; `w` must outlive it. */
struct batch_source token_windows_source(const struct token_windows *w, int64_t n_micro);

#endif
