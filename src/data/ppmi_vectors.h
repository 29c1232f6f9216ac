/* ppmi_vectors: word vectors of a token store, from which a new model's word embeddings can begin.
 *
 * The neighbours of a token describe it.  Let n_d(a, b) count how often b follows a at distance d in a
 * sentence, n_d(a, .) and n_d(., b) its sums.  P_d, of elements max(0, ln(n_d(a, b) n_d(., .) / (n_d(a, .)
 * n_d(., b)))), is their positive pointwise mutual information. The rows of W = [P_1 P_1^T P_2 P_2^T]
 * describe tokens by both neighbours on both sides; the vectors are their best approximation in n_columns
 * dimensions, W's leading left singular vectors times their singular values but for a rotation, scaled to
 * length 1.
 *
 * The rule: the same store gives the same bits, however many threads compute.
 *
 * Source: Levy & Goldberg 2014, "Neural word embedding as implicit matrix factorization"; Levy, Goldberg &
 * Dagan 2015 (TACL 3, section 3.3) on exponents of the singular values; Halko, Martinsson & Tropp 2011
 * (arXiv:0909.4061), algorithm 4.4, on the iteration. */
#ifndef KILN_DATA_PPMI_VECTORS_H
#define KILN_DATA_PPMI_VECTORS_H

#include "io/indexed.h"

/* Tokens that are counted at most: of a larger store every second document, every third, and so on. */
enum { PPMI_MOST_TOKENS = 1 << 24 };

/* Fills `vectors` [n_words, n_columns] with the vectors of the tokens 0 .. n_words - 1.  A token that is
 * never next to another more often than by chance has zeros.  `seed` draws the first guess of the iteration.
 * STATUS_DATA: the store has a token that is not below n_words; STATUS_MEMORY. */
struct status ppmi_vectors(float *vectors, const struct indexed *store, int64_t n_words, int64_t n_columns,
                           uint64_t seed);

#endif
