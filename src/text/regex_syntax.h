/* regex_syntax: a regular expression of tokenizer.json, which Oniguruma reads, in the syntax of PCRE2.
 *
 * The rule: what both read differently is written out, so that the matches are those of Hugging Face's
 * `tokenizers`; what has no equal is refused, and the error names it.  Differences: \s (PCRE2 adds U+180E),
 * \w, \h, \v, and names of scripts, which PCRE2 takes with their extensions.
 * Sources: https://github.com/kkos/oniguruma/blob/master/doc/RE, and pcre2pattern(3). */
#ifndef KILN_TEXT_REGEX_SYNTAX_H
#define KILN_TEXT_REGEX_SYNTAX_H

#include "core/buf.h"

/* Appends the pattern to `out`.  STATUS_DATA: it has a form that is not read alike, or is cut short. */
struct status regex_syntax_translate(struct buf *out, const char *pattern, size_t n, const char *source);

/* Appends a pattern that matches this text. */
void regex_syntax_quote(struct buf *out, const char *text, size_t n);

#endif
