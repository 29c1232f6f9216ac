/* punkt_english: where sentences end when nothing was learned: common English abbreviations.
 *
 * The rule: a word that is not listed ends its sentence. */
#ifndef KILN_TEXT_PUNKT_ENGLISH_H
#define KILN_TEXT_PUNKT_ENGLISH_H

#include "text/punkt_word.h"

/* Whether a sentence ends behind `word`, which ends in a full stop, when `next` follows. */
bool punkt_english_ends(const struct punkt_word *word, const struct punkt_word *next);

#endif
