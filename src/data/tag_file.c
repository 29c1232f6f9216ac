#include "data/tag_file.h"

#include "data/table_open.h"

#include <string.h>
#include <strings.h>

/* ---- CoNLL ---- */

static struct status read_rows(struct tag_examples *e, struct conll_file *f)
{
    struct conll_row row;
    TRY(tag_examples_add_sentence(e));
    while (conll_file_next(f, &row)) {
        if (row.ends_sentence) {
            TRY(tag_examples_add_sentence(e));
        } else {
            TRY(tag_examples_add_word(e, row.word.text, row.word.n, row.label.text, row.label.n, row.line));
        }
    }
    conll_file_describe(&e->columns, f);
    TRY(buf_status(&e->columns));
    return text_file_check(&f->file);
}

static struct status read_columns(struct tag_examples *e, const struct conll_columns *c)
{
    struct conll_file f;
    TRY(conll_file_open(&f, e->path, c));
    struct status s = read_rows(e, &f);
    conll_file_close(&f);
    return s;
}

/* ---- JSON lines ---- */

static struct status wrong(const struct tag_examples *e, int64_t line, const char *what)
{
    return status_error(STATUS_DATA, "%s line %lld: %s", e->path, (long long)line, what);
}

static int64_t find_column(const struct table_file *t, const char *given, const char *const *usual)
{
    int64_t column = given == NULL ? -1 : table_file_column(t, given);
    for (; given == NULL && *usual != NULL && column < 0; usual++) {
        column = table_file_column(t, *usual);
    }
    return column;
}

static struct status read_table(struct tag_examples *e, const struct table_file *t, const char *words,
                                const char *labels)
{
    int64_t words_at = find_column(t, words, (const char *const[]){"tokens", "words", NULL});
    int64_t labels_at = find_column(t, labels, (const char *const[]){"labels", "ner_tags", "tags", NULL});
    if (words_at < 0 || (labels != NULL && labels_at < 0)) {
        return status_error(STATUS_DATA, "%s has no column %s: name one with %s", e->path,
                            words_at < 0 ? (words == NULL ? "tokens or words" : words) : labels,
                            words_at < 0 ? "--text_column" : "--label_column");
    }
    buf_printf(&e->columns, "words in %.60s", table_file_name(t, words_at));
    if (labels_at >= 0) {
        buf_printf(&e->columns, ", labels in %.60s", table_file_name(t, labels_at));
    }
    TRY(buf_status(&e->columns));
    for (int64_t i = 0; i < t->n_rows; i++) {
        struct table_cell w = table_file_cell(t, i, words_at), l = table_file_cell(t, i, labels_at);
        if (!w.is_list || (l.is_there && l.n_items != w.n_items)) {
            return wrong(e, table_file_line(t, i), "words and labels must be arrays of the same length");
        }
        if (w.has_null || w.has_nested || l.has_nested) {
            return wrong(e, table_file_line(t, i),
                         "a word or label is null, an object or an array, but must be a text");
        }
        TRY(tag_examples_add_sentence(e));
        for (int64_t k = 0; k < w.n_items; k++) {
            TRY(tag_examples_add_word(e, w.text, strlen(w.text), l.is_there ? l.text : NULL, strlen(l.text),
                                      table_file_line(t, i)));
            w.text += strlen(w.text) + 1;
            l.text += l.is_there ? strlen(l.text) + 1 : 0;
        }
    }
    return status_ok();
}

static struct status read_json_lines(struct tag_examples *e, const struct conll_columns *c)
{
    struct table_file t;
    TRY(table_open(&t, e->path, &(struct table_options){.encoding = c->encoding}));
    struct status s = read_table(e, &t, c->text, c->label);
    table_file_close(&t);
    return s;
}

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), n_end = strlen(end);
    return n >= n_end && strcasecmp(path + n - n_end, end) == 0;
}

struct status tag_file_read(struct tag_examples *e, const char *path, const struct conll_columns *c)
{
    tag_examples_init(e, path);
    bool json = ends_with(path, ".json") || ends_with(path, ".jsonl") || ends_with(path, ".ndjson");
    struct status s = json ? read_json_lines(e, c) : read_columns(e, c);
    e->n -= e->n > 0 && tag_examples_first(e, e->n - 1) == e->n_words; /* the file ended with an empty line */
    if (!failed(s) && e->n == 0) {
        s = status_error(STATUS_DATA, "%s has no words", path);
    }
    if (failed(s)) {
        tag_examples_fini(e);
    }
    return s;
}
