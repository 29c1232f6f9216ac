#include "corpus/source.h"

#include "corpus/source_formats.h"
#include "corpus/wiki_site.h"
#include "text/utf8.h"

void source_init(struct source *s, struct source_counts *counts)
{
    *s = (struct source){.counts = counts};
    text_reader_init(&s->reader);
}

void source_fini(struct source *s)
{
    text_reader_fini(&s->reader);
    wiki_site_free_list(s->sites);
    s->site = s->sites = NULL;
    s->format = NULL;
}

void source_close(struct source *s)
{
    text_reader_close(&s->reader);
    s->format = NULL;
    s->inside = s->has_text = s->title_next = false;
    s->book_begin = s->book_end = 0;
    s->n_pages = 0;
}

/* Whether a file begins with a list: then it is not lines of JSON, whatever its name is. */
static bool is_list(const char *head, size_t n)
{
    struct text_line line = {0};
    for (size_t at = utf8_mark_bytes(head, n); at < n && line.n == 0;) {
        line = text_line_take(head, n, &at);
    }
    return line.n > 0 && line.text[0] == '[';
}

/* Where text is kept exactly, a name may say what a file has, and the blank lines of prose stay in it. */
static struct status choose_format(struct source *s, const struct source_format *wanted)
{
    size_t n;
    const char *head = text_reader_head(&s->reader, &n);
    bool is_lines =
        s->keeps_layout && wanted == NULL && source_formats_names_json(s->reader.path) && !is_list(head, n);
    TRY(source_formats_choose(&s->format, is_lines ? &json_source : wanted, s->reader.path, head, n));
    s->format = s->keeps_layout && wanted == NULL && s->format == &lines_source ? &text_source : s->format;
    s->reader.keeps_blanks = s->format->keeps_blanks || (s->keeps_layout && s->format->is_prose);
    s->reader.replace_invalid_utf8 |= s->keeps_layout && s->format == &json_source; /* each line is judged */
    return s->format->open == NULL ? status_ok() : s->format->open(s);
}

struct status source_open(struct source *s, const char *path, uint64_t n_bytes,
                          const struct source_options *o)
{
    source_close(s);
    s->keep_gutenberg = o->keep_gutenberg;
    s->keeps_layout = o->keeps_layout;
    s->reader.stream.quiet = o->quiet;
    TRY(text_reader_open(&s->reader, path, n_bytes, o->encoding, o->replace_invalid_utf8));
    struct status status = choose_format(s, o->format);
    if (failed(status)) {
        source_close(s);
        return status;
    }
    if (s->format->file_is_document) {
        source_begin_document(s);
    }
    return status_ok();
}

struct status source_next(struct source *s, struct document *out, bool *end)
{
    document_clear(out);
    TRY(s->format->read(s, out));
    *end = !document_is_there(out);
    return status_ok();
}

struct source_place source_place(const struct source *s)
{
    return (struct source_place){text_reader_place(&s->reader), s->inside, s->has_text, s->n_pages};
}

struct status source_seek(struct source *s, struct source_place place)
{
    TRY(text_reader_seek(&s->reader, place.text));
    s->inside = place.inside;
    s->has_text = place.has_text;
    s->n_pages = place.n_pages;
    return status_ok();
}

void source_begin_document(struct source *s)
{
    s->inside = true;
    s->has_text = false;
}

void source_end_document(struct source *s)
{
    s->counts->n_empty_documents += s->inside && !s->has_text;
    s->inside = false;
    s->has_text = false;
}

void source_append(struct source *s, struct buf *to, struct text_line line)
{
    if (s->reader.replace_invalid_utf8) {
        s->counts->n_replaced += utf8_repair(to, line.text, line.n);
    } else {
        buf_append(to, line.text, line.n);
    }
}

struct status source_end_paragraph(struct source *s, struct document *out)
{
    if (document_open_bytes(out) == 0) {
        return buf_status(&out->text);
    }
    if (!s->has_text) {
        s->has_text = true;
        s->counts->n_documents++;
        out->begins = true;
    }
    return document_end_paragraph(out);
}

struct status source_add_line(struct source *s, struct document *out, struct text_line line)
{
    s->counts->n_cut += line.continues;
    source_append(s, &out->text, line);
    return source_end_paragraph(s, out);
}

struct status source_add_exact(struct source *s, struct document *out, struct text_line line, bool *is_full)
{
    bool is_indented = line.n == 0 || text_line_trim((struct text_line){.text = line.text, .n = 1}).n == 0;
    out->is_exact = true;
    *is_full = out->text.n >= DOCUMENT_BYTES && !line.continues && !is_indented;
    if (*is_full) {
        text_reader_put_back(&s->reader);
        return source_end_paragraph(s, out);
    }
    bool has_end = s->reader.at - s->reader.last > line.n;
    line.n -= has_end && line.n > 0 && line.text[line.n - 1] == '\r';
    source_append(s, &out->text, line);
    buf_append(&out->text, "\n", has_end);
    *is_full = out->text.n >= DOCUMENT_PARAGRAPH_BYTES;
    return *is_full ? source_end_paragraph(s, out) : buf_status(&out->text);
}

bool source_is_full(const struct document *out)
{
    return out->text.n >= DOCUMENT_BYTES && document_open_bytes(out) == 0;
}
