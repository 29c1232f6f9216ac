#include "data/class_examples.h"

#include "data/table_open.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* ---- columns ---- */

/* The first row whose columns all exist is used.  Source of those for pairs: task_to_keys of run_glue.py. */
static const char *const usual_texts[][2] = {
    {"sentence1", "sentence2"},
    {"premise", "hypothesis"},
    {"question1", "question2"},
    {"question", "sentence"},
    {"text1", "text2"},
    {"text_a", "text_b"},
    {"sentence", NULL},
    {"text", NULL},
    {"content", NULL},
    {"review", NULL},
    {"comment", NULL},
    {"tweet", NULL},
    {"message", NULL},
    {"document", NULL},
    {"title", NULL},
};
static const char *const usual_labels[] = {"label",  "labels",    "class", "category",
                                           "target", "sentiment", NULL};

enum {
    N_TEXTS = sizeof usual_texts / sizeof usual_texts[0],
    N_LABELS = sizeof usual_labels / sizeof usual_labels[0]
};

static struct status no_column(const struct table_file *t, const char *name, const char *flag)
{
    struct buf has = {0};
    for (int64_t i = 0; i < t->n_columns; i++) {
        buf_printf(&has, "%s%.40s", i == 0 ? "" : ", ", table_file_name(t, i));
    }
    const char *more = t->has_names
                           ? " (if the first line of the table has no names of columns, add --no_header)"
                           : ", by its number, since --no_header is given";
    struct status s = status_error(STATUS_DATA, "%s has no column %s; it has %.200s: name one by %s%s",
                                   t->path, name, buf_text(&has), flag, more);
    buf_fini(&has);
    return s;
}

/* A column by its name or, where none is called so, by its number; -1. */
static int64_t find_given(const struct table_file *t, const char *name)
{
    char *end;
    int64_t column = table_file_find(t, name);
    long number = strtol(name, &end, 10);
    bool is_number = column < 0 && end != name && *end == '\0' && number >= 1 && number <= t->n_columns;
    return is_number ? number - 1 : column;
}

static struct status find_named(const struct table_file *t, int64_t *column, const char *name,
                                const char *flag)
{
    *column = name == NULL ? -1 : find_given(t, name);
    return name != NULL && *column < 0 ? no_column(t, name, flag) : status_ok();
}

static int64_t find_first(const struct table_file *t, const char *const *names)
{
    int64_t column = -1;
    for (; *names != NULL && column < 0; names++) {
        column = table_file_find(t, *names);
    }
    return column;
}

static struct status count_different(const struct table_file *t, int64_t column, int64_t *n)
{
    struct label_names cells = {0};
    struct status s = status_ok();
    for (int64_t row = 0; row < t->n_rows && !failed(s); row++) {
        struct table_cell cell = table_file_cell(t, row, column);
        s = label_names_add(&cells, cell.text, cell.n);
    }
    s = failed(s) ? s : label_names_sort(&cells);
    *n = cells.n;
    label_names_fini(&cells);
    return s;
}

/* Finds the labels among two columns without names: the cells that repeat more.  *column is -1 for other
 * tables. */
static struct status find_unnamed_labels(const struct table_file *t, int64_t *column)
{
    int64_t first, second;
    *column = -1;
    if (t->has_names || t->n_columns != 2) {
        return status_ok();
    }
    TRY(count_different(t, 0, &first));
    TRY(count_different(t, 1, &second));
    *column = first < second ? 0 : 1;
    return status_ok();
}

/* The usual texts, by name. */
static bool find_usual_texts(struct class_examples *e)
{
    const struct table_file *t = &e->table;
    for (size_t i = 0; i < N_TEXTS; i++) {
        e->text = table_file_find(t, usual_texts[i][0]);
        e->pair = usual_texts[i][1] == NULL ? -1 : table_file_find(t, usual_texts[i][1]);
        if (e->text >= 0 && (usual_texts[i][1] == NULL || e->pair >= 0)) {
            return true;
        }
    }
    return false;
}

static struct status find_texts(struct class_examples *e, const struct class_columns *c,
                                int64_t unnamed_label)
{
    const struct table_file *t = &e->table;
    if (c->text != NULL || c->pair != NULL) {
        TRY(find_named(t, &e->text, c->text == NULL ? "text" : c->text, "--text_column_name"));
        return find_named(t, &e->pair, c->pair, "--text_pair_column_name");
    }
    if (find_usual_texts(e)) {
        return status_ok();
    }
    e->text = unnamed_label >= 0 ? 1 - unnamed_label : !t->has_names && t->n_columns == 1 ? 0 : -1;
    return e->text >= 0
               ? status_ok()
               : no_column(t, "for texts with a usual name (sentence, text, sentence1 and sentence2)",
                           "--text_column_name and --text_pair_column_name");
}

/* Finds the columns.  A missing column of labels is no error here, but where labels are read. */
static struct status find_columns(struct class_examples *e, const struct class_columns *c)
{
    const struct table_file *t = &e->table;
    int64_t unnamed;
    TRY(find_unnamed_labels(t, &unnamed));
    e->label_name = c->label;
    e->label = c->label != NULL ? find_given(t, c->label) : find_first(t, usual_labels);
    unnamed = c->label != NULL && e->label >= 0 && unnamed >= 0 ? e->label : unnamed;
    TRY(find_texts(e, c, unnamed));
    if (e->label < 0 && c->label == NULL && unnamed >= 0) {
        e->label = 1 - e->text;
    }
    e->id = find_first(t, (const char *const[]){"id", "idx", "index", NULL});
    return status_ok();
}

struct status class_examples_open(struct class_examples *e, const char *path, const struct class_columns *c)
{
    const char *names[2 * N_TEXTS + N_LABELS + 3] = {0};
    const char *const given[] = {c->text, c->pair, c->label};
    size_t n = 0;
    for (size_t i = 0; i < 2 * N_TEXTS; i++) {
        names[n] = usual_texts[i / 2][i % 2];
        n += names[n] != NULL;
    }
    for (size_t i = 0; i + 1 < N_LABELS; i++) {
        names[n++] = usual_labels[i];
    }
    for (size_t i = 0; i < 3; i++) { /* a number names no column */
        names[n] = given[i] != NULL && strspn(given[i], "0123456789") < strlen(given[i]) ? given[i] : NULL;
        n += names[n] != NULL;
    }
    *e = (struct class_examples){.separator = c->separator};
    TRY(table_open(&e->table, path, &(struct table_options){c->encoding, names, c->no_header}));
    struct status s =
        e->table.n_rows > 0 ? find_columns(e, c) : status_error(STATUS_DATA, "%s has no texts", path);
    if (failed(s)) {
        class_examples_fini(e);
    }
    return s;
}

static void describe(struct buf *out, const struct class_examples *e, const char *what, int64_t column)
{
    if (column >= 0) {
        buf_printf(out, "%s in %s%.40s", what, e->table.has_names ? "" : "column ",
                   table_file_name(&e->table, column));
    }
}

void class_examples_describe(struct buf *out, const struct class_examples *e)
{
    describe(out, e, "text", e->text);
    describe(out, e, ", second text", e->pair);
    describe(out, e, ", label", e->label);
    if (e->table.n_rows > 0) {
        struct table_cell text = table_file_cell(&e->table, 0, e->text),
                          label = table_file_cell(&e->table, 0, e->label);
        buf_puts(out, "; the first is \"");
        utf8_append_excerpt(out, text.text, text.n, 60);
        buf_puts(out, label.is_there ? "\", label " : "\"");
        utf8_append_excerpt(out, label.text, label.n, 40);
    }
}

void class_examples_fini(struct class_examples *e)
{
    encoded_texts_fini(&e->texts);
    buf_fini(&e->scores);
    table_file_close(&e->table);
    *e = (struct class_examples){0};
}

/* ---- labels ---- */

/* A walk over the labels of a row. */
struct label_reader {
    struct table_cell cell;
    const char *at;
    int64_t left; /* labels left in a list */
    char separator;
};

static struct label_reader labels_of(const struct class_examples *e, int64_t row, enum label_problem problem)
{
    struct table_cell cell = table_file_cell(&e->table, row, e->label);
    bool many = problem == PROBLEM_MULTI_LABEL && !cell.is_list;
    return (struct label_reader){cell, cell.n_items > 0 && (!many || cell.n > 0) ? cell.text : NULL,
                                 cell.n_items, many ? e->separator : '\0'};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The next label, without the blanks around it. */
static bool next_label(struct label_reader *r, const char **name, size_t *n)
{
    if (r->at == NULL) {
        return false;
    }
    *name = r->at;
    *n = r->separator == '\0' ? strlen(r->at) : strcspn(r->at, (const char[]){r->separator, '\0'});
    bool more = r->separator == '\0' ? --r->left > 0 : r->at[*n] != '\0';
    r->at = more ? r->at + *n + 1 : NULL;
    for (; *n > 0 && is_blank(**name); ++*name, --*n) {
    }
    for (; *n > 0 && is_blank((*name)[*n - 1]); --*n) {
    }
    return true;
}

enum label_problem class_examples_problem(const struct class_examples *e)
{
    struct label_guess guess = {0};
    for (int64_t i = 0; i < e->table.n_rows; i++) {
        struct table_cell cell = table_file_cell(&e->table, i, e->label);
        if (cell.is_list) {
            return PROBLEM_MULTI_LABEL;
        }
        label_guess_add(&guess, cell.text);
    }
    return label_guess_problem(&guess);
}

static struct status wrong_label(const struct class_examples *e, int64_t row, const char *what,
                                 const char *label)
{
    return status_error(STATUS_DATA, "%s line %lld: %s%.80s", e->table.path,
                        (long long)table_file_line(&e->table, row), what, label);
}

/* A label is there, and is a text, a number or a list of these. */
static struct status check_label(const struct class_examples *e, int64_t row, const struct table_cell *cell)
{
    if (!cell->is_there) {
        return wrong_label(e, row, "there is no label", "");
    }
    return cell->has_null || cell->has_nested
               ? wrong_label(e, row,
                             "a label must be a text or a number, not null, an object or a list in a list",
                             "")
               : status_ok();
}

/* Appends the labels of a row; several may be none. */
static struct status add_names(const struct class_examples *e, int64_t row, enum label_problem problem,
                               struct label_names *names)
{
    struct label_reader r = labels_of(e, row, problem);
    const char *name;
    size_t n;
    TRY(check_label(e, row, &r.cell));
    while (next_label(&r, &name, &n)) {
        if (n == 0) {
            return wrong_label(e, row, "there is no label", "");
        }
        TRY(label_names_gather(names, name, n));
    }
    return status_ok();
}

struct status class_examples_names(const struct class_examples *e, enum label_problem problem,
                                   struct label_names *names)
{
    if (e->label < 0) {
        return no_column(
            &e->table, e->label_name != NULL ? e->label_name : "for labels with a usual name (label, labels)",
            "--label_column_name");
    }
    if (problem == PROBLEM_REGRESSION) {
        return label_names_parse(names, NULL, 1, "");
    }
    for (int64_t i = 0; i < e->table.n_rows; i++) {
        TRY(add_names(e, i, problem, names));
    }
    return label_names_sort(names);
}

/* Puts the labels of a row, which has none where it says GLUE's -1. */
static struct status encode_labels(const struct class_examples *e, int64_t row, const struct label_kind *k,
                                   int32_t *labels)
{
    struct label_reader r = labels_of(e, row, k->model->problem);
    int64_t line = table_file_line(&e->table, row);
    bool is_one = k->model->problem == PROBLEM_SINGLE_LABEL;
    const char *name;
    size_t n;
    TRY(check_label(e, row, &r.cell));
    for (int64_t at = 0; next_label(&r, &name, &n); at++) {
        if (n == 0) {
            return wrong_label(e, row, "there is no label", "");
        }
        bool is_none = is_one && n == 2 && memcmp(name, "-1", n) == 0 && label_kind_find(k, name, n) < 0;
        TRY(is_none ? status_ok() : label_kind_put(k, labels, at, name, n, line));
    }
    return status_ok();
}

/* ---- tokens ---- */

static struct status encode_row(struct class_examples *e, int64_t row, struct tokenizer_scratch *scratch,
                                const struct label_kind *k, int32_t *labels)
{
    struct table_cell a, b = {0};
    TRY(table_file_text(&e->table, row, e->text, &a));
    if (e->pair >= 0) {
        TRY(table_file_text(&e->table, row, e->pair, &b));
    }
    struct text_bytes pair = {b.text, b.n};
    label_kind_clear(k, labels);
    if (k->is_labelled) {
        TRY(encode_labels(e, row, k, labels));
        buf_append(&e->texts.labels, labels, (size_t)e->texts.width * sizeof *labels);
        TRY(buf_status(&e->texts.labels));
    }
    return encoded_texts_add(&e->texts, scratch, (struct text_bytes){a.text, a.n},
                             e->pair >= 0 ? &pair : NULL);
}

struct status class_examples_encode(struct class_examples *e, struct tokenizer_scratch *scratch,
                                    int64_t max_seq_length, const struct label_kind *kind)
{
    TRY(encoded_texts_init(&e->texts, scratch->tokenizer, max_seq_length, "a text to classify"));
    e->texts.width = label_kind_width(kind->model);
    int32_t *labels = malloc((size_t)e->texts.width * sizeof *labels);
    struct status s = labels != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for labels");
    for (int64_t row = 0; row < e->table.n_rows && !failed(s); row++) {
        s = encode_row(e, row, scratch, kind, labels);
    }
    free(labels);
    return s;
}

static struct status encode_pair(struct class_examples *e, int64_t row, struct tokenizer_scratch *scratch)
{
    const int64_t columns[] = {e->text, e->pair};
    for (int side = 0; side < 2; side++) {
        struct table_cell cell;
        TRY(table_file_text(&e->table, row, columns[side], &cell));
        TRY(encoded_texts_add(&e->texts, scratch, (struct text_bytes){cell.text, cell.n}, NULL));
    }
    if (e->label < 0) {
        return status_ok();
    }
    struct table_cell label = table_file_cell(&e->table, row, e->label);
    double value;
    if (!label.is_there || label.is_list || !label_kind_is_number(label.text, &value)) {
        return wrong_label(e, row, "the score of a pair must be a number, but is ", label.text);
    }
    float score = (float)value;
    buf_append(&e->scores, &score, sizeof score);
    return buf_status(&e->scores);
}

struct status class_examples_encode_pairs(struct class_examples *e, struct tokenizer_scratch *scratch,
                                          int64_t max_seq_length)
{
    if (e->pair < 0) {
        return no_column(&e->table, "for the second texts of pairs", "--text_pair_column_name");
    }
    if (e->label < 0 && e->label_name != NULL) {
        return no_column(&e->table, e->label_name, "--label_column_name");
    }
    if (e->label < 0) {
        e->label = find_first(&e->table, (const char *const[]){"score", "similarity_score", NULL});
    }
    TRY(encoded_texts_init(&e->texts, scratch->tokenizer, max_seq_length, "a text of a pair"));
    e->texts.width = 0;
    for (int64_t row = 0; row < e->table.n_rows; row++) {
        TRY(encode_pair(e, row, scratch));
    }
    return status_ok();
}
