#include "data/class_examples.h"

#include "data/label_match.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ---- */

/* The first row whose columns all exist is used.  Source: task_to_keys of run_glue.py. */
static const char *const usual_texts[][2] = {
    {"sentence1", "sentence2"}, {"premise", "hypothesis"}, {"question1", "question2"},
    {"question", "sentence"},   {"sentence", NULL},        {"text", NULL},
};

static struct status no_column(const struct table_file *t, const char *name, const char *flag)
{
    struct buf has = {0};
    const char *at = t->names.data;
    for (int64_t i = 0; i < t->n_columns; i++, at += strlen(at) + 1) {
        buf_printf(&has, "%s%.40s", i == 0 ? "" : ", ", at);
    }
    struct status s = status_error(STATUS_DATA, "%s has no column %s; it has %.200s: name one by %s", t->path,
                                   name, buf_text(&has), flag);
    buf_fini(&has);
    return s;
}

static struct status find_named(const struct table_file *t, int64_t *column, const char *name,
                                const char *flag)
{
    *column = name == NULL ? -1 : table_file_column(t, name);
    return name != NULL && *column < 0 ? no_column(t, name, flag) : status_ok();
}

static int64_t find_first(const struct table_file *t, const char *const *names)
{
    int64_t column = -1;
    for (; *names != NULL && column < 0; names++) {
        column = table_file_column(t, *names);
    }
    return column;
}

static struct status find_texts(struct class_examples *e, const struct class_columns *c)
{
    const struct table_file *t = &e->table;
    if (c->text != NULL || c->pair != NULL) {
        TRY(find_named(t, &e->text, c->text == NULL ? "text" : c->text, "--text_column_name"));
        return find_named(t, &e->pair, c->pair, "--text_pair_column_name");
    }
    for (size_t i = 0; i < sizeof usual_texts / sizeof usual_texts[0]; i++) {
        e->text = table_file_column(t, usual_texts[i][0]);
        e->pair = usual_texts[i][1] == NULL ? -1 : table_file_column(t, usual_texts[i][1]);
        if (e->text >= 0 && (usual_texts[i][1] == NULL || e->pair >= 0)) {
            return status_ok();
        }
    }
    return no_column(t, "for texts with a usual name (sentence, text, sentence1 and sentence2)",
                     "--text_column_name and --text_pair_column_name");
}

struct status class_examples_open(struct class_examples *e, const char *path, const struct class_columns *c)
{
    *e = (struct class_examples){.separator = c->separator};
    TRY(table_file_open(&e->table, path, &(struct table_options){.encoding = c->encoding}));
    struct status s = find_texts(e, c);
    e->label = find_first(&e->table, (const char *const[]){"label", "labels", NULL});
    e->id = find_first(&e->table, (const char *const[]){"id", "idx", "index", NULL});
    if (!failed(s) && c->label != NULL) {
        s = find_named(&e->table, &e->label, c->label, "--label_column_name");
    }
    if (failed(s)) {
        class_examples_fini(e);
    }
    return s;
}

void class_examples_fini(struct class_examples *e)
{
    labelled_texts_fini(&e->texts);
    table_file_close(&e->table);
    *e = (struct class_examples){0};
}

/* ---- labels ---- */

/* A walk over the labels of a row. */
struct label_reader {
    struct table_cell cell;
    const char *at;
    int64_t left; /* in a list */
    char separator;
};

static struct label_reader labels_of(const struct class_examples *e, int64_t row, enum bert_problem problem)
{
    struct table_cell cell = table_file_cell(&e->table, row, e->label);
    bool many = problem == BERT_MULTI_LABEL && !cell.is_list;
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

static bool is_number(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && end[strspn(end, " \t")] == '\0' && isfinite(*value);
}

enum bert_problem class_examples_problem(const struct class_examples *e)
{
    bool numbers = e->table.n_rows > 0, points = false;
    for (int64_t i = 0; i < e->table.n_rows; i++) {
        struct table_cell cell = table_file_cell(&e->table, i, e->label);
        double value;
        if (cell.is_list) {
            return BERT_MULTI_LABEL;
        }
        numbers = numbers && is_number(cell.text, &value);
        points = points || strpbrk(cell.text, ".eE") != NULL;
    }
    return numbers && points ? BERT_REGRESSION : BERT_SINGLE_LABEL;
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
static struct status add_names(const struct class_examples *e, int64_t row, enum bert_problem problem,
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
        TRY(label_names_add(names, name, n));
    }
    return status_ok();
}

struct status class_examples_names(const struct class_examples *e, enum bert_problem problem,
                                   struct label_names *names)
{
    if (e->label < 0) {
        return no_column(&e->table, "for labels with a usual name (label, labels)", "--label_column_name");
    }
    if (problem == BERT_REGRESSION) {
        return label_names_parse(names, NULL, 1, "");
    }
    for (int64_t i = 0; i < e->table.n_rows; i++) {
        TRY(add_names(e, i, problem, names));
        if (names->n > 1 << 20) { /* most of them are repeated */
            TRY(label_names_sort(names));
        }
    }
    return label_names_sort(names);
}

/* Labels as the batch holds them, of a row without labels. */
static void put_none(int32_t *labels, int64_t width, enum bert_problem problem)
{
    for (int64_t i = 0; i < width; i++) {
        labels[i] = problem == BERT_SINGLE_LABEL ? -1 : BATCH_NO_NUMBER;
    }
}

/* Replaces them by the row's. */
static struct status encode_labels(const struct class_examples *e, int64_t row, const struct bert_config *c,
                                   const struct label_match *match, int32_t *labels)
{
    struct label_reader r = labels_of(e, row, c->problem);
    int64_t at = 0, width = e->texts.width;
    const char *name;
    size_t n;
    TRY(check_label(e, row, &r.cell));
    for (int64_t i = 0; i < width && c->problem == BERT_MULTI_LABEL; i++) {
        labels[i] = 0; /* the bits of 0 */
    }
    while (next_label(&r, &name, &n)) {
        int64_t label = c->problem == BERT_REGRESSION ? at++ : label_match_find(match, name, n);
        double value = 1;
        if (n == 0) {
            return wrong_label(e, row, "there is no label", "");
        }
        if (c->problem == BERT_REGRESSION && (!is_number(name, &value) || label >= width)) {
            return wrong_label(e, row, "not the numbers of this regression: ", name);
        }
        if (label < 0 && n == 2 && memcmp(name, "-1", n) == 0 && c->problem == BERT_SINGLE_LABEL) {
            return status_ok(); /* GLUE's mark of no label */
        }
        if (label < 0) {
            return label_match_refuse(match, e->table.path, table_file_line(&e->table, row), name);
        }
        float number = (float)value;
        if (c->problem == BERT_SINGLE_LABEL) {
            labels[0] = (int32_t)label;
        } else {
            memcpy(&labels[label], &number, sizeof number);
        }
    }
    return status_ok();
}

/* ---- tokens ---- */

static struct status encode_all(struct class_examples *e, struct pair_encoder *x, int32_t *labels,
                                const struct bert_config *c, const struct label_match *match)
{
    for (int64_t i = 0; i < e->table.n_rows; i++) {
        struct table_cell a, b = {0};
        TRY(table_file_text(&e->table, i, e->text, &a));
        if (e->pair >= 0) {
            TRY(table_file_text(&e->table, i, e->pair, &b));
        }
        struct text_bytes pair = {b.text, b.n};
        put_none(labels, e->texts.width, c->problem);
        if (match != NULL) {
            TRY(encode_labels(e, i, c, match, labels));
        }
        TRY(pair_encoder_add(x, &e->texts, (struct text_bytes){a.text, a.n}, e->pair >= 0 ? &pair : NULL,
                             labels));
    }
    e->n_cut = x->n_cut;
    return status_ok();
}

static struct status encode(struct class_examples *e, const struct tokenizer *tokenizer,
                            int64_t max_seq_length, const struct bert_config *c,
                            const struct label_match *match)
{
    struct tokenizer_scratch scratch;
    struct pair_encoder x;
    e->texts.width = c->problem == BERT_SINGLE_LABEL ? 1 : c->num_labels;
    TRY(tokenizer_scratch_init(&scratch, tokenizer));
    struct status s = pair_encoder_init(&x, &scratch, max_seq_length);
    int32_t *labels = malloc((size_t)e->texts.width * sizeof *labels);
    if (!failed(s)) {
        s = labels == NULL ? status_error(STATUS_MEMORY, "out of memory for labels")
                           : encode_all(e, &x, labels, c, match);
    }
    pair_encoder_fini(&x);
    tokenizer_scratch_fini(&scratch);
    free(labels);
    return s;
}

struct status class_examples_encode(struct class_examples *e, const struct tokenizer *tokenizer,
                                    int64_t max_seq_length, const struct bert_config *c, bool with_labels)
{
    struct label_names names = {0};
    struct label_match match = {0};
    if (!with_labels) {
        return encode(e, tokenizer, max_seq_length, c, NULL);
    }
    struct status s = class_examples_names(e, c->problem, &names);
    if (!failed(s)) {
        label_match_init(&match, c->labels, &names, e->table.path);
        s = encode(e, tokenizer, max_seq_length, c, &match);
    }
    label_match_fini(&match);
    label_names_fini(&names);
    return s;
}
