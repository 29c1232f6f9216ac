/* jinja_text: what templates do to texts, as Python's str does it: white space, places counted in characters,
 * letter case.  Texts are well-formed UTF-8. */
#ifndef KILN_TEXT_JINJA_TEXT_H
#define KILN_TEXT_JINJA_TEXT_H

#include "core/buf.h"

/* str.isspace of a character. */
bool jinja_text_is_space(uint32_t c);

/* The number of bytes at the beginning or the end of text[0..n) that are characters of the set; NULL: white
 * space. */
size_t jinja_text_left(const char *text, size_t n, const char *set, size_t n_set);
size_t jinja_text_right(const char *text, size_t n, const char *set, size_t n_set);

/* Length of UTF-8 text in characters. */
int64_t jinja_text_length(const char *text, size_t n);

/* The byte of a character, or n. */
size_t jinja_text_at(const char *text, size_t n, int64_t character);

/* The byte where `part` is found first; n: nowhere. */
size_t jinja_text_find(const char *text, size_t n, const char *part, size_t n_part);

/* Converts the letter case of each character, which stays one character.  Difference: Python makes SS of a
 * sharp s. */
enum jinja_case { JINJA_LOWER, JINJA_UPPER, JINJA_CAPITALIZED, JINJA_TITLE };
void jinja_text_case(struct buf *out, const char *text, size_t n, enum jinja_case to);

#endif
