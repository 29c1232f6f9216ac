/* sentence: where sentences end, by rules.
 *
 * A full stop, question or exclamation mark ends a sentence if white space follows (after closing quotes and
 * brackets) and then something that can begin one: not a small letter.  A full stop after an initial, a title
 * or a common abbreviation does not, nor one within a number.  The full stops of Chinese and Japanese end a
 * sentence without white space.  The rule: linear time, any bytes, and only white space is lost. */
#ifndef KILN_TEXT_SENTENCE_H
#define KILN_TEXT_SENTENCE_H

#include <stdbool.h>
#include <stddef.h>

struct sentence {
    size_t start, end; /* bytes of the text; no white space at either end, never empty */
};

/* Finds the next sentence of text[0..n), a paragraph, from *at (0 to begin) and moves *at behind it; false if
 * there is none left. */
bool sentence_next(struct sentence *s, size_t *at, const char *text, size_t n);

#endif
