/* token_windows: samples for a decoder from a store of tokens (io/indexed.h), read as one long text: windows
 * of S + 1 tokens that overlap by one, each token but the last an input and each but the first a label.
 *
 * The rule: sample number g is window number permute(g mod W) of W, under a permutation keyed by the seed and
 * the epoch g / W, or what Megatron-LM's index files say (data/gpt/sample_order.h).  So any sample can be
 * made directly, and a resumed run sees the same ones.  Windows cross the ends of documents.
 *
 * In a store with answers (data/gpt/answer_examples.h) a sample is a document, of which answers alone have
 * labels.  It is a sequence of its own length: batches are ragged, so nothing is padded, and no example sees
 * another. */
#ifndef KILN_DATA_GPT_TOKEN_WINDOWS_H
#define KILN_DATA_GPT_TOKEN_WINDOWS_H

#include "core/batch.h"
#include "data/gpt/sample_order.h"
#include "io/indexed.h"

struct token_windows {
    const struct indexed *index; /* borrowed */
    const char *path;            /* path of the store, for messages; borrowed */
    int64_t first, end;          /* tokens of the store; with answers documents, in a fixed random order */
    bool of_answers;
    int64_t length;  /* S, the tokens of a sample */
    int64_t n_words; /* ids from here on are refused */
    uint64_t seed;
    /* order of the samples, also of held-out ones, which it then has in the number asked for; borrowed; NULL:
     * training samples are keyed by the seed, held-out ones lie in the store's order */
    const struct sample_order *order;
};

/* Windows of a sample each, or documents; 0 if there are fewer than S + 1 tokens. */
int64_t token_windows_count(const struct token_windows *w);

/* Samples that can be held out. */
int64_t token_windows_heldout_count(const struct token_windows *w);

/* Appends training sample g, or held-out sample i, to a batch of text; `key` addresses its dropout.  After
 * the last held-out sample they begin again.  STATUS_DATA: a token that the vocabulary does not have. */
struct status token_windows_add(const struct token_windows *w, int64_t g, int32_t key, struct batch *b);
struct status token_windows_add_heldout(const struct token_windows *w, int64_t i, int32_t key,
                                        struct batch *b);

/* Adds how often each piece is among the first `most` tokens to counts[vocab_size]. */
struct status token_windows_count_words(const struct token_windows *w, int64_t most, double *counts,
                                        int64_t vocab_size);

#endif
