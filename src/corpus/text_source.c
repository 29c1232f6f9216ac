/* text_source: prose and books.  A document is a file; blank lines end paragraphs, whose lines are joined. */
#include "corpus/source_formats.h"

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
    source_append(s, out, line);
    return status_ok();
}

static struct status read(struct source *s, struct document *out)
{
    while (!source_is_full(out)) {
        struct text_line line;
        bool end;
        TRY(text_reader_next(&s->reader, &line, &end));
        if (end) {
            TRY(source_end_paragraph(s, out));
            source_end_document(s);
            return status_ok();
        }
        TRY(line.n > 0 ? join_line(s, out, line) : source_end_paragraph(s, out));
    }
    return status_ok();
}

const struct source_format text_source = {
    .name = "text",
    .is_prose = true,
    .file_is_document = true,
    .read = read,
};
