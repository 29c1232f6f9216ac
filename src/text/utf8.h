/* utf8: reading and writing UTF-8 (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF).
 *
 * The rule: bytes from outside are never trusted.  A lenient reader takes U+FFFD for each maximal ill-formed
 * part (The Unicode Standard, chapter 3.9, as Python and Rust do); a strict reader asks for the offset of the
 * first. */
#ifndef KILN_TEXT_UTF8_H
#define KILN_TEXT_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { UTF8_MAX_BYTES = 4 };

/* Decodes the first code point of text[0..n), n >= 1, and returns its bytes, at least 1: U+FFFD with the
 * bytes to skip where the text is ill-formed. */
int utf8_decode(uint32_t *c, const char *text, size_t n);

/* Writes a code point other than a surrogate and returns its bytes. */
int utf8_write(char out[UTF8_MAX_BYTES], uint32_t c);

/* Offset of the first ill-formed byte sequence; n if there is none. */
size_t utf8_find_invalid(const char *text, size_t n);

#endif
