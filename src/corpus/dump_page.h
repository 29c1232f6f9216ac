/* dump_page: a <page> of a MediaWiki export, and the <siteinfo> at its head, parsed by expat.
 *
 * The rule: each page is parsed by itself, so that no document type, and no entity but the five of XML and
 * numbers, can be declared for it, and an error in one page is no error in another. */
#ifndef KILN_CORPUS_DUMP_PAGE_H
#define KILN_CORPUS_DUMP_PAGE_H

#include "corpus/source.h"
#include "corpus/wiki_site.h"

/* What the head says; head[0..n) is <mediawiki ...> and <siteinfo>, or anything else, which says nothing.
 * The caller frees *site by wiki_site_free_list.  STATUS_MEMORY. */
struct status dump_site_create(struct wiki_site **site, const char *head, size_t n);

/* The `convert` of dump_source: redirects, pages outside of the article namespace and those of another
 * content model than wikitext are left out; the markup becomes paragraphs (corpus/wikitext.h). */
struct status dump_page_convert(void **state, const struct source_options *o, struct document *d);
void dump_page_fini(void *state);

#endif
