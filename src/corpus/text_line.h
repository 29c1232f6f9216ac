/* text_line: a line of text without the blanks at its ends, and the properties that formats need. */
#ifndef KILN_CORPUS_TEXT_LINE_H
#define KILN_CORPUS_TEXT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct text_line {
    const char *text; /* [n] borrowed; no line end */
    size_t n;
    bool continues; /* a later part of a line too long to be read at once */
};

/* The line without spaces, tabs and their like at its ends. */
struct text_line text_line_trim(struct text_line l);

/* The trimmed line at *at of text[0..n), *at < n; moves *at past its end. */
struct text_line text_line_take(const char *text, size_t n, size_t *at);

/* Whether c is one of the characters of `set`; a NUL is not. */
static inline bool text_line_is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* Whether a line begins with `prefix`. */
bool text_line_starts_with(struct text_line l, const char *prefix);

/* Whether it ends like a sentence: with a terminator, or a closing quote or bracket. */
bool text_line_ends_sentence(struct text_line l);

#endif
