/* unicode: the properties of code points that BERT's tokenization uses.
 *
 * The rule: every answer equals that of Hugging Face's `tokenizers`, because models are trained and served
 * with it.  Most answers come from utf8proc; where the two differ (they follow different versions of
 * Unicode) a table made by tools/make_unicode_overrides.py decides.
 * Source: The Unicode Standard, chapter 3.11 (normalization forms) and UAX #44 (categories). */
#ifndef KILN_TEXT_UNICODE_H
#define KILN_TEXT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

enum { UNICODE_MAX = 0x10FFFF, UNICODE_REPLACEMENT = 0xFFFD };

enum unicode_class {
    UNICODE_OTHER,
    UNICODE_SPACE,       /* separates words: Zs, Zl, Zp, tab, line feed, carriage return */
    UNICODE_REMOVED,     /* vanishes from the text: NUL, U+FFFD, Cc, Cf, Co */
    UNICODE_PUNCTUATION, /* is a word of its own: the ASCII symbols, P* */
    UNICODE_CJK,         /* an ideograph, a word of its own: the 8 ranges of BERT */
    UNICODE_MARK,        /* Mn: dropped where accents are stripped */
};

/* Class of a code point. */
enum unicode_class unicode_class(uint32_t c);

/* Unicode's property White_Space, as \s of a regular expression and Rust's char::is_whitespace have it. */
bool unicode_is_white(uint32_t c);

/* Whether it is a numeral: Unicode's categories Nd, Nl and No, as Rust's char::is_numeric. */
bool unicode_is_number(uint32_t c);

/* Canonical combining class, 0 to 254; 0 is a starter: marks are not reordered across it. */
int unicode_combining_class(uint32_t c);

enum { UNICODE_DECOMPOSITION_MAX = 4 };

/* Full canonical decomposition (NFD) of one code point, not yet ordered; returns how many, at least 1. */
int unicode_decompose(uint32_t out[UNICODE_DECOMPOSITION_MAX], uint32_t c);

/* Lower case of a code point that has no decomposition, so the result is a single one; without context (final
 * sigma). */
uint32_t unicode_lower(uint32_t c);

/* The generated table: ranges in ascending order. */
struct unicode_class_override {
    uint32_t first, last;
    enum unicode_class class;
    int combining_class;
};
struct unicode_lower_override {
    uint32_t first, last;
    int32_t shift; /* lower case minus code point */
};
extern const struct unicode_class_override unicode_class_overrides[];
extern const int unicode_n_class_overrides;
extern const uint32_t unicode_wholes[]; /* decomposed by utf8proc only */
extern const int unicode_n_wholes;
extern const struct unicode_lower_override unicode_lower_overrides[];
extern const int unicode_n_lower_overrides;

#endif
