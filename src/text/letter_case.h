/* letter_case: the properties of code points that Python's str.lower and regular expressions use; the SQuAD
 * metric is defined with them.  Source: The Unicode Standard, chapter 3.13, and UAX #44 (categories). */
#ifndef KILN_TEXT_LETTER_CASE_H
#define KILN_TEXT_LETTER_CASE_H

#include <stdbool.h>
#include <stdint.h>

/* A letter or a number of any kind: what `\w` matches, except the underscore. */
bool letter_case_is_word(uint32_t c);

/* An upper, lower or title case letter. */
bool letter_case_has(uint32_t c);

/* Case_Ignorable: marks, formats, modifiers, and punctuation that may occur inside a word. */
bool letter_case_is_ignored(uint32_t c);

/* Lower case of one code point, whatever is around it. */
uint32_t letter_case_lower(uint32_t c);

/* Upper case of one code point, as one code point. */
uint32_t letter_case_upper(uint32_t c);

#endif
