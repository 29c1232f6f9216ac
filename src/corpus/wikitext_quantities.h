/* wikitext_quantities: {{convert}}, a quantity in two units, and {{val}}, a number with its error and unit.
 * What cannot be converted is written as it is.  Both write to e->scratch. */
#ifndef KILN_CORPUS_WIKITEXT_QUANTITIES_H
#define KILN_CORPUS_WIKITEXT_QUANTITIES_H

#include "corpus/wikitext_emit.h"

void wikitext_quantities_convert(struct wikitext_emit *e, bool symbols);
void wikitext_quantities_value(struct wikitext_emit *e);

#endif
