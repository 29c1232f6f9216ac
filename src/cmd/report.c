#include "cmd/report.h"

#include "core/buf.h"

#include <inttypes.h>
#include <string.h>

enum { KEY_WIDTH = 32, MAX_COLUMNS = 8, INDENT = 2 };

static void append_printable(struct buf *b, const char *text)
{
    for (; *text != '\0'; text++) {
        buf_putc(b, (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
    }
}

/* One value on one line; a nested object is only shown as {...}. */
static void append_value(struct buf *b, const json_t *value)
{
    const json_t *item;
    size_t i;
    switch (json_typeof(value)) {
    case JSON_STRING: append_printable(b, json_string_value(value)); break;
    case JSON_INTEGER: buf_printf(b, "%" PRId64, (int64_t)json_integer_value(value)); break;
    case JSON_REAL: buf_printf(b, "%g", json_real_value(value)); break;
    case JSON_TRUE: buf_puts(b, "yes"); break;
    case JSON_FALSE: buf_puts(b, "no"); break;
    case JSON_NULL: buf_puts(b, "-"); break;
    case JSON_OBJECT: buf_puts(b, "{...}"); break;
    case JSON_ARRAY:
        buf_putc(b, '[');
        json_array_foreach(value, i, item)
        {
            buf_puts(b, i == 0 ? "" : ", ");
            append_value(b, item);
        }
        buf_putc(b, ']');
        break;
    }
}

static void append_spaces(struct buf *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_putc(b, ' ');
    }
}

static size_t width_of(const json_t *value)
{
    struct buf b = {0};
    append_value(&b, value);
    size_t n = b.n;
    buf_fini(&b);
    return n;
}

/* A table of objects with the same keys, one row each; the last column is not padded. */
static void append_table(struct buf *b, const json_t *rows, size_t indent)
{
    size_t widths[MAX_COLUMNS] = {0};
    const json_t *row;
    const char *key;
    json_t *value;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        size_t column = 0;
        json_object_foreach((json_t *)row, key, value)
        {
            size_t width = width_of(value);
            if (column < MAX_COLUMNS && width > widths[column]) {
                widths[column] = width;
            }
            column++;
        }
    }
    json_array_foreach(rows, i, row)
    {
        size_t column = 0;
        append_spaces(b, indent);
        json_object_foreach((json_t *)row, key, value)
        {
            append_value(b, value);
            bool last = column + 1 >= json_object_size(row) || column >= MAX_COLUMNS;
            append_spaces(b, last ? 0 : widths[column] - width_of(value) + INDENT);
            column++;
        }
        buf_putc(b, '\n');
    }
}

static void append_object(struct buf *b, const json_t *object, size_t indent)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        append_spaces(b, indent);
        append_printable(b, key);
        if (json_is_object(value) && indent < KEY_WIDTH / 2) {
            buf_putc(b, '\n');
            append_object(b, value, indent + INDENT);
        } else if (json_is_object(json_array_get(value, 0))) {
            buf_putc(b, '\n');
            append_table(b, value, indent + INDENT);
        } else {
            size_t used = indent + strlen(key);
            append_spaces(b, used + 1 < KEY_WIDTH ? KEY_WIDTH - used : 1);
            append_value(b, value);
            buf_putc(b, '\n');
        }
    }
}

char *report_to_text(const json_t *object)
{
    struct buf b = {0};
    append_object(&b, object, 0);
    if (b.failed) {
        buf_fini(&b);
    }
    return b.data;
}
