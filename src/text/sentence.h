/* sentence: where sentences end.
 *
 * A full stop, question or exclamation mark ends a sentence if white space follows, perhaps after closing
 * quotes and brackets; for a full stop the words on its two sides decide (text/punkt.h).  So do ellipses.
 * The mark of a note, [1] or :23 for a page, may follow without white space, and begins the next sentence.
 * Marks of other scripts:
 * - Chinese and Japanese full stops, also full-width ones, those of Hindi and its neighbours, Khmer and
 *   Burmese: they end a sentence, with the closing quotes after them, whatever follows;
 * - Arabic, Urdu, Armenian and Ethiopic marks: if white space follows, whatever the words are;
 * - Korean has the marks of English.  No word of a script without upper and lower case is taken for an
 *   abbreviation, but one of single letters that each have a full stop is (the Thai for years and months);
 * - Thai and Lao have no mark, and blanks between clauses: a blank between two letters of theirs ends a
 *   sentence that has at least SENTENCE_THAI_LETTERS letters.
 * A number with a full stop at the beginning of a sentence counts an item of a list, and ends none.
 * The rule: linear time, any bytes, and only white space is lost. */
#ifndef KILN_TEXT_SENTENCE_H
#define KILN_TEXT_SENTENCE_H

#include "text/punkt.h"

enum { SENTENCE_THAI_LETTERS = 60 }; /* about 15 words: the length of a sentence of English */

struct sentence {
    size_t start, end; /* bytes of the text; no white space at either end, never empty */
};

/* Finds the next sentence of text[0..n), a paragraph, from *at (0 to begin) and moves *at past it; false if
 * there is none left.  `p`: the model that was learned of the text's words; NULL: none. */
bool sentence_next(struct sentence *s, size_t *at, const struct punkt *p, const char *text, size_t n);

#endif
