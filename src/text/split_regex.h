/* split_regex: the matches of a regular expression of tokenizer.json in a text, by PCRE2
 * (https://www.pcre.org), compiled to machine code where the processor has that.
 *
 * The rule: only this file and split_regex_absent.c, in a build without PCRE2, know the library.  A match
 * that takes too many steps is an error, never a hang. */
#ifndef KILN_TEXT_SPLIT_REGEX_H
#define KILN_TEXT_SPLIT_REGEX_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

struct split_regex;
struct split_regex_scratch; /* memory of one thread, for any expressions */

/* Compiles a pattern of UTF-8 in Oniguruma's syntax.  STATUS_DATA: it is none, or has a form that kiln does
 * not read (text/regex_syntax.h); STATUS_UNAVAILABLE: this build has no PCRE2. */
struct status split_regex_create(struct split_regex **r, const char *pattern, size_t n, const char *source);
void split_regex_destroy(struct split_regex *r); /* safe on NULL */

/* STATUS_MEMORY. */
struct status split_regex_scratch_create(struct split_regex_scratch **out);
void split_regex_scratch_destroy(struct split_regex_scratch *s); /* safe on NULL */

/* A match in a text. */
struct split_match {
    bool found;
    size_t begin, end;
};

/* Finds the first match in text[0..n), valid UTF-8, that begins at `at` or later.  STATUS_DATA: it took more
 * steps than it may; STATUS_MEMORY. */
struct status split_regex_find(struct split_regex_scratch *s, struct split_match *m,
                               const struct split_regex *r, const char *text, size_t n, size_t at);

#endif
