/* json_source: JSON lines, as OSCAR and others publish text: each line is an object with the text in a field.
 *
 * Only the fields that are read are judged (corpus/json_fields).  The text is a string, or a list of strings
 * as in OSCAR's newer form, and each line of it is a paragraph.  "id", "title" and "url" are used if they are
 * there. */
#include "corpus/json_fields.h"
#include "corpus/source_formats.h"
#include "text/utf8.h"

#include <string.h>

/* The first line is an object, and holds all of it. */
static bool recognises(const char *text, size_t n)
{
    struct text_line line = {0};
    for (size_t at = 0; at < n && line.n == 0;) {
        line = text_line_take(text, n, &at);
    }
    if (line.n < 2 || line.text[0] != '{') {
        return false;
    }
    bool is_cut = n >= TEXT_READER_HEAD_BYTES && line.text + line.n == text + n; /* by the end of the head */
    bool is_object = !is_cut && json_fields_find(NULL, NULL, 0, line.text, line.n);
    return is_object || (is_cut && line.text[1] == '"');
}

static struct status read(struct source *s, struct document *out)
{
    struct text_line line = {0};
    bool end = false;
    while ((line.n == 0 || (s->keeps_layout && line.continues)) && !end) {
        TRY(text_reader_next(&s->reader, &line, &end));
    }
    if (end) {
        return status_ok();
    }
    bool is_cut = line.continues || (s->keeps_layout && s->reader.inside_line);
    out->format = &json_source;
    out->fate = is_cut ? DOCUMENT_TOO_LARGE : DOCUMENT_KEPT;
    if (s->keeps_layout) {
        buf_append(&out->raw, line.text, line.n); /* whether it is UTF-8 decides on this line alone */
    } else {
        source_append(s, &out->raw, line);
    }
    return buf_status(&out->raw);
}

static struct status add_lines(struct document *d, const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        struct text_line line = text_line_take(text, n, &at);
        if (line.n > 0) {
            buf_append(&d->text, line.text, line.n);
            TRY(document_end_paragraph(d));
        }
    }
    return status_ok();
}

/* Appends a string and the end of a line; a value that is no string is left out.  False: a string
 * breaks the rules of JSON. */
static bool take_string(struct buf *text, struct json_slice value)
{
    bool is_string = json_fields_string(text, value);
    buf_putc(text, '\n');
    return is_string || value.text[0] != '"';
}

/* Adds the value of the field: a string, or a list of them. */
static struct status add_field(struct document *d, struct json_slice value)
{
    struct buf text = {0};
    struct json_slice item;
    char first = value.text == NULL ? '\0' : value.text[0];
    if (first != '"' && first != '[') {
        d->fate = DOCUMENT_WITHOUT_FIELD;
        return status_ok();
    }
    bool valid = first == '[' || take_string(&text, value);
    for (size_t at = 0; valid && json_fields_item(&item, value, &at);) {
        valid = take_string(&text, item);
    }
    struct status s = buf_status(&text);
    if (!valid) {
        d->fate = DOCUMENT_MALFORMED;
    } else if (!failed(s)) {
        s = add_lines(d, text.data, text.n);
    }
    buf_fini(&text);
    return s;
}

/* Appends a value that is a string, or an integer of any size; nothing for other values. */
static void copy_name(struct buf *out, struct json_slice value)
{
    if (value.text == NULL || json_fields_string(out, value)) {
        return;
    }
    size_t sign = value.text[0] == '-';
    bool is_whole = value.n > sign && strspn(value.text + sign, "0123456789") >= value.n - sign;
    buf_append(out, value.text, is_whole ? value.n : 0);
}

/* False, and a fate: the line is not UTF-8, and is not to be repaired. */
static bool check_utf8(const struct source_options *o, struct document *d)
{
    struct buf repaired = {0};
    if (utf8_find_invalid(buf_text(&d->raw), d->raw.n) == d->raw.n) {
        return true;
    }
    if (!o->replace_invalid_utf8) {
        d->fate = DOCUMENT_NOT_UTF8;
        return false;
    }
    utf8_repair(&repaired, d->raw.data, d->raw.n);
    buf_fini(&d->raw);
    d->raw = repaired;
    return true;
}

/* Makes a paragraph of the text of each key, which must be a string; texts without a byte are no text. */
static struct status add_exactly(struct document *d, const struct json_slice *values, int n)
{
    d->is_exact = true;
    for (int k = 0; k < n && d->fate == DOCUMENT_KEPT; k++) {
        d->fate = values[k].text == NULL ? DOCUMENT_WITHOUT_FIELD : DOCUMENT_KEPT;
    }
    for (int k = 0; k < n && d->fate == DOCUMENT_KEPT; k++) {
        if (json_fields_exact(&d->text, values[k])) {
            TRY(document_end_paragraph(d));
        } else {
            d->fate = values[k].text[0] == '"' ? DOCUMENT_MALFORMED : DOCUMENT_NO_STRING;
        }
    }
    d->n_paragraphs = d->text.n == 0 ? 0 : d->n_paragraphs;
    return status_ok();
}

/* Appends the fields to be kept, with their values as they stand in the line. */
static void keep_fields(struct document *d, const struct source_options *o, const struct json_slice *values)
{
    for (int k = 0; k < o->n_kept_fields; k++) {
        if (values[k].text != NULL) {
            buf_printf(&d->fields, ", \"%s\": ", o->kept_fields[k]);
            buf_append(&d->fields, values[k].text, values[k].n);
        }
    }
}

static struct status convert(void **state, const struct source_options *o, struct document *d)
{
    enum { ID, TITLE, URL, FIELDS, TEXTS = FIELDS + SOURCE_MOST_KEYS, N_KEYS = TEXTS + SOURCE_MOST_KEYS };
    const char *keys[N_KEYS] = {"id", "title", "url"};
    struct json_slice values[N_KEYS];
    int n_texts = o->n_json_keys > 0 ? o->n_json_keys : 1, texts = FIELDS + o->n_kept_fields;
    (void)state;
    for (int k = 0; k < o->n_kept_fields; k++) {
        keys[FIELDS + k] = o->kept_fields[k];
    }
    for (int k = 0; k < n_texts; k++) {
        keys[texts + k] = o->n_json_keys > 0      ? o->json_keys[k]
                          : o->text_field == NULL ? "text"
                                                  : o->text_field;
    }
    if (o->keeps_layout && !check_utf8(o, d)) {
        return status_ok();
    }
    TRY(buf_status(&d->raw));
    if (!json_fields_find(values, keys, texts + n_texts, d->raw.data, d->raw.n)) {
        d->fate = DOCUMENT_MALFORMED;
        return status_ok();
    }
    copy_name(&d->id, values[ID]);
    copy_name(&d->title, values[TITLE]);
    copy_name(&d->url, values[URL]);
    keep_fields(d, o, values + FIELDS);
    return o->keeps_layout ? add_exactly(d, values + texts, n_texts) : add_field(d, values[texts]);
}

const struct source_format json_source = {
    .name = "json",
    .recognises = recognises,
    .read = read,
    .convert = convert,
};
