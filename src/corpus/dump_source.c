/* dump_source: a MediaWiki export (XML), such as Wikipedia's pages-articles.
 *
 * Reading only finds <siteinfo> at the head, and where pages begin and end; expat parses them, in any thread.
 * That is safe because text inside XML has no "<": <page> and </page> are never part of it.  So a damaged
 * part, or a page that is not well-formed, costs that page and no other.  Each page is parsed by itself, so
 * that no document type, and no entity but the five of XML and numbers, can be declared for it. */
#define _GNU_SOURCE /* memmem */
#include "corpus/source_formats.h"
#include "corpus/wiki_site.h"
#include "corpus/wikitext.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>

/* ---- a page, and the head ---- */

/* The elements whose text is used, by their path from the root of the parsed text. */
enum field {
    FIELD_NONE,
    FIELD_TITLE,
    FIELD_NS,
    FIELD_ID,
    FIELD_MODEL,
    FIELD_TEXT,
    FIELD_NAMESPACE,
    FIELD_BASE,
    N_FIELDS,
};

static const struct {
    const char *path;
    enum field field;
} paths[] = {
    {"/page/title", FIELD_TITLE},
    {"/page/ns", FIELD_NS},
    {"/page/id", FIELD_ID},
    {"/page/revision/model", FIELD_MODEL},
    {"/page/revision/text", FIELD_TEXT},
    {"/mediawiki/siteinfo/base", FIELD_BASE},
    {"/mediawiki/siteinfo/namespaces/namespace", FIELD_NAMESPACE},
};

enum { PATH_BYTES = 128, DEEPEST = 16 };

/* A thread's parser and scratch. */
struct dump_page {
    XML_Parser parser;
    char path[PATH_BYTES]; /* path of the current element, while `depth` is its depth */
    size_t path_n;
    int depth, n_deeper;  /* elements deeper than the path can name, inside which nothing is used */
    size_t ends[DEEPEST]; /* end of the path at each depth */
    struct buf fields[N_FIELDS];
    enum field field;
    bool is_redirect, failed;
    int namespace;          /* number of the <namespace> being read */
    struct wiki_site *site; /* being filled; NULL while a page is parsed */

    const struct wiki_site *known; /* site that `wikitext` was created for */
    struct wikitext *wikitext;
    struct wikitext_counts counts;
};

/* ---- elements ---- */

static enum field field_of(const char *path)
{
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (strcmp(path, paths[i].path) == 0) {
            return paths[i].field;
        }
    }
    return FIELD_NONE;
}

static const char *attribute(const char **attributes, const char *name)
{
    while (*attributes != NULL && strcmp(*attributes, name) != 0) {
        attributes += 2;
    }
    return *attributes == NULL ? "" : attributes[1];
}

static void begin_element(void *context, const char *name, const char **attributes)
{
    struct dump_page *p = context;
    size_t n = strlen(name);
    if (p->n_deeper > 0 || p->depth == DEEPEST || p->path_n + n + 2 > sizeof p->path) {
        p->n_deeper++;
        return;
    }
    p->ends[p->depth++] = p->path_n;
    p->path[p->path_n++] = '/';
    memcpy(p->path + p->path_n, name, n + 1);
    p->path_n += n;
    p->field = field_of(p->path);
    buf_clear(&p->fields[p->field]);
    if (p->field == FIELD_NAMESPACE) {
        p->namespace = atoi(attribute(attributes, "key"));
    }
    p->is_redirect |= strcmp(p->path, "/page/redirect") == 0;
    if (p->site != NULL && p->depth == 1) {
        const char *language = attribute(attributes, "xml:lang");
        p->failed |= failed(wiki_site_set_language(p->site, language, strlen(language)));
    }
}

static void end_element(void *context, const char *name)
{
    struct dump_page *p = context;
    (void)name;
    if (p->n_deeper > 0) {
        p->n_deeper--;
        return;
    }
    if (p->site != NULL && p->field == FIELD_NAMESPACE) {
        const struct buf *b = &p->fields[FIELD_NAMESPACE];
        p->failed |= failed(wiki_site_add_namespace(p->site, p->namespace, buf_text(b), b->n));
    }
    p->path_n = p->ends[--p->depth];
    p->path[p->path_n] = '\0';
    p->field = FIELD_NONE;
}

static void add_text(void *context, const char *text, int n)
{
    struct dump_page *p = context;
    if (p->field != FIELD_NONE && p->n_deeper == 0) {
        buf_append(&p->fields[p->field], text, (size_t)n);
    }
}

/* ---- parsing ---- */

static struct dump_page *create(void)
{
    struct dump_page *p = calloc(1, sizeof *p);
    if (p != NULL) {
        p->parser = XML_ParserCreate("UTF-8");
    }
    if (p == NULL || p->parser == NULL) {
        free(p);
        return NULL;
    }
    return p;
}

static void fini(void *state)
{
    struct dump_page *p = state;
    wikitext_destroy(p->wikitext);
    XML_ParserFree(p->parser);
    for (int i = 0; i < N_FIELDS; i++) {
        buf_fini(&p->fields[i]);
    }
    free(p);
}

/* Parses one element, or the head of a file, which ends inside <mediawiki>; false if it is not
 * well-formed. */
static bool parse(struct dump_page *p, const char *text, size_t n, bool is_whole)
{
    for (int i = 0; i < N_FIELDS; i++) {
        buf_clear(&p->fields[i]);
    }
    p->path_n = 0;
    p->depth = p->n_deeper = 0;
    p->field = FIELD_NONE;
    p->is_redirect = p->failed = false;
    XML_ParserReset(p->parser, "UTF-8");
    XML_SetUserData(p->parser, p);
    XML_SetElementHandler(p->parser, begin_element, end_element);
    XML_SetCharacterDataHandler(p->parser, add_text);
    return XML_Parse(p->parser, text, (int)n, is_whole) == XML_STATUS_OK;
}

/* Creates the site that the head describes; head[0..n) is <mediawiki ...> and <siteinfo>, or anything else,
 * which describes nothing.  *site is freed by wiki_site_free_list. */
static struct status create_site(struct wiki_site **site, const char *head, size_t n)
{
    struct wiki_site *s = *site = calloc(1, sizeof *s);
    struct dump_page *p = create();
    struct status status = s == NULL || p == NULL
                               ? status_error(STATUS_MEMORY, "out of memory for the head of a dump")
                               : wiki_site_init(s);
    if (!failed(status)) {
        p->site = s;
        parse(p, head, n, false); /* a malformed head adds no names; English ones are known */
        buf_append(&s->base, buf_text(&p->fields[FIELD_BASE]), p->fields[FIELD_BASE].n);
        status = p->failed || s->base.failed
                     ? status_error(STATUS_MEMORY, "out of memory for the namespaces of a dump")
                     : status_ok();
    }
    if (p != NULL) {
        fini(p);
    }
    if (failed(status)) {
        wiki_site_free_list(s);
        *site = NULL;
    }
    return status;
}

/* ---- pages ---- */

static const enum document_fate fates[WIKITEXT_N_OUTCOMES] = {
    [WIKITEXT_KEPT] = DOCUMENT_KEPT,
    [WIKITEXT_EMPTY] = DOCUMENT_WITHOUT_TEXT,
    [WIKITEXT_TOO_LARGE] = DOCUMENT_TOO_LARGE,
    [WIKITEXT_TOO_DEEP] = DOCUMENT_TOO_DEEP,
    [WIKITEXT_TOO_MUCH_WORK] = DOCUMENT_TOO_MUCH_WORK,
};

static enum document_fate page_fate(const struct dump_page *p)
{
    const struct buf *text = &p->fields[FIELD_TEXT], *model = &p->fields[FIELD_MODEL];
    if (p->is_redirect || wiki_site_is_redirect(buf_text(text), text->n)) {
        return DOCUMENT_REDIRECT;
    }
    if (atoi(buf_text(&p->fields[FIELD_NS])) != WIKI_SITE_ARTICLE) {
        return DOCUMENT_OTHER_NAMESPACE;
    }
    return model->n == 0 || strcmp(buf_text(model), "wikitext") == 0 ? DOCUMENT_KEPT : DOCUMENT_OTHER_MODEL;
}

/* The address that WikiExtractor gives a page: the main page's without its name, and the number. */
static void add_url(struct document *d)
{
    const struct buf *base = &d->site->base;
    const char *slash = strrchr(buf_text(base), '/');
    if (slash != NULL) {
        buf_append(&d->url, base->data, (size_t)(slash - base->data));
        buf_printf(&d->url, "?curid=%s", buf_text(&d->id));
    }
}

/* Paragraphs of the page that was parsed. */
static struct status convert_text(struct dump_page *p, struct document *d)
{
    const struct buf *title = &p->fields[FIELD_TITLE], *text = &p->fields[FIELD_TEXT];
    if (p->known != d->site) {
        wikitext_destroy(p->wikitext);
        p->wikitext = wikitext_create(d->site);
        p->known = d->site;
    }
    if (p->wikitext == NULL) {
        p->known = NULL;
        return status_error(STATUS_MEMORY, "out of memory for the markup of a page");
    }
    buf_append(&d->id, buf_text(&p->fields[FIELD_ID]), p->fields[FIELD_ID].n);
    buf_append(&d->title, buf_text(title), title->n);
    add_url(d);
    struct wikitext_counts before = p->counts;
    TRY(wikitext_convert(p->wikitext, d, &p->counts, buf_text(title), title->n, buf_text(text), text->n));
    for (int i = 0; i < WIKITEXT_N_OUTCOMES; i++) {
        d->fate = p->counts.n_pages[i] > before.n_pages[i] ? fates[i] : d->fate;
    }
    return status_ok();
}

/* Makes paragraphs of a page's markup (corpus/wikitext.h).  Redirects, pages outside of the article namespace
 * and those of another content model than wikitext are left out. */
static struct status convert(void **state, const struct source_options *o, struct document *d)
{
    struct dump_page *p = *state = *state == NULL ? create() : *state;
    (void)o;
    FAIL_IF(p == NULL, STATUS_MEMORY, "out of memory for a parser of pages");
    bool is_page = parse(p, d->raw.data, d->raw.n, true);
    for (int i = 0; i < N_FIELDS; i++) {
        TRY(buf_status(&p->fields[i]));
    }
    d->fate = is_page ? page_fate(p) : DOCUMENT_MALFORMED;
    return d->fate == DOCUMENT_KEPT ? convert_text(p, d) : status_ok();
}

/* ---- where pages are ---- */

enum { HEAD_BYTES = 1 << 20 }; /* longest <siteinfo>; English Wikipedia's takes 3 kB */

static const char PAGE[] = "<page>", PAGE_END[] = "</page>", HEAD_END[] = "</siteinfo>";

static const char *find(struct text_line line, const char *part)
{
    return line.n == 0 ? NULL : memmem(line.text, line.n, part, strlen(part));
}

static bool recognises(const char *text, size_t n)
{
    enum { PROLOGUE = 1024 }; /* beginning in which an XML file names its first element */
    struct text_line head = {.text = text, .n = n < PROLOGUE ? n : PROLOGUE}, all = {.text = text, .n = n};
    bool is_xml = n >= 5 && memcmp(text, "<?xml", 5) == 0;
    bool is_root = n >= 10 && memcmp(text, "<mediawiki", 10) == 0;
    bool is_piece = find(all, "<revision>\n") != NULL && find(all, " xml:space=\"preserve\"") != NULL;
    return is_root || is_piece || (is_xml && find(head, "<mediawiki") != NULL);
}

/* Reads <siteinfo>, if it stands before the first page, and goes back to that page if it does not. */
static struct status open_dump(struct source *s)
{
    struct buf head = {0};
    struct text_line line = {0};
    bool end = false;
    struct text_place before = text_reader_place(&s->reader);
    struct status status = status_ok();
    while (!failed(status) && !end && head.n < HEAD_BYTES && find(line, HEAD_END) == NULL) {
        before = text_reader_place(&s->reader);
        status = text_reader_next(&s->reader, &line, &end);
        if (failed(status) || end || find(line, PAGE) != NULL) {
            break;
        }
        buf_append(&head, line.text, line.n);
        buf_putc(&head, '\n');
    }
    if (!failed(status) && find(line, HEAD_END) == NULL) {
        status = text_reader_seek(&s->reader, before);
    }
    if (!failed(status)) {
        status = create_site(&s->site, head.data, head.n);
    }
    if (!failed(status)) {
        s->site->next = s->sites;
        s->sites = s->site;
    }
    buf_fini(&head);
    return status;
}

/* Finds the beginning of a page; *end if there is none. */
static struct status find_page(struct source *s, struct text_line *line, bool *end)
{
    *end = false;
    while (!*end) {
        TRY(text_reader_next(&s->reader, line, end));
        const char *found = *end ? NULL : find(*line, PAGE);
        if (found != NULL) {
            line->n -= (size_t)(found - line->text);
            line->text = found;
            return status_ok();
        }
    }
    return status_ok();
}

/* Appends the line up to the end of the page, if it is in it: then *ends is true. */
static struct status append_line(struct source *s, struct document *out, struct text_line line, bool *ends)
{
    const char *close = line.n > 0 && memchr(line.text, '<', line.n) != NULL ? find(line, PAGE_END) : NULL;
    size_t n = close == NULL ? line.n : (size_t)(close - line.text) + sizeof PAGE_END - 1;
    if (out->raw.n + n > DOCUMENT_RAW_BYTES) {
        out->fate = DOCUMENT_TOO_LARGE;
    }
    if (out->fate == DOCUMENT_KEPT) {
        source_append(s, &out->raw, (struct text_line){.text = line.text, .n = n});
        buf_putc(&out->raw, '\n');
    }
    *ends = close != NULL;
    line.n -= n;
    line.text += n;
    return *ends && find(line, PAGE) != NULL
               ? status_error(STATUS_DATA,
                              "%s line %lld has the end of a page and the beginning of another; give each "
                              "<page> a line of its own, as MediaWiki does",
                              s->reader.path, (long long)s->reader.line)
               : buf_status(&out->raw);
}

static struct status read(struct source *s, struct document *out)
{
    struct text_line line;
    bool end;
    TRY(find_page(s, &line, &end));
    if (end) {
        return status_ok();
    }
    int64_t n_gaps = s->reader.n_gaps;
    out->format = &dump_source;
    out->site = s->site;
    for (bool ends = false; !ends && out->fate != DOCUMENT_CUT;) {
        TRY(append_line(s, out, line, &ends));
        if (!ends) {
            TRY(text_reader_next(&s->reader, &line, &end));
            if (end || s->reader.n_gaps != n_gaps) {
                out->fate = DOCUMENT_CUT; /* text after a gap may be the rest of another page */
            }
        }
    }
    s->n_pages += out->fate != DOCUMENT_CUT;
    return status_ok();
}

const struct source_format dump_source = {
    .name = "dump",
    .keeps_blanks = true,
    .recognises = recognises,
    .open = open_dump,
    .read = read,
    .convert = convert,
    .convert_fini = fini,
};
