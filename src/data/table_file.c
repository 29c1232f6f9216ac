#include "data/table_file.h"

#include <string.h>
#include <strings.h>

struct status table_file_refuse(const struct table_file *t, int64_t line, const char *what)
{
    return status_error(STATUS_DATA, "%s line %lld: %s", t->path, (long long)line, what);
}

struct status table_file_add(struct table_file *t, const struct stored_row *row)
{
    buf_append(&t->rows, row, sizeof *row);
    t->n_rows++;
    TRY(buf_status(&t->names));
    TRY(buf_status(&t->text));
    TRY(buf_status(&t->cells));
    return buf_status(&t->rows);
}

static struct stored_cell *cells_of(const struct table_file *t)
{
    return (struct stored_cell *)(void *)t->cells.data;
}

const struct stored_row *table_file_rows(const struct table_file *t)
{
    return (const struct stored_row *)(const void *)t->rows.data;
}

int64_t table_file_column(const struct table_file *t, const char *name)
{
    const char *at = t->names.data;
    for (int64_t i = 0; i < t->n_columns; i++, at += strlen(at) + 1) {
        if (strcmp(at, name) == 0) {
            return i;
        }
    }
    return -1;
}

bool table_file_is_called(const char *text, const char *name)
{
    size_t skip = strspn(text, " "), n = strlen(name);
    return strncasecmp(text + skip, name, n) == 0 && text[skip + n + strspn(text + skip + n, " ")] == '\0';
}

int64_t table_file_find(const struct table_file *t, const char *name)
{
    int64_t column = table_file_column(t, name);
    for (int64_t i = 0; i < t->n_columns && column < 0; i++) {
        column = table_file_is_called(table_file_name(t, i), name) ? i : -1;
    }
    return column;
}

const char *table_file_name(const struct table_file *t, int64_t column)
{
    const char *at = t->names.data;
    for (; column > 0; column--) {
        at += strlen(at) + 1;
    }
    return at;
}

struct status table_file_add_column(struct table_file *t, const char *name, int64_t line)
{
    if (t->n_columns == TABLE_MOST_COLUMNS) {
        return table_file_refuse(t, line, "the table has more than 1,024 columns");
    }
    FAIL_IF(table_file_column(t, name) >= 0, STATUS_DATA, "%s: two columns are called \"%.100s\"", t->path,
            name);
    buf_append(&t->names, name, strlen(name) + 1);
    t->n_columns++;
    return buf_status(&t->names);
}

void table_file_close(struct table_file *t)
{
    buf_fini(&t->names);
    buf_fini(&t->text);
    buf_fini(&t->cells);
    buf_fini(&t->rows);
    *t = (struct table_file){0};
}

struct table_cell table_file_cell(const struct table_file *t, int64_t row, int64_t column)
{
    const struct stored_row *r = &table_file_rows(t)[row];
    if (column < 0 || column >= r->n) {
        return (struct table_cell){.text = ""};
    }
    const struct stored_cell *c = &cells_of(t)[r->first + column];
    return (struct table_cell){.text = c->is_there && c->n_items > 0 ? t->text.data + c->start : "",
                               .n = c->n,
                               .n_items = c->is_there ? c->n_items : 0,
                               .is_there = c->is_there,
                               .is_list = c->is_list,
                               .has_null = c->has_null,
                               .has_nested = c->has_nested};
}

struct status table_file_text(const struct table_file *t, int64_t row, int64_t column,
                              struct table_cell *cell)
{
    *cell = table_file_cell(t, row, column);
    if (cell->is_there && !cell->is_list && !cell->has_nested) {
        return status_ok();
    }
    return status_error(STATUS_DATA, "%s line %lld: \"%.60s\" is %s, but must be a text", t->path,
                        (long long)table_file_line(t, row), table_file_name(t, column),
                        !cell->is_there ? "missing or null"
                        : cell->is_list ? "a list"
                                        : "an object");
}

int64_t table_file_line(const struct table_file *t, int64_t row)
{
    return table_file_rows(t)[row].line;
}
