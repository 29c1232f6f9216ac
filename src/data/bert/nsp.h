/* nsp: draws the two segments of a next-sentence-prediction sample.
 *
 * Segment A is the first sentences of the sample, B either the ones that follow (label 0, "next") or
 * sentences from a random place of another document (label 1, "random").  Sentences lie end to end in the
 * store, so a segment is a range of its tokens and truncation only moves the ends of a range: nothing is
 * copied here.
 *
 * Source: Devlin et al. 2018 (arXiv:1810.04805) section 3.1 and appendix A.2; the details are those of the
 * replaced create_pretraining_data, with one difference: sentences that a random B leaves unused are not put
 * back, because the samples are fixed and another epoch splits them at another place. */
#ifndef KILN_DATA_NSP_H
#define KILN_DATA_NSP_H

#include "core/rng.h"
#include "data/bert/sample_map.h"

enum { NSP_NO_LABEL = -1, NSP_IS_NEXT = 0, NSP_IS_RANDOM = 1 };

struct nsp_range {
    int64_t begin, end; /* tokens of the store; begin < end */
};

struct nsp_pair {
    struct nsp_range a, b;
    int32_t label; /* NSP_IS_NEXT or NSP_IS_RANDOM */
};

/* Draws a pair of at most max_tokens tokens (>= 2) from a sample:
 * - the target length is max_tokens or, with probability short_seq_prob, uniform in [2, max_tokens];
 * - the sample's sentences are taken until they reach the target; A ends at a uniform one of 1 .. n - 1 of
 *   them;
 * - with probability 1/2, and always if there is only one, B is drawn from another document: up to 10 tries
 *   to find one, a uniform first sentence, and the sentences from there that fill the target.  If all tries
 *   find the sample's own document, B is drawn from it and labelled "next", as in the replaced system;
 * - while the pair is too long, the longer segment (B on a tie) loses a token, at its front or its back with
 *   probability 1/2. */
struct nsp_pair nsp_draw(const struct indexed *store, struct sample sample, int64_t max_tokens,
                         double short_seq_prob, struct rng_stream *r);

/* Draws one range, for training without next-sentence prediction: at most max_tokens tokens of a sample,
 * whose target length is drawn in the same way.  Its sentences up to that are taken; what is too much is left
 * out at both ends together, at a uniform place. */
struct nsp_range nsp_draw_window(const struct indexed *store, struct sample sample, int64_t max_tokens,
                                 double short_seq_prob, struct rng_stream *r);

/* Applies only the last rule of nsp_draw: shortens a pair that is longer than max_tokens. */
void nsp_truncate(struct nsp_range *a, struct nsp_range *b, int64_t max_tokens, struct rng_stream *r);

#endif
