/* wiki_source: what WikiExtractor writes: <doc id= url= title=>, the title's line, paragraphs, </doc>.
 *
 * Its version 3 escapes &, < and > as HTML does, older ones do not: a line where none of these stands alone
 * is read back, once. A document without </doc>, at the end of a file that was cut or before the next <doc>,
 * is used as far as it goes and counted. */
#define _GNU_SOURCE /* memmem */
#include "core/log.h"
#include "corpus/html_entities.h"
#include "corpus/source_formats.h"
#include "text/utf8.h"

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

/* Appends the value of an attribute, " id=" for example, which ends at the next quotation mark; nothing if it
 * is written in another way. */
static void take_attribute(struct buf *out, struct text_line line, const char *name)
{
    const char *limit = line.text + line.n, *begin = memmem(line.text, line.n, name, strlen(name));
    begin = begin == NULL ? limit : begin + strlen(name);
    if (begin < limit && *begin == '"') {
        const char *end = memchr(begin + 1, '"', (size_t)(limit - begin) - 1);
        utf8_repair(out, begin + 1, end == NULL ? 0 : (size_t)(end - begin) - 1);
    }
}

static void end_unclosed(struct source *s, const char *by)
{
    if (!s->reader.stream.quiet) {
        log_warning("%s line %lld: %s before the </doc> of the document, whose text up to there is used",
                    s->reader.path, (long long)s->reader.line, by);
    }
    s->counts->n_unclosed++;
    s->title_next = false;
    source_end_document(s);
}

static struct status begin_article(struct source *s, struct document *out, struct text_line line)
{
    source_begin_document(s);
    document_clear(out);
    take_attribute(&out->id, line, " id=");
    take_attribute(&out->url, line, " url=");
    s->title_next = true;
    return status_ok();
}

/* The character of an escape of &, <, >, " or ' at text[0..n), and its bytes; 0 if there is none. */
static size_t escape_at(char *c, const char *text, size_t n)
{
    char decoded[HTML_ENTITY_TEXT_BYTES];
    size_t n_decoded, n_escape = html_entities_decode(decoded, &n_decoded, text, n);
    if (n_escape == 0 || n_decoded != 1 || strchr("&<>\"'", decoded[0]) == NULL) {
        return 0;
    }
    *c = decoded[0];
    return n_escape;
}

static bool is_escaped(const char *text, size_t n)
{
    char c;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '<' || text[i] == '>' || (text[i] == '&' && escape_at(&c, text + i, n - i) == 0)) {
            return false;
        }
    }
    return true;
}

/* Reads escapes back, in what `text` has from `begin` on, which becomes shorter. */
static void unescape(struct buf *text, size_t begin)
{
    if (!is_escaped(text->data + begin, text->n - begin)) {
        return;
    }
    size_t to = begin;
    for (size_t from = begin; from < text->n; to++) {
        size_t n =
            text->data[from] == '&' ? escape_at(&text->data[to], text->data + from, text->n - from) : 0;
        text->data[to] = n == 0 ? text->data[from] : text->data[to];
        from += n == 0 ? 1 : n;
    }
    text->n = to;
}

static struct status add_line(struct source *s, struct document *out, struct text_line line)
{
    size_t begin = out->text.n;
    if (s->title_next) {
        s->title_next = false;
        utf8_repair(&out->title, line.text, line.n);
        unescape(&out->title, 0);
        return status_ok();
    }
    if (line.n == 0) {
        return status_ok();
    }
    FAIL_IF(!s->inside, STATUS_DATA,
            "%s line %lld is outside of <doc> and </doc>; if this is not the output of "
            "WikiExtractor, give another --input_format",
            s->reader.path, (long long)s->reader.line);
    s->counts->n_cut += line.continues;
    source_append(s, &out->text, line);
    unescape(&out->text, begin);
    return source_end_paragraph(s, out);
}

static struct status read(struct source *s, struct document *out)
{
    while (!source_is_full(out)) {
        struct text_line line;
        bool end;
        TRY(text_reader_next(&s->reader, &line, &end));
        bool begins = !end && !line.continues && text_line_starts_with(line, BEGIN);
        if (s->inside && (end || begins)) {
            end_unclosed(s, end ? "the file ends" : "a <doc> begins");
        }
        if (end) {
            return status_ok();
        }
        if (begins) {
            if (out->n_paragraphs > 0) {
                text_reader_put_back(&s->reader);
                return status_ok();
            }
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
