/* masking: draws which tokens of a sequence are to be predicted, and what replaces them.
 *
 * Of the n tokens, min(max_predictions, max(1, round(n * prob))) are chosen uniformly among those other than
 * [CLS] and [SEP] (fewer if there are fewer); of these 80 % become [MASK], 10 % stay, and 10 % become a token
 * drawn uniformly from the whole vocabulary, special tokens included.
 *
 * Source: Devlin et al. 2018 (arXiv:1810.04805) section 3.1; the count and its rounding (half to even) as in
 * the replaced create_pretraining_data. */
#ifndef KILN_DATA_MASKING_H
#define KILN_DATA_MASKING_H

#include "core/rng.h"

#include <stdint.h>

struct masking_rules {
    double masked_lm_prob;
    int64_t max_predictions; /* per sequence, >= 1 */
    int32_t cls_id, sep_id, mask_id;
    int32_t vocab_size; /* real words: no padded rows */
};

/* Masks ids[n] in place; returns the number of predictions m and writes their places, ascending, to
 * positions[m] and the original tokens to labels[m]; both have room for max_predictions. */
int64_t masking_apply(const struct masking_rules *rules, int32_t *ids, int64_t n, int32_t *positions,
                      int32_t *labels, struct rng_stream *r);

#endif
