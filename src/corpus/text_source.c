/* text_source: prose and books.  A document is a file; blank lines end paragraphs, whose lines are joined.
 *
 * A book of Project Gutenberg begins and ends with its licence, apart from the text by a line each, "***
 * START OF THE PROJECT GUTENBERG EBOOK ..." and "*** END OF ...".  If a file has both, the text outside of
 * them is left out. */
#define _GNU_SOURCE /* memmem */
#include "corpus/source_formats.h"

#include <string.h>

static bool is_mark(struct text_line line, const char *begin)
{
    static const char name[] = "PROJECT GUTENBERG";
    size_t at = 3, n = strlen(begin);
    if (line.continues || line.n < 4 || memcmp(line.text, "***", 3) != 0) {
        return false;
    }
    at += line.text[at] == ' ';
    return line.n - at >= n && memcmp(line.text + at, begin, n) == 0 &&
           memmem(line.text, line.n, name, sizeof name - 1) != NULL;
}

static uint64_t offset(const struct source *s)
{
    return s->reader.buffer_at + s->reader.at;
}

/* Finds both marks by reading the file once more: the first is in its head, the second may be anywhere. */
static struct status find_book(struct source *s)
{
    bool end = false;
    while (!end && s->book_end == 0) {
        struct text_line line;
        uint64_t before = offset(s);
        TRY(text_reader_next(&s->reader, &line, &end));
        if (!end && s->book_begin == 0 && is_mark(line, "START OF")) {
            s->book_begin = offset(s);
        } else if (!end && s->book_begin > 0 && is_mark(line, "END OF")) {
            s->book_end = before;
        }
    }
    s->counts->n_gutenberg += s->book_end > 0;
    s->reader.n_gaps = s->reader.stream.n_damaged = 0; /* the seek counts them again */
    return text_reader_seek(&s->reader, (struct text_place){0});
}

static struct status open_text(struct source *s)
{
    size_t n;
    const char *head = text_reader_head(&s->reader, &n);
    n = n < TEXT_READER_HEAD_BYTES ? n : TEXT_READER_HEAD_BYTES;
    bool may_have = !s->keep_gutenberg && n > 0 && memmem(head, n, "START OF", sizeof "START OF" - 1) != NULL;
    return may_have ? find_book(s) : status_ok();
}

static bool is_outside(const struct source *s, uint64_t at)
{
    return s->book_end > 0 && (at < s->book_begin || at >= s->book_end);
}

/* Appends a line that is not blank to its paragraph. */
static struct status join_line(struct source *s, struct document *out, struct text_line line)
{
    size_t open_bytes = document_open_bytes(out);
    if (open_bytes > 0 && (line.continues || open_bytes + line.n >= DOCUMENT_PARAGRAPH_BYTES)) {
        s->counts->n_cut++;
        TRY(source_end_paragraph(s, out));
    } else if (open_bytes > 0) {
        buf_putc(&out->text, ' ');
    }
    source_append(s, &out->text, line);
    return status_ok();
}

/* A file of nothing but white space has no text. */
static void drop_blank(const struct source *s, struct document *out)
{
    bool is_blank = out->is_exact && !s->has_text;
    for (size_t at = 0; is_blank && at < out->text.n;) {
        is_blank = text_line_take(out->text.data, out->text.n, &at).n == 0;
    }
    if (is_blank) {
        buf_clear(&out->text);
    }
}

static struct status read(struct source *s, struct document *out)
{
    while (!source_is_full(out)) {
        struct text_line line;
        bool end;
        uint64_t before = offset(s);
        TRY(text_reader_next(&s->reader, &line, &end));
        if (!end && is_outside(s, before)) {
            continue;
        }
        if (end) {
            drop_blank(s, out);
            TRY(source_end_paragraph(s, out));
            source_end_document(s);
            return status_ok();
        }
        if (s->keeps_layout) {
            bool is_full;
            TRY(source_add_exact(s, out, line, &is_full));
            if (is_full) {
                return status_ok();
            }
            continue;
        }
        TRY(line.n > 0 ? join_line(s, out, line) : source_end_paragraph(s, out));
    }
    return status_ok();
}

const struct source_format text_source = {
    .name = "text",
    .is_prose = true,
    .file_is_document = true,
    .open = open_text,
    .read = read,
};
