/* wikitext_lines: the third pass over a page: its lines become paragraphs.  Titles of sections, items of
 * lists, indented lines and what is left of tables are dropped; blanks, dots and quotes are put in order.
 *
 * The rule: a line is a paragraph, as in WikiExtractor, whose function `compact` this is. */
#ifndef KILN_CORPUS_WIKITEXT_LINES_H
#define KILN_CORPUS_WIKITEXT_LINES_H

#include "corpus/document.h"

/* Appends the paragraphs of text[0..n), which wikitext_emit wrote, to the document.  STATUS_MEMORY. */
struct status wikitext_lines_add(struct document *out, const char *text, size_t n);

#endif
