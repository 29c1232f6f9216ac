/* wikitext_tags: the elements of HTML and of MediaWiki's extensions that occur in pages, and their treatment.
 * Source: the lists of WikiExtractor (docs/decisions/0050_wikitext.md), MediaWiki's Sanitizer.php. */
#ifndef KILN_CORPUS_WIKITEXT_TAGS_H
#define KILN_CORPUS_WIKITEXT_TAGS_H

#include <stdbool.h>
#include <stddef.h>

enum wikitext_tag_kind {
    WIKITEXT_TAG_NONE,    /* not an element: text */
    WIKITEXT_TAG_RAW,     /* dropped up to the first end tag, whatever is between: <ref> */
    WIKITEXT_TAG_FORMULA, /* dropped like RAW, and "formula_1" is written */
    WIKITEXT_TAG_CODE,    /* dropped like RAW, and "codice_1" is written */
    WIKITEXT_TAG_NOWIKI,  /* the content is text */
    WIKITEXT_TAG_DROP,    /* dropped with its content; nests: <div> */
    WIKITEXT_TAG_ITEM,    /* dropped like DROP, and ends where another begins: <li> */
    WIKITEXT_TAG_INLINE,  /* dropped like DROP, and ends with its paragraph: <small> */
    WIKITEXT_TAG_STRIP,   /* the tags go, the content stays: <b> */
    WIKITEXT_TAG_BLOCK,   /* stripped like STRIP, on lines of its own: <blockquote> */
    WIKITEXT_TAG_SPACE,   /* a space is written: <br> */
};

enum { WIKITEXT_N_TAGS_MAX = 160 };

struct wikitext_tag {
    int index; /* row of the element in the table, < WIKITEXT_N_TAGS_MAX */
    enum wikitext_tag_kind kind;
    const char *name; /* name in lower case */
    bool closes;      /* </name> */
    bool is_empty;    /* <name/> */
    size_t n;         /* bytes from < to >; 0: it has no > before the next < */
    size_t n_name;    /* bytes before its attributes: "<name" */
};

/* The tag that text[0..n), which begins with '<', begins with. */
struct wikitext_tag wikitext_tags_read(const char *text, size_t n);

/* Whether text[0..n) begins with the end tag of an element; its bytes in *tag_bytes. */
bool wikitext_tags_is_end(const char *text, size_t n, const char *name, size_t *tag_bytes);

#endif
