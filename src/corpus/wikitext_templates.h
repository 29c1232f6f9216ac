/* wikitext_templates: the templates that stand for text in the middle of sentences: {{convert|5|km}},
 * {{lang|fr|mot}}, {{as of|2010}}.  The others are dropped with what is in them: boxes, notes, citations.
 *
 * The rule: a template is a row of a table, never its definition in the dump, so that a page needs no other
 * page.  What it writes is what the English Wikipedia shows, as text.
 * Source: the documentation of each template on the English Wikipedia. */
#ifndef KILN_CORPUS_WIKITEXT_TEMPLATES_H
#define KILN_CORPUS_WIKITEXT_TEMPLATES_H

#include "corpus/wikitext_emit.h"

enum wikitext_action {
    WIKITEXT_TEXT,       /* the row's text */
    WIKITEXT_ARGUMENT,   /* the argument of the row's number */
    WIKITEXT_LAST,       /* the last argument without a name */
    WIKITEXT_JOIN,       /* all of them, with the row's text between */
    WIKITEXT_PREFIX,     /* the row's text, and the argument */
    WIKITEXT_PAGE_NAME,  /* of the page that is read */
    WIKITEXT_IF,         /* {{#if:x|then|else}} */
    WIKITEXT_CASE,       /* lower or upper case, by the row's text */
    WIKITEXT_NUMBER,     /* 1234567 with commas */
    WIKITEXT_QUOTE,      /* on lines of its own */
    WIKITEXT_ILL,        /* a link here and in other languages */
    WIKITEXT_SORTNAME,   /* first and last name */
    WIKITEXT_LITERALLY,  /* lit. 'x' */
    WIKITEXT_LANGUAGE,   /* "French: mot" */
    WIKITEXT_NIHONGO,    /* "bayonet (kanji, romaji)"; 2: romaji first */
    WIKITEXT_LABELS,     /* "Chinese: x; pinyin: y"; 2: Korean */
    WIKITEXT_FRACTION,   /* "3 1/2" */
    WIKITEXT_VALUE,      /* a measured value */
    WIKITEXT_MUSIC,      /* a sign for a note */
    WIKITEXT_SHIP,       /* "USS Hornet (CV-12)"; 2: its first argument is the prefix */
    WIKITEXT_SHIP_CLASS, /* "Nimitz-class aircraft carrier" */
    WIKITEXT_DATE,       /* "March 14, 1879"; 2: of death, with the age */
    WIKITEXT_AS_OF,      /* "As of March 2010" */
    WIKITEXT_OLD_STYLE,  /* a date in two calendars */
    WIKITEXT_CONVERT,    /* a quantity in two units; 1: in symbols */
};

/* A row of the table; names are in lower case, with a colon for functions of the parser. */
struct wikitext_template {
    const char *name;
    enum wikitext_action action;
    int number;
    const char *text;
};

/* wikitext_template_rows.c, in the order of strcmp. */
extern const struct wikitext_template wikitext_template_rows[];
extern const int wikitext_n_template_rows;

/* At {{: opens a frame for a template of the table, and drops any other. */
void wikitext_templates_open(struct wikitext_emit *e, const struct wikitext_span *span);

/* Closes the frame of a template: its text becomes what the template stands for. */
void wikitext_templates_expand(struct wikitext_emit *e);

/* ---- for what expands them ---- */

/* Whether the wiki is in English, or its language is not known; else no English words are written. */
bool wikitext_templates_are_english(const struct wikitext_emit *e);

struct wikitext_value {
    const char *text; /* [n] borrowed until the text grows; without spaces at its ends */
    size_t n;         /* 0: it is not given */
};

/* The value of the parameter "lc", or "2"; of a function, "0" is what follows its colon. */
struct wikitext_value wikitext_templates_value(const struct wikitext_emit *e, const char *key);

/* The same of parameter 1, 2, ... */
struct wikitext_value wikitext_templates_argument(const struct wikitext_emit *e, int number);

void wikitext_templates_put(struct wikitext_emit *e, struct wikitext_value value);
bool wikitext_templates_equals(struct wikitext_value value, const char *text);

/* A whole number of at most 9 digits; -1 for anything else. */
int64_t wikitext_templates_number(struct wikitext_value value);

/* wikitext_words.c, wikitext_dates.c and wikitext_quantities.c: write to e->scratch. */
void wikitext_words_language(struct wikitext_emit *e, const char *code, size_t n, int first);
void wikitext_words_nihongo(struct wikitext_emit *e, bool romaji_first);
void wikitext_words_labels(struct wikitext_emit *e, bool korean);
void wikitext_words_ship(struct wikitext_emit *e, const struct wikitext_template *row);
void wikitext_words_ship_class(struct wikitext_emit *e);
void wikitext_words_music(struct wikitext_emit *e);
void wikitext_dates_date(struct wikitext_emit *e, bool death);
void wikitext_dates_as_of(struct wikitext_emit *e);
void wikitext_dates_old_style(struct wikitext_emit *e);
void wikitext_quantities_convert(struct wikitext_emit *e, bool symbols);
void wikitext_quantities_value(struct wikitext_emit *e);

#endif
