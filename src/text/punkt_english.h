/* punkt_english: the ends of sentences when nothing was learned: common English abbreviations.
 *
 * The rule: a word that is not listed ends its sentence. */
#ifndef KILN_TEXT_PUNKT_ENGLISH_H
#define KILN_TEXT_PUNKT_ENGLISH_H

#include "text/punkt_word.h"

/* Whether a sentence ends after `word`, which ends in a full stop, when `next` follows. */
bool punkt_english_ends(const struct punkt_word *word, const struct punkt_word *next);

/* Whether a word, in lower case and without its full stop, is such an abbreviation whatever was learned.
 * Text that writes both Mr and Mr. teaches that mr is a word. */
bool punkt_english_knows(const char *word, size_t n);

/* Whether a word is a title or the like, which a name follows: a capital after it shows nothing. */
bool punkt_english_is_title(const char *word, size_t n);

/* Whether a sentence often begins with this word, in lower case. */
bool punkt_english_starts(const char *word, size_t n);

/* Whether `word` is an abbreviation because of the next word: a number after No. or c., a name after v. */
bool punkt_english_expects(const struct punkt_word *word, const struct punkt_word *next);

#endif
