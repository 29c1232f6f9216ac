/* dump_source: a MediaWiki export (XML), such as Wikipedia's pages-articles.
 *
 * Reading only finds <siteinfo> at the head, and where pages begin and end; corpus/dump_page.h parses them,
 * in any thread. That is safe because text inside XML has no "<": <page> and </page> are never part of it.
 * So a damaged part, or a page that is not well-formed, costs that page and no other. */
#define _GNU_SOURCE /* memmem */
#include "corpus/dump_page.h"
#include "corpus/source_formats.h"

#include <string.h>

enum { HEAD_BYTES = 1 << 20 }; /* of <siteinfo>; English Wikipedia's takes 3 kB */

static const char PAGE[] = "<page>", PAGE_END[] = "</page>", HEAD_END[] = "</siteinfo>";

static const char *find(struct text_line line, const char *part)
{
    return line.n == 0 ? NULL : memmem(line.text, line.n, part, strlen(part));
}

static bool recognises(const char *text, size_t n)
{
    enum { PROLOGUE = 1024 }; /* in which an XML file names its first element */
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
        status = dump_site_create(&s->site, head.data, head.n);
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
                out->fate = DOCUMENT_CUT; /* what follows a gap may be the rest of another page */
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
    .convert = dump_page_convert,
    .convert_fini = dump_page_fini,
};
