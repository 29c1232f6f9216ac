/* masking: draws which tokens of a sequence are to be predicted, and what replaces them.
 *
 * Of the n tokens, min(max_predictions, max(1, round(n * prob))) are chosen uniformly among those other than
 * [CLS] and [SEP] (fewer if there are fewer); of these 80 % become [MASK], 10 % stay, and 10 % become a token
 * drawn uniformly from the vocabulary, special tokens included.  With another rate of those that stay, the
 * others but that last tenth become [MASK].
 *
 * With whole words, words are drawn instead of tokens, in random order, and all tokens of a word are chosen
 * or none: a word that would be more than is left of that number is passed over, so there may be fewer.  Each
 * token is replaced on its own.
 *
 * With turns, the tokens or words whose turn it is are chosen instead of drawn ones (Zheng et al. 2020,
 * arXiv:2010.06040, mask parts of a sequence that do not overlap).
 *
 * Source: Devlin et al. 2018 (arXiv:1810.04805) section 3.1; the count and its rounding (half to even) as in
 * the replaced create_pretraining_data; whole words as in that of google-research/bert. */
#ifndef KILN_DATA_MASKING_H
#define KILN_DATA_MASKING_H

#include "core/rng.h"

#include <stdint.h>

enum {
    MASKING_MOST_TOKENS = 65536, /* tokens of a sequence in whole words */
    MASKING_MOST_TURNS = 8192,   /* tokens of a sequence whose tokens take turns */
};

/* Tokens take turns over a cycle of epochs: in an order drawn under `key`, the same for all epochs of the
 * cycle, the tokens that follow the part `turn` of the order are chosen.  So in 1 / rate epochs each token is
 * chosen about once.  The order is of places in the store, so sequences that overlap have it in common: token
 * i of the sequence is at i + shift[i > n_first]. */
struct masking_turns {
    uint64_t key;
    double turn; /* part of the order at which the epoch begins, in [0, 1) */
    int64_t n_first, shift[2];
};

struct masking_rules {
    double masked_lm_prob;
    /* the part of the chosen tokens that stays, at most 0.9; NULL: a tenth, drawn as the reference's */
    const double *keep_rate;
    int64_t max_predictions; /* per sequence, >= 1 */
    int32_t cls_id, sep_id, mask_id;
    int32_t vocab_size;                /* real words: no padded rows */
    const struct masking_turns *turns; /* NULL: a new draw each time */
    /* [vocab_size] whether a token continues the word before it; NULL: no whole words */
    const uint8_t *continues;
};

/* Masks ids[n] in place; returns the number of predictions m and writes their places, ascending, to
 * positions[m] and the original tokens to labels[m]; both have space for max_predictions. */
int64_t masking_apply(const struct masking_rules *rules, int32_t *ids, int64_t n, int32_t *positions,
                      int32_t *labels, struct rng_stream *r);

#endif
