/* wikitext_dates: templates for dates, in English.  Each writes to e->scratch. */
#ifndef KILN_CORPUS_WIKITEXT_DATES_H
#define KILN_CORPUS_WIKITEXT_DATES_H

#include "corpus/wikitext_emit.h"

void wikitext_dates_date(struct wikitext_emit *e, bool death);
void wikitext_dates_as_of(struct wikitext_emit *e);
void wikitext_dates_old_style(struct wikitext_emit *e);

#endif
