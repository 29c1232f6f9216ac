#include "data/tag_examples.h"

#include "core/integers.h"
#include "data/table_open.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct tag_word *tag_examples_word(const struct tag_examples *e, int64_t i)
{
    return (struct tag_word *)(void *)e->words.data + i;
}

int64_t tag_examples_first(const struct tag_examples *e, int64_t i)
{
    return i < e->n ? ((const int64_t *)(const void *)e->sentences.data)[i] : e->n_words;
}

static struct status status_of(const struct tag_examples *e)
{
    TRY(buf_status(&e->text));
    TRY(buf_status(&e->words));
    return buf_status(&e->sentences);
}

static size_t put_text(struct tag_examples *e, const char *text, size_t n)
{
    size_t start = e->text.n;
    buf_append(&e->text, text, n);
    buf_putc(&e->text, '\0');
    return start;
}

struct status tag_examples_add_sentence(struct tag_examples *e)
{
    if (e->n == 0 || tag_examples_first(e, e->n - 1) < e->n_words) { /* else the last sentence is still
                                                                      * empty */
        buf_append(&e->sentences, &e->n_words, sizeof e->n_words);
        e->n += !e->sentences.failed;
    }
    return status_of(e);
}

void tag_examples_init(struct tag_examples *e, const char *name)
{
    *e = (struct tag_examples){.path = name};
}

struct status tag_examples_add_word(struct tag_examples *e, const char *word, size_t n, const char *label,
                                    size_t n_label, int64_t line)
{
    struct tag_word w = {
        .text = put_text(e, word, n), .n = n, .has_label = label != NULL && n_label > 0, .line = line};
    w.label = w.has_label ? put_text(e, label, n_label) : 0;
    buf_append(&e->words, &w, sizeof w);
    e->n_words++;
    return status_of(e);
}

static struct status wrong(const struct tag_examples *e, int64_t line, const char *what, const char *name)
{
    return status_error(STATUS_DATA, "%s line %lld: %s%.80s", e->path, (long long)line, what, name);
}

void tag_examples_fini(struct tag_examples *e)
{
    encoded_texts_fini(&e->texts);
    buf_fini(&e->columns);
    buf_fini(&e->text);
    buf_fini(&e->words);
    buf_fini(&e->sentences);
    *e = (struct tag_examples){0};
}

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
    FAIL_IF(words_at < 0 || (labels != NULL && labels_at < 0), STATUS_DATA,
            "%s has no column %s: name one with %s", e->path,
            words_at < 0 ? (words == NULL ? "tokens or words" : words) : labels,
            words_at < 0 ? "--text_column" : "--label_column");
    buf_printf(&e->columns, "words in %.60s", table_file_name(t, words_at));
    if (labels_at >= 0) {
        buf_printf(&e->columns, ", labels in %.60s", table_file_name(t, labels_at));
    }
    TRY(buf_status(&e->columns));
    for (int64_t i = 0; i < t->n_rows; i++) {
        struct table_cell w = table_file_cell(t, i, words_at), l = table_file_cell(t, i, labels_at);
        if (!w.is_list || (l.is_there && l.n_items != w.n_items)) {
            return wrong(e, table_file_line(t, i), "words and labels must be arrays of the same length", "");
        }
        if (w.has_null || w.has_nested || l.has_nested) {
            return wrong(e, table_file_line(t, i),
                         "a word or label is null, an object or an array, but must be a text", "");
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

struct status tag_examples_read(struct tag_examples *e, const char *path, const struct conll_columns *c)
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

/* ---- labels and tokens ---- */

/* Whether a word of numbers has one. */
static bool has_number(const struct tag_examples *e, const struct tag_word *w)
{
    return w->has_label && strcmp(e->text.data + w->label, "_") != 0;
}

enum label_problem tag_examples_problem(const struct tag_examples *e)
{
    struct label_guess guess = {0};
    for (int64_t i = 0; i < e->n_words; i++) {
        const struct tag_word *w = tag_examples_word(e, i);
        if (has_number(e, w)) {
            label_guess_add(&guess, e->text.data + w->label);
        }
    }
    return label_guess_problem(&guess);
}

struct status tag_examples_names(const struct tag_examples *e, enum label_problem problem,
                                 struct label_names *names)
{
    if (problem == PROBLEM_REGRESSION) {
        return label_names_parse(names, NULL, 1, "");
    }
    for (int64_t i = 0; i < e->n_words; i++) {
        const struct tag_word *w = tag_examples_word(e, i);
        if (!w->has_label) {
            return wrong(e, w->line, "there is no label after the word ", e->text.data + w->text);
        }
        const char *label = e->text.data + w->label;
        TRY(label_names_gather(names, label, strlen(label)));
    }
    return label_names_sort(names);
}

const int32_t *tag_examples_labels(const struct tag_examples *e, const struct tag_word *w)
{
    return (const int32_t *)(const void *)e->texts.labels.data + w->token * e->texts.width;
}

int64_t tag_examples_row(const struct encoded_texts *texts, const struct tag_word *w)
{
    const struct encoded_text *x = encoded_texts_get(texts, w->example);
    return x->row + texts->frame.one.before.n + w->token - x->a.first;
}

/* Appends the labels of a word's n pieces, the first of which has the word's. */
static struct status put_labels(struct tag_examples *e, const struct tag_word *w, int64_t n,
                                const struct label_kind *k, int32_t *labels)
{
    const char *name = e->text.data + w->label;
    size_t bytes = (size_t)e->texts.width * sizeof *labels;
    label_kind_clear(k, labels);
    bool is_one = k->model->problem != PROBLEM_REGRESSION || has_number(e, w);
    for (int64_t i = 0; i < n && k->is_labelled; i++) {
        if (i == 0 && is_one) {
            TRY(label_kind_put(k, labels, 0, name, strlen(name), w->line));
        }
        buf_append(&e->texts.labels, labels, bytes);
        label_kind_clear(k, labels);
    }
    return buf_status(&e->texts.labels);
}

/* Appends the pieces of a word to the text under way, or ends that text first if the word does not fit; a
 * word that is longer than a text is cut. */
static struct status encode_word(struct tag_examples *e, struct token_range *text, struct tag_word *w,
                                 struct tokenizer_scratch *scratch)
{
    struct encoded_texts *t = &e->texts;
    int64_t room = t->limit - input_form_n_special(&t->frame.one);
    struct token_range word = {(int64_t)t->ids.n, 0};
    TRY(tokenizer_encode_word(scratch, &t->ids, e->text.data + w->text, w->n));
    word.n = (int64_t)t->ids.n - word.first;
    FAIL_IF(word.n == 0 && !id_list_append(&t->ids, scratch->tokenizer->special[SPECIAL_UNKNOWN]),
            STATUS_MEMORY, "out of memory for the tokens of sentences");
    word.n = int_smaller(int_larger(word.n, 1), room);
    t->ids.n = (size_t)(word.first + word.n);
    if (text->n > 0 && text->n + word.n > room) {
        TRY(encoded_texts_add_tokens(t, *text, NULL));
        *text = (struct token_range){word.first, 0};
    }
    text->n += word.n;
    w->example = t->n;
    w->token = word.first;
    return status_ok();
}

static struct status encode_sentence(struct tag_examples *e, int64_t sentence,
                                     struct tokenizer_scratch *scratch, const struct label_kind *k,
                                     int32_t *labels)
{
    struct encoded_texts *t = &e->texts;
    struct token_range text = {(int64_t)t->ids.n, 0};
    int64_t n_before = t->n;
    for (int64_t i = tag_examples_first(e, sentence); i < tag_examples_first(e, sentence + 1); i++) {
        struct tag_word *w = tag_examples_word(e, i);
        TRY(encode_word(e, &text, w, scratch));
        TRY(put_labels(e, w, (int64_t)t->ids.n - w->token, k, labels));
    }
    t->n_cut += t->n > n_before;
    return encoded_texts_add_tokens(t, text, NULL);
}

struct status tag_examples_encode(struct tag_examples *e, struct tokenizer_scratch *scratch,
                                  int64_t max_seq_length, const struct label_kind *kind)
{
    TRY(encoded_texts_init(&e->texts, scratch->tokenizer, max_seq_length, "a sentence to label"));
    e->texts.of_tokens = true;
    e->texts.width = label_kind_width(kind->model);
    FAIL_IF(max_seq_length < input_form_n_special(&e->texts.frame.one) + 1, STATUS_USAGE,
            "%lld tokens leave no room for a word beside the special tokens", (long long)max_seq_length);
    TRY(tokenizer_require(scratch->tokenizer, 1U << SPECIAL_UNKNOWN, "a sentence to label"));
    int32_t *labels = malloc((size_t)e->texts.width * sizeof *labels);
    struct status s = labels != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for labels");
    for (int64_t i = 0; i < e->n && !failed(s); i++) {
        s = encode_sentence(e, i, scratch, kind, labels);
    }
    free(labels);
    return s;
}
