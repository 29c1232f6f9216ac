/* token_balance: deals the sequences of a global batch out to ranks, the same number to each, so that ranks
 * have nearly equal tokens.
 *
 * The rule: a function of the lengths and the number of ranks alone, so all ranks find the same without
 * exchanging anything, and a resumed run finds what an uninterrupted one does.  The longest sequence goes
 * first, to the rank with the fewest tokens of those that lack sequences (Graham 1969, "Bounds on
 * multiprocessing timing anomalies"; here with equal counts); of equal lengths the first of the batch, of
 * equal ranks the first rank.  In a rank sequences keep the order of the batch.
 *
 * It costs n * n_ranks comparisons of each rank. */
#ifndef KILN_DATA_TOKEN_BALANCE_H
#define KILN_DATA_TOKEN_BALANCE_H

#include "core/status.h"

#include <stdint.h>

struct token_balance {
    int n_ranks;
    int64_t n_most, longest;
    int32_t *lengths; /* [n_most] of the batch's sequences: the caller's to fill, each at most `longest` */
    int32_t *dealt;   /* [n_most] rank r of W has the sequences dealt[n r / W .. n (r + 1) / W) */
    int32_t *by_length, *rank_of; /* [n_most] */
    int64_t *starts;              /* [longest + 2] */
    int64_t *tokens, *count;      /* [n_ranks] */

    /* Sums over all batches that were dealt: tokens of the fullest rank, as dealt and in the batch's order,
     * and of the mean rank. */
    double fullest, fullest_in_order, mean;
    int64_t n_batches;
};

/* Allocates buffers for batches of at most n_most sequences, each of at most `longest` tokens.
 * STATUS_MEMORY. */
struct status token_balance_create(struct token_balance **out, int64_t n_most, int64_t longest, int n_ranks);
void token_balance_destroy(struct token_balance *b); /* NULL is allowed */

/* Deals n sequences of b->lengths, a multiple of the ranks.  Allocates nothing. */
void token_balance_deal(struct token_balance *b, int64_t n);

#endif
