/* near_hashes: hashes of which documents that are nearly equal share one.
 *
 * They are those of MinHash (Broder 1997) in bands (Leskovec, Rajaraman and Ullman 2014, section 3.4): the
 * least values of 112 permutations of the document's shingles, five words that follow each other, in 14 bands
 * of 8.  Documents that share the fraction s of all their shingles share a band with the probability
 * 1 - (1 - s^8)^14: 0.05 at 0.5, 0.55 at 0.7, 0.92 at 0.8 and 0.9996 at 0.9.  Bands, rows and words are those
 * of datatrove.
 *
 * The rule: a function of the words alone (corpus/text_words.h). */
#ifndef KILN_CORPUS_NEAR_HASHES_H
#define KILN_CORPUS_NEAR_HASHES_H

#include "corpus/document.h"

#include <stdint.h>

enum { NEAR_HASHES_BANDS = 14, NEAR_HASHES_ROWS = 8, NEAR_HASHES_WORDS = 5 };

/* Sets hashes[NEAR_HASHES_BANDS], none of which is 0; all are 0 for a document without words. */
void near_hashes_make(uint64_t *hashes, const struct document *d);

#endif
