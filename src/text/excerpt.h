/* excerpt: the beginning of a text, for messages: one line, complete characters. */
#ifndef KILN_TEXT_EXCERPT_H
#define KILN_TEXT_EXCERPT_H

#include "core/buf.h"

/* Appends at most `most` bytes of text[0..n), and "..." where there is more; control characters become
 * spaces. */
void excerpt_append(struct buf *out, const char *text, size_t n, size_t most);

#endif
