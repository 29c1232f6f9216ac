/* wikitext_spans: the first pass over a page: which marks belong together.  It finds comments, elements,
 * templates, links and tables with the ends of each, so that the next pass can leave out the parts that are
 * dropped without looking inside, and never has to go back.
 *
 * The rule: one stack of what is open, as in MediaWiki's preprocessor; each byte is pushed, popped and passed
 * over at most once.  {{ }} closes over links, tables and elements that are open inside; a link ends with its
 * paragraph, unless it is a file; an element is closed by its own end tag inside the same template or table.
 * Source: MediaWiki's Preprocessor_Hash.php and Preprocessor ABNF. */
#ifndef KILN_CORPUS_WIKITEXT_SPANS_H
#define KILN_CORPUS_WIKITEXT_SPANS_H

#include "corpus/wikitext.h"
#include "corpus/wikitext_tags.h"

enum wikitext_span_kind {
    WIKITEXT_SPAN_UNCLOSED, /* not closed: the marks are left out */
    WIKITEXT_SPAN_COMMENT,
    WIKITEXT_SPAN_TEMPLATE,  /* {{ }} */
    WIKITEXT_SPAN_PARAMETER, /* {{{ }}} */
    WIKITEXT_SPAN_LINK,      /* [[ ]] */
    WIKITEXT_SPAN_TABLE,     /* {| |} */
    WIKITEXT_SPAN_VARIANT,   /* -{ }- */
    WIKITEXT_SPAN_FORMULA,
    WIKITEXT_SPAN_CODE,
    WIKITEXT_SPAN_NOWIKI,
    WIKITEXT_SPAN_REF,     /* <ref> or <references>, also counted as such */
    WIKITEXT_SPAN_ELEMENT, /* dropped with its content */
};

/* markup[begin..end); those of a page are in the order of `begin`, and nest. */
struct wikitext_span {
    uint32_t begin, end;
    uint32_t kind;
};

enum { WIKITEXT_OPEN_MAX = 2 * WIKITEXT_DEPTH }; /* half of them elements */

/* A mark that is open: a run of braces, a link, a table or an element. */
struct wikitext_open {
    char mark; /* '{', '[', '|' for a table, '-' for a variant, '<' */
    int tag;   /* '<': the index of the element */
    uint32_t begin;
    uint32_t n;    /* '{': braces that are not closed yet; '<': 1 if it ends with its paragraph */
    bool external; /* '[': a link of one bracket is open in it */
    size_t span;   /* index of its span; '{': of the braces closed last, which are the first */
};

struct wikitext_spans {
    struct wikitext_span *spans; /* [n_spans] */
    size_t n_spans, capacity;

    const struct wiki_site *site;
    const char *markup; /* [n] */
    size_t n;
    struct wikitext_open open[WIKITEXT_OPEN_MAX];
    int n_open, n_elements; /* elements among them */
    size_t line;            /* beginning of the line, after spaces and markup that was left out */
    bool too_deep, no_memory;
    bool no_end[WIKITEXT_N_TAGS_MAX]; /* no end tag of the element is in the rest of the page */
    int64_t n_unclosed, n_work;
};

/* Frees the spans and clears *s.  Safe on a zeroed struct. */
void wikitext_spans_fini(struct wikitext_spans *s);

/* Finds the spans of a page; sets too_deep, and stops, where more than WIKITEXT_DEPTH are open.
 * STATUS_MEMORY. */
struct status wikitext_spans_find(struct wikitext_spans *s, const struct wiki_site *site, const char *markup,
                                  size_t n);

#endif
