/* wikitext_templates: the templates that stand for text in the middle of sentences: {{convert|5|km}},
 * {{lang|fr|mot}}, {{as of|2010}}.  The others are dropped with their content: boxes, notes, citations.
 *
 * The rule: a template is a row of a table, never its definition in the dump, so that a page needs no other
 * page.  It writes the text that the English Wikipedia shows.
 * Source: the documentation of each template on the English Wikipedia. */
#ifndef KILN_CORPUS_WIKITEXT_TEMPLATES_H
#define KILN_CORPUS_WIKITEXT_TEMPLATES_H

#include "corpus/wikitext_values.h"

struct wikitext_template_row;

/* A template of the table. */
struct wikitext_template {
    struct wikitext_value name; /* name in lower case, with a colon for functions of the parser */
    struct wikitext_value text; /* text of this name in the row */
    const struct wikitext_template_row *row;
};

/* Templates that are written the same way: by a function, or, where it is NULL, by a pattern. */
struct wikitext_template_row {
    void (*write)(struct wikitext_emit *e, const struct wikitext_template *t);
    bool english; /* the template writes English words, or a sign that only English gives this name */
    const char *pattern;
    const char *names; /* "name|name=text"; NULL ends the table */
};

/* wikitext_template_rows.c */
extern const struct wikitext_template_row wikitext_template_rows[];

/* wikitext_quantities.c: {{convert}}, and {{cvt}}, whose text says that units are symbols. */
void wikitext_quantities_convert(struct wikitext_emit *e, const struct wikitext_template *t);

/* Appends digits[0..n) with commas between every three of the integer part; anything else is appended as it
 * is. */
void wikitext_quantities_group(struct buf *out, const char *digits, size_t n);

/* Sets e->templates to all templates of the rows, in the order of their names; false for memory. */
bool wikitext_templates_index(struct wikitext_emit *e);

/* At {{: opens a frame for a template of the table, and drops any other. */
void wikitext_templates_open(struct wikitext_emit *e, const struct wikitext_span *span);

/* Closes the frame of a template: its text becomes what the template stands for. */
void wikitext_templates_expand(struct wikitext_emit *e);

/* Appends a pattern to e->scratch: its text, with
 *     {}        the template's own text,
 *     {1,text}  the first of these parameters that is given (wikitext_values_find),
 *     {#1}      a parameter with commas between every three digits; {,1}: in English only,
 *     <...>     this part only if all parameters in it are given; <; puts "; " in front of all but the first,
 *     ~         an end, if anything was written. */
void wikitext_templates_write(struct wikitext_emit *e, const struct wikitext_template *t,
                              const char *pattern);

#endif
