#include "data/table_file.h"

#include "core/json.h"
#include "corpus/text_file.h"

#include <string.h>
#include <strings.h>

struct stored_cell {
    size_t start, n;
    int64_t n_items;
    bool is_there, is_list, has_null, has_nested;
};

struct stored_row {
    int64_t first, n; /* its range of cells: one for each column known at that time */
    int64_t line;
};

/* The input and the position in it. */
struct reader {
    struct table_file *t;
    const char *at, *end;
    int64_t line;
    char line_end; /* '\n', or '\r' of old Macs */
    char separator;
    bool quotes;
};

static struct status wrong(const struct reader *r, const char *what)
{
    return status_error(STATUS_DATA, "%s line %lld: %s", r->t->path, (long long)r->line, what);
}

static struct status table_status(const struct table_file *t)
{
    TRY(buf_status(&t->names));
    TRY(buf_status(&t->text));
    TRY(buf_status(&t->cells));
    return buf_status(&t->rows);
}

static struct stored_cell *cells_of(const struct table_file *t)
{
    return (struct stored_cell *)(void *)t->cells.data;
}

static const struct stored_row *rows_of(const struct table_file *t)
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

/* Without regard to upper and lower case, and to blanks around the text. */
static bool is_called(const char *text, const char *name)
{
    size_t skip = strspn(text, " "), n = strlen(name);
    return strncasecmp(text + skip, name, n) == 0 && text[skip + n + strspn(text + skip + n, " ")] == '\0';
}

int64_t table_file_find(const struct table_file *t, const char *name)
{
    int64_t column = table_file_column(t, name);
    for (int64_t i = 0; i < t->n_columns && column < 0; i++) {
        column = is_called(table_file_name(t, i), name) ? i : -1;
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

static struct status add_column(const struct reader *r, const char *name)
{
    struct table_file *t = r->t;
    if (t->n_columns == TABLE_MOST_COLUMNS) {
        return wrong(r, "more columns than a table may have");
    }
    if (table_file_column(t, name) >= 0) {
        return status_error(STATUS_DATA, "%s: two columns are called \"%.100s\"", t->path, name);
    }
    buf_append(&t->names, name, strlen(name) + 1);
    t->n_columns++;
    return buf_status(&t->names);
}

/* ---- CSV and TSV ---- */

static bool at_line_end(const struct reader *r)
{
    return r->at == r->end || *r->at == '\n' || *r->at == r->line_end ||
           (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n');
}

static void skip_line_end(struct reader *r)
{
    r->at += r->at + 1 < r->end && *r->at == '\r' && r->at[1] == '\n';
    r->at += r->at < r->end;
    r->line++;
}

/* The inside of a quoted field, after the opening quote. */
static struct status read_quoted(struct reader *r, struct buf *out)
{
    for (;; r->at++) {
        if (r->at == r->end) {
            return wrong(r, "the file ends inside quotes");
        }
        if (*r->at == '"' && (r->at + 1 == r->end || r->at[1] != '"')) {
            r->at++;
            break;
        }
        r->at += *r->at == '"';
        r->line += *r->at == r->line_end;
        buf_putc(out, *r->at);
    }
    return at_line_end(r) || *r->at == r->separator ? status_ok()
                                                    : wrong(r, "text after the closing quote of a field");
}

/* Appends a field and its NUL. */
static struct status read_field(struct reader *r, struct buf *out)
{
    if (r->quotes && r->at < r->end && *r->at == '"') {
        r->at++;
        TRY(read_quoted(r, out));
    } else {
        const char *start = r->at;
        while (!at_line_end(r) && *r->at != r->separator) {
            r->at++;
        }
        buf_append(out, start, (size_t)(r->at - start));
    }
    buf_putc(out, '\0');
    return status_ok();
}

static struct status read_row(struct reader *r)
{
    struct table_file *t = r->t;
    struct stored_row row = {.first = (int64_t)(t->cells.n / sizeof(struct stored_cell)), .line = r->line};
    for (bool more = true; more; row.n++) {
        struct stored_cell cell = {.start = t->text.n, .n_items = 1, .is_there = true};
        TRY(read_field(r, &t->text));
        cell.n = t->text.n - cell.start - 1;
        buf_append(&t->cells, &cell, sizeof cell);
        more = !at_line_end(r);
        r->at += more;
    }
    int64_t n_first = t->n_rows > 0 ? rows_of(t)->n : row.n;
    if (row.n != n_first) {
        return status_error(STATUS_DATA, "%s line %lld has %lld fields, but line %lld has %lld", t->path,
                            (long long)row.line, (long long)row.n, (long long)rows_of(t)->line,
                            (long long)n_first);
    }
    skip_line_end(r);
    buf_append(&t->rows, &row, sizeof row);
    t->n_rows++;
    return table_status(t);
}

static struct status read_rows(struct reader *r)
{
    while (r->at < r->end) {
        if (at_line_end(r)) {
            skip_line_end(r); /* an empty line is not a row */
        } else {
            TRY(read_row(r));
        }
    }
    return status_ok();
}

/* What a separator makes of the first rows. */
struct splitting {
    int64_t n_fields;      /* of the first row */
    bool is_same;          /* of all rows */
    bool is_before_blanks; /* all separators are, as commas in prose */
};

static struct splitting try_separator(const struct reader *from, char separator)
{
    enum { MOST_ROWS = 50 };
    struct reader r = *from;
    struct splitting s = {.is_same = true, .is_before_blanks = true};
    struct buf field = {0};
    r.separator = separator;
    for (int row = 0; row < MOST_ROWS && r.at < r.end && s.is_same; row++) {
        int64_t n_fields = 0;
        for (bool more = !at_line_end(&r); more && s.is_same; n_fields++) {
            buf_clear(&field);
            s.is_same = !failed(read_field(&r, &field));
            more = s.is_same && !at_line_end(&r);
            r.at += more;
            s.is_before_blanks = s.is_before_blanks && (!more || (r.at < r.end && *r.at == ' '));
        }
        skip_line_end(&r);
        s.n_fields = s.n_fields == 0 ? n_fields : s.n_fields;
        s.is_same = s.is_same && (n_fields == 0 || n_fields == s.n_fields);
    }
    buf_fini(&field);
    return s;
}

/* Takes Excel's line "sep=;". */
static bool take_separator(struct reader *r)
{
    bool is_there = r->end - r->at > 5 && strncasecmp(r->at, "sep=", 4) == 0;
    struct reader behind = *r;
    behind.at += 5;
    if (!is_there || !at_line_end(&behind)) {
        return false;
    }
    r->separator = r->at[4];
    r->at += 5;
    skip_line_end(r);
    return true;
}

static void choose_separator(struct reader *r)
{
    static const char separators[] = ",;\t|";
    int best = 0;
    if (take_separator(r)) {
        return;
    }
    for (const char *at = separators; *at != '\0'; at++) {
        struct splitting s = try_separator(r, *at);
        int rank = s.n_fields < 2 ? 0 : !s.is_same ? 1 : s.is_before_blanks ? 2 : 3;
        r->separator = rank > best ? *at : r->separator;
        best = rank > best ? rank : best;
    }
}

static struct table_cell first_cell(const struct table_file *t, int64_t column)
{
    return table_file_cell(t, 0, column);
}

static bool is_known(const char *text, const char *const *names)
{
    bool known = false;
    for (; *names != NULL && !known; names++) {
        known = is_called(text, *names);
    }
    return known;
}

static bool is_number(const char *text)
{
    char *end;
    strtod(text, &end);
    return end != text && *end == '\0';
}

/* Whether the row is the first line again, as where files of one table were joined. */
static bool repeats_first(const struct table_file *t, int64_t row)
{
    bool same = true;
    for (int64_t i = 0; i < rows_of(t)->n && same; i++) {
        same = strcmp(table_file_cell(t, row, i).text, first_cell(t, i).text) == 0;
    }
    return same;
}

/* Whether the first cell of a column can be no name: it occurs again, or is a number like all others. */
static bool is_data(const struct table_file *t, int64_t column)
{
    struct table_cell first = first_cell(t, column);
    bool numbers = is_number(first.text) && t->n_rows > 1, again = false;
    for (int64_t row = 1; row < t->n_rows && (numbers || !again); row++) {
        struct table_cell cell = table_file_cell(t, row, column);
        numbers = numbers && is_number(cell.text);
        again = again || (first.n > 0 && strcmp(first.text, cell.text) == 0 && !repeats_first(t, row));
    }
    return numbers || again;
}

static bool has_names(const struct table_file *t, const struct table_options *o)
{
    bool known = o->names == NULL, data = false;
    for (int64_t i = 0; i < rows_of(t)->n && !known; i++) {
        known = is_known(first_cell(t, i).text, o->names);
        data = data || is_data(t, i);
    }
    return !o->no_header && (known || !data);
}

/* Makes the first row the names, or numbers the columns; so are columns whose name is empty. */
static struct status name_columns(const struct reader *r, const struct table_options *o)
{
    struct table_file *t = r->t;
    int64_t n = rows_of(t)->n;
    t->has_names = has_names(t, o);
    for (int64_t i = 0; i < n; i++) {
        char number[24];
        struct table_cell cell = table_file_cell(t, 0, i);
        snprintf(number, sizeof number, "%lld", (long long)i + 1);
        TRY(add_column(r, t->has_names && cell.n > 0 ? cell.text : number));
    }
    if (t->has_names) {
        t->rows.n -= sizeof(struct stored_row);
        t->n_rows--;
        memmove(t->rows.data, t->rows.data + sizeof(struct stored_row), t->rows.n);
    }
    return status_ok();
}

static struct status read_separated(struct reader *r, const struct table_options *o)
{
    if (r->quotes) {
        choose_separator(r);
    }
    TRY(read_rows(r));
    return r->t->n_rows > 0 ? name_columns(r, o)
                            : status_error(STATUS_DATA, "%s has nothing but empty lines", r->t->path);
}

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

static struct status put_object(struct reader *r, json_t *object)
{
    struct table_file *t = r->t;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (table_file_column(t, key) < 0) {
            TRY(add_column(r, key));
        }
    }
    struct stored_row row = {
        .first = (int64_t)(t->cells.n / sizeof(struct stored_cell)), .n = t->n_columns, .line = r->line};
    const char *name = t->names.data;
    for (int64_t i = 0; i < t->n_columns; i++, name += strlen(name) + 1) {
        struct stored_cell cell = {0};
        value = json_object_get(object, name);
        if (value != NULL) {
            TRY(put_value(t, &cell, value));
        }
        buf_append(&t->cells, &cell, sizeof cell);
    }
    buf_append(&t->rows, &row, sizeof row);
    t->n_rows++;
    return table_status(t);
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
    struct reader r = {.t = t};
    char place[FILE_PATH_BYTES];
    const char *line;
    for (size_t n; text_file_next(f, &line, &n);) {
        r.line = f->line - 1;
        if (!is_blank(line, n)) {
            json_t *object;
            snprintf(place, sizeof place, "%.900s line %lld", t->path, (long long)r.line);
            TRY(json_parse_text(&object, line, n, place));
            struct status s = json_is_object(object)
                                  ? put_object(&r, object)
                                  : wrong(&r, "each line must be a JSON object, {\"column\": value, ...}");
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

/* The character that ends the first line outside quotes. */
static char find_line_end(const struct text_file *f, bool quotes)
{
    bool inside = false;
    for (size_t i = 0; i < f->n; i++) {
        inside ^= quotes && f->text[i] == '"';
        if (!inside && (f->text[i] == '\n' || f->text[i] == '\r')) {
            return i + 1 < f->n && f->text[i + 1] == '\n' ? '\n' : f->text[i];
        }
    }
    return '\n';
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
    struct reader r = {.t = t, .at = f->text, .end = f->text + f->n, .line = 1};
    r.quotes = ends_with(t->path, ".csv");
    r.separator = r.quotes ? ',' : '\t';
    r.line_end = find_line_end(f, r.quotes);
    return read_separated(&r, o);
}

struct status table_file_open(struct table_file *t, const char *path, const struct table_options *o)
{
    struct text_file f;
    *t = (struct table_file){.path = path, .has_names = true};
    if (!ends_with(path, ".csv") && !ends_with(path, ".tsv") && !ends_with(path, ".json") &&
        !ends_with(path, ".jsonl") && !ends_with(path, ".ndjson")) {
        return status_error(STATUS_USAGE,
                            "%s: the name of a table ends in .csv, .tsv or, for JSON lines, .json or .jsonl",
                            path);
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
    const struct stored_row *r = &rows_of(t)[row];
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
    return rows_of(t)[row].line;
}
