/* utf8: reading and writing UTF-8 (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF).
 *
 * The rule: bytes from outside are never trusted.  A lenient reader takes U+FFFD for each maximal ill-formed
 * part (The Unicode Standard, chapter 3.9, as Python and Rust do); a strict reader asks for the offset of the
 * first. */
#ifndef KILN_TEXT_UTF8_H
#define KILN_TEXT_UTF8_H

#include "core/buf.h"

#include <stddef.h>
#include <stdint.h>

enum { UTF8_MAX_BYTES = 4 };

/* Decodes the first code point of text[0..n), n >= 1, and returns its bytes, at least 1: U+FFFD with the
 * bytes to skip where the text is ill-formed. */
static inline int utf8_decode(uint32_t *c, const char *text, size_t n);

/* Writes a code point other than a surrogate and returns its bytes. */
static inline int utf8_write(char out[UTF8_MAX_BYTES], uint32_t c);

/* Offset of the first ill-formed byte sequence; n if there is none. */
size_t utf8_find_invalid(const char *text, size_t n);

/* Appends text[0..n) with U+FFFD for each ill-formed sequence, and returns how many there were. */
int64_t utf8_repair(struct buf *out, const char *text, size_t n);

/* How many characters (code points) text[0..n) has. */
int64_t utf8_count(const char *text, size_t n);

/* The bytes of a line without its end, LF or CR LF, if it has one. */
size_t utf8_without_end(const char *text, size_t n);

/* Bytes of the byte-order mark at text[0..n), the beginning of a file: 3 or 0. */
size_t utf8_mark_bytes(const char *text, size_t n);

/* The functions below are in the header because they run for each character. */

/* Decodes as utf8_decode does; the call for the characters that are not decoded inline. */
int utf8_decode_any(uint32_t *c, const char *text, size_t n);

static inline int utf8_decode(uint32_t *c, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] < 0x80) {
        *c = p[0];
        return 1;
    }
    if (n >= 2 && p[0] >= 0xC2 && p[0] < 0xE0 && (p[1] & 0xC0) == 0x80) {
        *c = (p[0] & 0x1FU) << 6 | (p[1] & 0x3FU);
        return 2;
    }
    if (n >= 3 && p[0] > 0xE0 && p[0] < 0xF0 && (p[0] != 0xED || p[1] < 0xA0) && (p[1] & 0xC0) == 0x80 &&
        (p[2] & 0xC0) == 0x80) {
        *c = (p[0] & 0xFU) << 12 | (p[1] & 0x3FU) << 6 | (p[2] & 0x3FU);
        return 3;
    }
    return utf8_decode_any(c, text, n);
}

static inline int utf8_write(char out[UTF8_MAX_BYTES], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    int n_bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n_bytes - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    out[0] = (char)(0xF00U >> n_bytes | c);
    return n_bytes;
}

/* Appends the beginning of a text, for messages: one line of complete characters, at most `most` bytes of
 * text[0..n), and "..." where there is more; control characters become spaces. */
void utf8_append_excerpt(struct buf *out, const char *text, size_t n, size_t most);

#endif
