#include "data/table_open.h"

#include "core/json.h"
#include "corpus/text_file.h"
#include "data/separated_table.h"

#include <string.h>
#include <strings.h>

/* ---- JSON lines ---- */

/* Appends a value and its NUL; null is empty. */
static struct status put_item(struct buf *out, struct stored_cell *cell, const json_t *value)
{
    cell->n_items++;
    cell->has_null |= json_is_null(value);
    cell->has_nested |= json_is_object(value) || json_is_array(value);
    if (json_is_string(value) || json_is_null(value)) {
        const char *text = json_is_null(value) ? "" : json_string_value(value);
        buf_append(out, text, strlen(text) + 1);
        return buf_status(out);
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
    if (text == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a value");
    }
    buf_append(out, text, strlen(text) + 1);
    free(text);
    return buf_status(out);
}

static struct status put_value(struct table_file *t, struct stored_cell *cell, const json_t *value)
{
    size_t i;
    const json_t *item;
    *cell = (struct stored_cell){
        .start = t->text.n, .is_there = !json_is_null(value), .is_list = json_is_array(value)};
    if (!cell->is_list) {
        TRY(put_item(&t->text, cell, value));
    }
    json_array_foreach(value, i, item)
    {
        TRY(put_item(&t->text, cell, item));
    }
    cell->n = cell->n_items > 0 ? strlen(t->text.data + cell->start) : 0;
    return status_ok();
}

static struct status put_object(struct table_file *t, json_t *object, int64_t line)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (table_file_column(t, key) < 0) {
            TRY(table_file_add_column(t, key, line));
        }
    }
    struct stored_row row = {
        .first = (int64_t)(t->cells.n / sizeof(struct stored_cell)), .n = t->n_columns, .line = line};
    const char *name = t->names.data;
    for (int64_t i = 0; i < t->n_columns; i++, name += strlen(name) + 1) {
        struct stored_cell cell = {0};
        value = json_object_get(object, name);
        if (value != NULL) {
            TRY(put_value(t, &cell, value));
        }
        buf_append(&t->cells, &cell, sizeof cell);
    }
    return table_file_add(t, &row);
}

static bool is_blank(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && strchr(" \t\r", text[i]) != NULL && text[i] != '\0') {
        i++;
    }
    return i == n;
}

static struct status read_json_lines(struct table_file *t, struct text_file *f)
{
    char place[FILE_PATH_BYTES];
    const char *line;
    for (size_t n; text_file_next(f, &line, &n);) {
        int64_t number = f->line - 1;
        if (!is_blank(line, n)) {
            json_t *object;
            snprintf(place, sizeof place, "%.900s line %lld", t->path, (long long)number);
            TRY(json_parse_text(&object, line, n, place));
            struct status s =
                json_is_object(object)
                    ? put_object(t, object, number)
                    : table_file_refuse(t, number,
                                        "each line must be a JSON object, {\"column\": value, ...}");
            json_decref(object);
            TRY(s);
        }
    }
    return status_ok();
}

/* ---- files ---- */

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), n_end = strlen(end);
    return n >= n_end && strcasecmp(path + n - n_end, end) == 0;
}

static struct status read_text(struct table_file *t, struct text_file *f, const struct table_options *o)
{
    if (f->n == 0) {
        return status_error(STATUS_DATA, "%s is empty", t->path);
    }
    TRY(text_file_refuse_nul(f));
    if (!ends_with(t->path, ".csv") && !ends_with(t->path, ".tsv")) {
        return read_json_lines(t, f);
    }
    return separated_table_read(t, f, ends_with(t->path, ".csv"), o);
}

struct status table_open(struct table_file *t, const char *path, const struct table_options *o)
{
    struct text_file f;
    *t = (struct table_file){.path = path, .has_names = true};
    if (!ends_with(path, ".csv") && !ends_with(path, ".tsv") && !ends_with(path, ".json") &&
        !ends_with(path, ".jsonl") && !ends_with(path, ".ndjson")) {
        return status_error(
            STATUS_USAGE,
            "%s: the name of a table must end in .csv, .tsv or, for JSON lines, .json or .jsonl", path);
    }
    TRY(text_file_open(&f, path, o->encoding));
    struct status s = read_text(t, &f, o);
    s = failed(s) ? s : text_file_check(&f);
    text_file_close(&f);
    if (failed(s)) {
        table_file_close(t);
    }
    return s;
}
