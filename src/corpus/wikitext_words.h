/* wikitext_words: templates for words of other languages, ships and notes.  Each writes to e->scratch. */
#ifndef KILN_CORPUS_WIKITEXT_WORDS_H
#define KILN_CORPUS_WIKITEXT_WORDS_H

#include "corpus/wikitext_emit.h"

/* {{lang-xx}}: the language's name, and the words from argument `first` on. */
void wikitext_words_language(struct wikitext_emit *e, const char *code, size_t n, int first);
void wikitext_words_nihongo(struct wikitext_emit *e, bool romaji_first);
void wikitext_words_labels(struct wikitext_emit *e, bool korean);

/* `template` is its name, and argument `first` begins the ship's. */
void wikitext_words_ship(struct wikitext_emit *e, const char *template, int first);
void wikitext_words_ship_class(struct wikitext_emit *e);
void wikitext_words_music(struct wikitext_emit *e);

#endif
