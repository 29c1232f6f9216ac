/* wiki_source: what WikiExtractor writes: <doc id= url= title=>, the title's line, paragraphs, </doc>. */
#define _GNU_SOURCE /* memmem */
#include "corpus/source_formats.h"

#include <string.h>

static const char BEGIN[] = "<doc id=", END[] = "</doc>";

static bool recognises(const char *text, size_t n)
{
    struct text_line line = {0};
    for (size_t at = 0; at < n && line.n == 0;) {
        line = text_line_take(text, n, &at);
    }
    return text_line_starts_with(line, BEGIN);
}

/* Appends the value of an attribute, " id=" for example, which ends at the next quotation mark; nothing if it is
 * written in another way. */
static void take_attribute(struct buf *out, struct text_line line, const char *name)
{
    const char *limit = line.text + line.n, *begin = memmem(line.text, line.n, name, strlen(name));
    begin = begin == NULL ? limit : begin + strlen(name);
    if (begin < limit && *begin == '"') {
        const char *end = memchr(begin + 1, '"', (size_t)(limit - begin) - 1);
        text_reader_repair(out, begin + 1, end == NULL ? 0 : (size_t)(end - begin) - 1);
    }
}

static struct status begin_article(struct source *s, struct document *out, struct text_line line)
{
    if (s->inside) {
        return status_error(STATUS_DATA, "%s line %lld: <doc> inside a <doc>", s->reader.path,
                            (long long)s->reader.line);
    }
    source_begin_document(s);
    document_clear(out);
    take_attribute(&out->id, line, " id=");
    take_attribute(&out->url, line, " url=");
    s->title_next = true;
    return status_ok();
}

static struct status add_line(struct source *s, struct document *out, struct text_line line)
{
    if (s->title_next) {
        s->title_next = false;
        text_reader_repair(&out->title, line.text, line.n);
        return status_ok();
    }
    if (line.n == 0) {
        return status_ok();
    }
    if (!s->inside) {
        return status_error(STATUS_DATA,
                            "%s line %lld is outside of <doc> and </doc>; if this is not the output of "
                            "WikiExtractor, give another --input_format",
                            s->reader.path, (long long)s->reader.line);
    }
    return source_add_line(s, out, line);
}

static struct status read(struct source *s, struct document *out)
{
    while (!source_is_full(out)) {
        struct text_line line;
        bool end;
        TRY(text_reader_next(&s->reader, &line, &end));
        if (end && s->inside) {
            return status_error(STATUS_DATA,
                                "%s ends inside a <doc>: it is cut short; close it with a line </doc>",
                                s->reader.path);
        }
        if (end) {
            return status_ok();
        }
        if (!line.continues && text_line_starts_with(line, BEGIN)) {
            TRY(begin_article(s, out, line));
        } else if (!line.continues && text_line_starts_with(line, END)) {
            s->title_next = false;
            source_end_document(s);
            if (out->n_paragraphs > 0) {
                return status_ok();
            }
        } else {
            TRY(add_line(s, out, line));
        }
    }
    return status_ok();
}

const struct source_format wiki_source = {
    .name = "wiki",
    .recognises = recognises,
    .read = read,
};
