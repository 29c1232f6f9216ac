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

#endif
