#include "corpus/text_output.h"

struct status text_output_open(struct text_output *t, const char *path, const struct text_output_place *from)
{
    *t = (struct text_output){
        .inside = from->inside, .begins = from->begins, .n_documents = from->n_documents};
    return append_file_open(&t->file, path, from->file);
}

void text_output_close(struct text_output *t)
{
    append_file_close(&t->file);
    buf_fini(&t->line);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\';
}

/* Valid UTF-8 stays as it is; RFC 8259 wants the rest escaped. */
static void put_escaped(struct buf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t begin = i;
        while (i < n && is_plain((unsigned char)text[i])) {
            i++;
        }
        buf_append(out, text + begin, i - begin);
        if (i < n && (unsigned char)text[i] >= 0x20) {
            buf_putc(out, '\\');
            buf_putc(out, text[i++]);
        } else if (i < n && (text[i] == '\n' || text[i] == '\t')) {
            buf_puts(out, text[i++] == '\n' ? "\\n" : "\\t");
        } else if (i < n) {
            buf_printf(out, "\\u%04x", (unsigned char)text[i++]);
        }
    }
}

static void put_field(struct buf *out, const char *before, const struct buf *value)
{
    buf_puts(out, before);
    put_escaped(out, buf_text(value), value->n);
}

void text_output_begin(struct text_output *t)
{
    text_output_end(t);
    t->begins = true;
}

void text_output_end(struct text_output *t)
{
    if (t->inside) {
        append_file_put(&t->file, "\"}\n", 3);
    }
    t->inside = false;
}

struct status text_output_add(struct text_output *t, const struct document *d, struct paragraph p)
{
    buf_clear(&t->line);
    if (t->begins) {
        put_field(&t->line, "{\"id\": \"", &d->id);
        put_field(&t->line, "\", \"url\": \"", &d->url);
        put_field(&t->line, "\", \"title\": \"", &d->title);
        buf_putc(&t->line, '"');
        buf_append(&t->line, buf_text(&d->fields), d->fields.n);
        buf_puts(&t->line, ", \"text\": \"");
        t->n_documents++;
    } else if (!d->is_exact) {
        buf_puts(&t->line, "\\n");
    }
    t->begins = false;
    t->inside = true;
    put_escaped(&t->line, p.text, p.n);
    TRY(buf_status(&t->line));
    append_file_put(&t->file, t->line.data, t->line.n);
    return t->file.status;
}

struct status text_output_save(struct text_output *t, struct text_output_place *place)
{
    TRY(append_file_sync(&t->file));
    *place = (struct text_output_place){
        .file = t->file.mark, .inside = t->inside, .begins = t->begins, .n_documents = t->n_documents};
    return status_ok();
}
