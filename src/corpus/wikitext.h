/* wikitext: the markup of a page of a wiki becomes the paragraphs of its text.
 *
 * Three passes, each of linear time: wikitext_spans.c finds what belongs together ({{ }}, [[ ]], {| |},
 * elements), wikitext_emit.c writes text without the parts that are dropped, and its lines become paragraphs.
 *
 * The rule: bytes out are a function of bytes in.  Nothing goes back in the text; nesting and work are
 * limited by counts, never by a clock; markup that is not closed is text without its marks.  The parts that
 * WikiExtractor keeps are kept, as docs/decisions/0050_wikitext.md lists them. */
#ifndef KILN_CORPUS_WIKITEXT_H
#define KILN_CORPUS_WIKITEXT_H

#include "corpus/document.h"
#include "corpus/wiki_site.h"

enum {
    WIKITEXT_PAGE_BYTES =
        1 << 23,         /* a longer page is dropped; MediaWiki's limit is 2 MiB ($wgMaxArticleSize) */
    WIKITEXT_DEPTH = 40, /* most levels of templates, links and tables: as MediaWiki's for templates */
    WIKITEXT_WORK_PER_BYTE =
        64, /* a page that takes more is dropped; those of the sample dump take up to 4 */
    WIKITEXT_WORK_FREE = 1 << 16, /* work that any page may take, for pages of a few bytes */
};

/* The outcome of converting a page. */
enum wikitext_outcome {
    WIKITEXT_KEPT,
    WIKITEXT_EMPTY,     /* nothing was left: tables and lists only */
    WIKITEXT_TOO_LARGE, /* this and the next two give no paragraphs */
    WIKITEXT_TOO_DEEP,
    WIKITEXT_TOO_MUCH_WORK,
    WIKITEXT_N_OUTCOMES,
};

/* Counts of all pages so far; counts of several threads are added field by field. */
struct wikitext_counts {
    int64_t n_pages[WIKITEXT_N_OUTCOMES];
    int64_t n_bytes;      /* bytes of markup */
    int64_t n_text_bytes; /* bytes of paragraphs */
    int64_t n_paragraphs;
    int64_t n_work;              /* bytes that were looked at or moved, over all passes */
    int64_t n_templates_dropped; /* templates dropped with their content */
    int64_t n_templates_expanded;
    int64_t n_tables, n_refs; /* dropped */
    int64_t n_unclosed;       /* marks whose other half is missing */
};

struct
    wikitext; /* the scratch memory of one thread; it allocates no more once it has seen its largest page */

/* NULL if there is no memory.  `site` is borrowed, and may gain names until the first page. */
struct wikitext *wikitext_create(const struct wiki_site *site);
void wikitext_destroy(struct wikitext *w);

/* Appends to `out` the paragraphs of markup[0..n), valid UTF-8 as it is between <text> and </text> with XML's
 * entities decoded; id and title of the document are left alone.  No paragraph is appended to a page that has
 * no text or is dropped: *counts says why.  `title` is what {{PAGENAME}} stands for.
 * STATUS_MEMORY. */
struct status wikitext_convert(struct wikitext *w, struct document *out, struct wikitext_counts *counts,
                               const char *title, size_t title_bytes, const char *markup, size_t n);

#endif
