/* punkt_english: where sentences end when nothing was learned: common English abbreviations.
 *
 * The rule: a word that is not listed ends its sentence. */
#ifndef KILN_TEXT_PUNKT_ENGLISH_H
#define KILN_TEXT_PUNKT_ENGLISH_H

#include "text/punkt_word.h"

/* Whether a sentence ends behind `word`, which ends in a full stop, when `next` follows. */
bool punkt_english_ends(const struct punkt_word *word, const struct punkt_word *next);

/* Whether a word, in lower case and without its full stop, is such an abbreviation whatever was learned.
 * Text that writes both Mr and Mr. teaches that mr is a word. */
bool punkt_english_knows(const char *word, size_t n);

/* Whether it is a title or the like, behind which a name follows: a capital says nothing there. */
bool punkt_english_is_title(const char *word, size_t n);

/* Whether a sentence often begins with this word, in lower case. */
bool punkt_english_starts(const char *word, size_t n);

/* Whether `word` is one because of what follows: a number behind No. or c., a name behind v. */
bool punkt_english_expects(const struct punkt_word *word, const struct punkt_word *next);

#endif
