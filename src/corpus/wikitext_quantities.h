/* wikitext_quantities: {{convert}}, a quantity in two units, and numbers as they are written.  A quantity
 * that cannot be converted is written as it is.
 * Source: the English Wikipedia's Module:Convert and Module:Convert/data. */
#ifndef KILN_CORPUS_WIKITEXT_QUANTITIES_H
#define KILN_CORPUS_WIKITEXT_QUANTITIES_H

#include "corpus/wikitext_templates.h"

/* {{convert}}, and {{cvt}}, whose text says that units are symbols.  Writes to e->scratch. */
void wikitext_quantities_convert(struct wikitext_emit *e, const struct wikitext_template *t);

/* Appends digits[0..n) with commas between every three of the integer part; anything else is appended as it
 * is. */
void wikitext_quantities_group(struct buf *out, const char *digits, size_t n);

#endif
