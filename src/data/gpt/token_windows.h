/* token_windows: batches for a decoder from a store of tokens (io/indexed.h), read as one long text: windows
 * of S + 1 tokens that overlap by one, each token but the last an input and each but the first a label.
 *
 * The rule: sample number g of a run is window number permute(g mod W) of W, under a permutation keyed by the
 * seed and the epoch g / W, or what Megatron-LM's index files say (data/gpt/sample_order.h).  So any step can
 * be made directly, and a resumed run sees the same samples.  Windows cross the ends of documents. */
#ifndef KILN_DATA_GPT_TOKEN_WINDOWS_H
#define KILN_DATA_GPT_TOKEN_WINDOWS_H

#include "core/batch_growth.h"
#include "data/batch_source.h"
#include "data/gpt/sample_order.h"
#include "io/indexed.h"

struct token_windows {
    const struct indexed *index; /* borrowed */
    const char *path;            /* of it, for messages; borrowed */
    int64_t first, end;          /* tokens of the store */
    int64_t length;              /* S, the tokens of a sample */
    int64_t n_words;             /* ids from here on are refused */
    int64_t batch_size, micro_size;
    struct batch_growth growth; /* of the batches; its batch is 0 if all are of batch_size */
    int64_t n_groups;           /* of micro-batches, which have equally many with sequences; 0: one */
    uint64_t seed;
    /* of the samples, also of held-out ones, which are then as many as are asked for; borrowed; NULL:
     * training samples are keyed by the seed, held-out ones lie in the store's order */
    const struct sample_order *order;
};

/* Windows of a sample each; 0 if there are fewer than S + 1 tokens. */
int64_t token_windows_count(const struct token_windows *w);

/* A source of them; `w` must outlive it. */
struct batch_source token_windows_source(const struct token_windows *w, int64_t n_micro);

#endif
