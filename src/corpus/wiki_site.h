/* wiki_site: what a wiki says of itself at the head of its dump, in <siteinfo>: the numbers and names of its
 * namespaces, and its language.  These distinguish a link from a file, a category or a page elsewhere, in any
 * language.
 *
 * The rule: names come from the dump.  MediaWiki's English names hold everywhere; the only other words in
 * here are old names of a few languages, which a dump does not list though its pages still use them.
 * Source: MediaWiki's manual, Manual:Namespace and Manual:Interwiki. */
#ifndef KILN_CORPUS_WIKI_SITE_H
#define KILN_CORPUS_WIKI_SITE_H

#include "core/buf.h"

enum {
    WIKI_SITE_NO_NAMESPACE = -1000, /* no wiki uses it: MediaWiki's own are -2 and up */
    WIKI_SITE_MEDIA = -2,           /* links to the bytes of a file */
    WIKI_SITE_SPECIAL = -1,
    WIKI_SITE_ARTICLE = 0, /* has no name */
    WIKI_SITE_PROJECT = 4,
    WIKI_SITE_FILE = 6,
    WIKI_SITE_TEMPLATE = 10,
    WIKI_SITE_CATEGORY = 14,
    WIKI_SITE_NAME_BYTES = 96, /* a longer name is not one: MediaWiki's longest has 60 */
};

struct wiki_site_name {
    int number;
    size_t begin, n; /* in `names` */
};

struct wiki_site {
    struct buf language; /* "de"; empty if it is not known */
    struct buf names;    /* end to end, in lower case, with single spaces */
    struct wiki_site_name *namespaces;
    size_t n_namespaces, capacity;
    struct buf base;        /* address of the main page, from which those of others are made; may be empty */
    struct wiki_site *next; /* next site of a list; NULL: none */
    bool has_variants;      /* the language is written in several scripts: -{ }- is markup */
};

/* Knows MediaWiki's English names.  STATUS_MEMORY. */
struct status wiki_site_init(struct wiki_site *site);
void wiki_site_fini(struct wiki_site *site);

/* Frees sites on the heap that `next` links; NULL: none. */
void wiki_site_free_list(struct wiki_site *first);

/* The attribute xml:lang of <mediawiki>.  STATUS_MEMORY. */
struct status wiki_site_set_language(struct wiki_site *site, const char *language, size_t n);

/* One more name of namespace `number`; an empty name, and one longer than WIKI_SITE_NAME_BYTES, are passed
 * over. A name that is known already gets the new number.  STATUS_MEMORY. */
struct status wiki_site_add_namespace(struct wiki_site *site, int number, const char *name, size_t n);

/* The namespace that the title or target of a link text[0..n) names before its first colon, whatever the
 * case, with underscores for spaces; WIKI_SITE_NO_NAMESPACE without a colon, or if nothing of that name is
 * known. A colon in front of the name is a matter of the caller. */
int wiki_site_namespace(const struct wiki_site *site, const char *text, size_t n);

/* Whether prefix[0..n), the text before a colon, leads to another wiki: a language ("de", "zh-min-nan") or
 * another project ("wikt", "commons"). */
bool wiki_site_is_other_wiki(const struct wiki_site *site, const char *prefix, size_t n);

/* Whether a page's markup is a redirect: "#", a word in any language, and a link.  For dumps of before 2008,
 * which have no <redirect>. */
bool wiki_site_is_redirect(const char *markup, size_t n);

/* The generated table: prefixes of other wikis in the order of strcmp. */
extern const char *const wiki_site_prefixes[];
extern const int wiki_site_n_prefixes;

#endif
