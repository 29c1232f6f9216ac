/* json_source: JSON lines, as OSCAR and others publish text: each line is an object with the text in a field.
 *
 * The text is a string, or a list of strings as in OSCAR's newer form, and each line of it is a paragraph.  "id",
 * "title" and "url" are used if they are there. */
#include "core/json.h"
#include "corpus/source_formats.h"

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
    json_t *root = NULL;
    bool is_object = !is_cut && !failed(json_parse(&root, line.text, line.n, "a line"));
    json_decref(root);
    return is_object || (is_cut && line.text[1] == '"');
}

static struct status read(struct source *s, struct document *out)
{
    struct text_line line = {0};
    bool end = false;
    while (line.n == 0 && !end) {
        TRY(text_reader_next(&s->reader, &line, &end));
    }
    if (end) {
        return status_ok();
    }
    out->format = &json_source;
    out->fate = line.continues ? DOCUMENT_TOO_LARGE : DOCUMENT_KEPT;
    source_append(s, &out->raw, line);
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

/* Adds the value of the field: a string, or a list of them. */
static struct status add_field(struct document *d, const json_t *value)
{
    if (json_is_string(value)) {
        return add_lines(d, json_string_value(value), json_string_length(value));
    }
    if (!json_is_array(value)) {
        d->fate = DOCUMENT_WITHOUT_FIELD;
        return status_ok();
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        if (json_is_string(item)) {
            TRY(add_lines(d, json_string_value(item), json_string_length(item)));
        }
    }
    return status_ok();
}

static void copy_name(struct buf *out, const json_t *value)
{
    if (json_is_string(value)) {
        buf_append(out, json_string_value(value), json_string_length(value));
    } else if (json_is_integer(value)) {
        buf_printf(out, "%lld", (long long)json_integer_value(value));
    }
}

static struct status convert(void **state, const struct source_options *o, struct document *d)
{
    json_t *root = NULL;
    (void)state;
    struct status s = json_parse(&root, d->raw.data, d->raw.n, "a line");
    if (failed(s) || !json_is_object(root)) {
        d->fate = DOCUMENT_MALFORMED;
        json_decref(root);
        return status_ok();
    }
    copy_name(&d->id, json_object_get(root, "id"));
    copy_name(&d->title, json_object_get(root, "title"));
    copy_name(&d->url, json_object_get(root, "url"));
    s = add_field(d, json_object_get(root, o->text_field == NULL ? "text" : o->text_field));
    json_decref(root);
    return s;
}

const struct source_format json_source = {
    .name = "json",
    .recognises = recognises,
    .read = read,
    .convert = convert,
};
