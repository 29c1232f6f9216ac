/* wikitext_values: what a template was given, by name or number, for those who expand it. */
#ifndef KILN_CORPUS_WIKITEXT_VALUES_H
#define KILN_CORPUS_WIKITEXT_VALUES_H

#include "corpus/wikitext_emit.h"

struct wikitext_value {
    const char *text; /* [n] borrowed until the text grows; without spaces at its ends */
    size_t n;         /* 0: it is not given */
};

/* Whether the wiki is in English, or its language is not known; else no English words are written. */
bool wikitext_values_are_english(const struct wikitext_emit *e);

/* A space, a tab, a line's end, or the sign of literal text. */
bool wikitext_values_is_blank(char c);

/* Part `i` of the frame; `named`: after its name if it has one. */
struct wikitext_value wikitext_values_part(const struct wikitext_emit *e, size_t i, bool named);

/* The value of the parameter "lc", or "2"; of a function, "0" is what follows its colon. */
struct wikitext_value wikitext_values_find(const struct wikitext_emit *e, const char *key);

/* The same of parameter 1, 2, ... */
struct wikitext_value wikitext_values_argument(const struct wikitext_emit *e, int number);

/* Appends it to e->scratch. */
void wikitext_values_put(struct wikitext_emit *e, struct wikitext_value value);
bool wikitext_values_equal(struct wikitext_value value, const char *text);

/* A whole number of at most 9 digits; -1 for anything else. */
int64_t wikitext_values_number(struct wikitext_value value);

#endif
