/* store_overlap: how much of a held-out store stands word for word in the store to train on, so that its loss
 * says less than it seems to. */
#ifndef KILN_DATA_STORE_OVERLAP_H
#define KILN_DATA_STORE_OVERLAP_H

#include "io/indexed.h"

/* Tokens that must be the same in a row: long enough that they are no phrase. */
enum { STORE_OVERLAP_TOKENS = 32 };

/* Sets *share to the fraction of the places of `heldout` at which so many tokens begin that stand in `train`
 * too, of the first million (Karp & Rabin 1987: a hash that is moved on by a token).  0 if it is shorter.
 * STATUS_MEMORY. */
struct status store_overlap(double *share, const struct indexed *heldout, const struct indexed *train);

#endif
