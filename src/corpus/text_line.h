/* text_line: a line of text without the blanks at its ends, and what the formats ask of it. */
#ifndef KILN_CORPUS_TEXT_LINE_H
#define KILN_CORPUS_TEXT_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct text_line {
    const char *text; /* [n] borrowed; no line end */
    size_t n;
    bool continues; /* of a line that is longer than is read at once: not its first part */
};

/* The line without spaces, tabs and their like at its ends. */
struct text_line text_line_trim(struct text_line l);

/* The trimmed line at *at of text[0..n), *at < n; moves *at behind its end. */
struct text_line text_line_take(const char *text, size_t n, size_t *at);

bool text_line_starts_with(struct text_line l, const char *prefix);

/* Whether it ends like a sentence: a full stop or its kin, or a closing quote or bracket. */
bool text_line_ends_sentence(struct text_line l);

#endif
