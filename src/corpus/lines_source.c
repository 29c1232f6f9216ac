/* lines_source: blank lines end documents; a line is a paragraph, or a sentence. */
#include "corpus/source_formats.h"

/* Recognises consecutive lines, most of which end like a sentence. */
static bool recognises(const char *text, size_t n)
{
    int64_t n_lines = 0, n_blocks = 0, n_ended = 0;
    bool in_block = false;
    for (size_t at = 0; at < n;) {
        struct text_line line = text_line_take(text, n, &at);
        if (line.n > 0) {
            n_lines++;
            n_blocks += !in_block;
            n_ended += text_line_ends_sentence(line);
        }
        in_block = line.n > 0;
    }
    return n_lines > n_blocks && 3 * n_ended >= 2 * n_lines;
}

static struct status read(struct source *s, struct document *out)
{
    bool is_full = false;
    while (!is_full) {
        struct text_line line;
        bool end;
        TRY(text_reader_next(&s->reader, &line, &end));
        if (end) {
            TRY(source_end_paragraph(s, out));
            source_end_document(s);
            return status_ok();
        }
        if (text_line_trim(line).n > 0) {
            if (!s->inside) {
                source_begin_document(s);
            }
            TRY(s->keeps_layout ? source_add_exact(s, out, line, &is_full) : source_add_line(s, out, line));
        } else if (s->has_text || out->text.n > 0) {
            TRY(source_end_paragraph(s, out));
            source_end_document(s);
            if (out->n_paragraphs > 0) {
                return status_ok();
            }
        }
        is_full = is_full || source_is_full(out);
    }
    return status_ok();
}

const struct source_format lines_source = {
    .name = "lines",
    .is_prose = true,
    .file_is_document = true,
    .recognises = recognises,
    .read = read,
};
