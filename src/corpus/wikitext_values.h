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

/* The text without blanks at its ends. */
struct wikitext_value wikitext_values_trim(const char *text, size_t n);

/* Part `i` of the frame; `named`: after its name if it has one. */
struct wikitext_value wikitext_values_part(const struct wikitext_emit *e, size_t i, bool named);

/* The first parameter that is given of "1,text,quote", which ends at a NUL or '}'.  "2" is the second without
 * a name or the one that is named so; of a function, "0" is what follows its colon. */
struct wikitext_value wikitext_values_find(const struct wikitext_emit *e, const char *keys);

/* Argument 1, 2, ... 99. */
struct wikitext_value wikitext_values_argument(const struct wikitext_emit *e, int number);

/* Takes the next entry of a table "key=text|key|key=text", and moves *table past it; false at its end.  A key
 * is not empty; `text` is empty where it has no '='. */
bool wikitext_values_entry(const char **table, struct wikitext_value *key, struct wikitext_value *text);

/* The text of a key in such a table; its `text` is NULL: it is not there. */
struct wikitext_value wikitext_values_look_up(const char *table, struct wikitext_value key);

/* Appends it to e->scratch. */
void wikitext_values_put(struct wikitext_emit *e, struct wikitext_value value);
bool wikitext_values_equal(struct wikitext_value value, const char *text);

/* The value as an integer of at most 9 digits; -1 for anything else. */
int64_t wikitext_values_number(struct wikitext_value value);

#endif
