/* fuzz_table: any bytes as a table of texts and labels (CSV, TSV, JSON lines) or as sentences of words (CoNLL columns, JSON
 * lines).  Every cell of a table that is read lies in it, a table written as CSV is read as the same, and what is classified or
 * labelled has a label that the model knows.  Input: one byte for the format and the problem, the rest is the file. */
#include "core/log.h"
#include "corpus/not_text.h"
#include "data/class_examples.h"
#include "data/table_open.h"
#include "data/tag_examples.h"
#include "io/file.h"
#include "text/wordpiece.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { N_FORMATS = 4, COLUMNS = 3, MAX_SEQ_LENGTH = 12 }; /* formats before COLUMNS are tables */

static const char pieces[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##a\n##b\n##c\n1\n,\n.\n\"\n";
static const char *const endings[N_FORMATS] = {".csv", ".tsv", ".jsonl", ".conll"};
static char directory[] = "/dev/shm/kiln-fuzz-XXXXXX"; /* in memory: 50 times faster */
static char paths[N_FORMATS][64];

static void remove_files(void)
{
    for (int i = 0; i < N_FORMATS; i++) {
        unlink(paths[i]);
    }
    rmdir(directory);
}

static void begin(struct tokenizer *t)
{
    log_set_level(LOG_QUIET);
    CHECK(mkdtemp(directory) != NULL, "mkdtemp");
    for (int i = 0; i < N_FORMATS; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/table%s", directory, endings[i]);
    }
    atexit(remove_files);
    CHECK(!failed(wordpiece_tokenizer_init(t, pieces, sizeof pieces - 1, "vocab", true)), "vocab");
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "write");
}

static void check_cell(const struct table_file *t, struct table_cell c)
{
    const char *at = c.text;
    CHECK(c.is_there || c.n_items == 0, "items of nothing");
    for (int64_t i = 0; i < c.n_items; i++) {
        CHECK(at >= t->text.data && at < t->text.data + t->text.n, "a cell outside of the table");
        CHECK(i > 0 || strlen(at) == c.n, "length");
        at += strlen(at) + 1;
    }
    CHECK(c.n_items == 0 || at <= t->text.data + t->text.n, "the end of a cell");
}

static void check_table(const struct table_file *t)
{
    const char *name = t->names.data;
    for (int64_t c = 0; c < t->n_columns; c++, name += strlen(name) + 1) {
        CHECK(table_file_column(t, name) == c, "a column by its name");
    }
    for (int64_t r = 0; r < t->n_rows; r++) {
        CHECK(r == 0 || table_file_line(t, r) > table_file_line(t, r - 1), "lines");
        for (int64_t c = -1; c <= t->n_columns; c++) {
            struct table_cell cell = table_file_cell(t, r, c);
            CHECK((c >= 0 && c < t->n_columns) || !cell.is_there, "a cell of no column");
            check_cell(t, cell);
        }
    }
}

static void put_quoted(struct buf *out, const char *text, char end)
{
    buf_putc(out, '"');
    for (; *text != '\0'; text++) {
        buf_puts(out, *text == '"' ? "\"" : "");
        buf_putc(out, *text);
    }
    buf_putc(out, '"');
    buf_putc(out, end);
}

/* The table as CSV, each cell in quotation marks. */
static void write_again(const struct table_file *t, struct buf *text)
{
    const char *name = t->names.data;
    for (int64_t c = 0; c < t->n_columns; c++, name += strlen(name) + 1) {
        put_quoted(text, name, c + 1 < t->n_columns ? ',' : '\n');
    }
    for (int64_t r = 0; r < t->n_rows; r++) {
        for (int64_t c = 0; c < t->n_columns; c++) {
            put_quoted(text, table_file_cell(t, r, c).text, c + 1 < t->n_columns ? ',' : '\n');
        }
    }
}

static void check_same(const struct table_file *again, const struct table_file *t)
{
    CHECK(again->n_columns == t->n_columns && again->n_rows == t->n_rows, "other sizes");
    CHECK(again->names.n == t->names.n && memcmp(again->names.data, t->names.data, t->names.n) == 0, "names");
    for (int64_t r = 0; r < t->n_rows; r++) {
        for (int64_t c = 0; c < t->n_columns; c++) {
            CHECK(strcmp(table_file_cell(again, r, c).text, table_file_cell(t, r, c).text) == 0, "a cell");
        }
    }
}

/* A table of CSV or TSV, written as CSV, is read as the same, unless its bytes are those that mark another format. */
static void check_again(const struct table_file *t)
{
    struct table_file again;
    struct buf text = {0};
    write_again(t, &text);
    if (not_text_find(text.data, text.n) == NULL) {
        write_file(paths[0], text.data, text.n);
        struct status s = table_open(&again, paths[0], &(struct table_options){0});
        CHECK(!failed(s), "written again: %s", s.message);
        check_same(&again, t);
        table_file_close(&again);
    }
    buf_fini(&text);
}

static void check_texts(const struct encoded_texts *t, const struct model_labels *c)
{
    const int32_t *labels = (const int32_t *)(const void *)t->labels.data;
    for (int64_t i = 0; i < t->n; i++) {
        int64_t n = encoded_texts_length(t, i), n_first = encoded_texts_first_length(t, i);
        CHECK(n >= 2 && n <= MAX_SEQ_LENGTH && n_first >= 1 && n_first <= n, "length");
    }
    for (size_t k = 0; k < t->labels.n / sizeof *labels && c->problem == PROBLEM_SINGLE_LABEL; k++) {
        CHECK(labels[k] >= -1 && labels[k] < c->n, "label");
    }
}

static void classify(const char *path, struct tokenizer_scratch *scratch, enum label_problem problem)
{
    struct class_examples e;
    struct label_names names = {0}, again = {0};
    if (failed(class_examples_open(&e, path, &(struct class_columns){.separator = ','}))) {
        return;
    }
    problem = problem > PROBLEM_REGRESSION ? class_examples_problem(&e) : problem;
    if (!failed(class_examples_names(&e, problem, &names)) && names.n > 0) {
        struct model_labels c = {.n = names.n, .problem = problem, .names = &names};
        struct label_kind kind = {.model = &c, .path = path};
        CHECK(!failed(class_examples_names(&e, problem, &again)), "names");
        label_kind_read(&kind, &again);
        struct status s = class_examples_encode(&e, scratch, MAX_SEQ_LENGTH, &kind);
        bool no_text = failed(s) && strstr(s.message, "must be a text") != NULL;
        CHECK(!failed(s) || problem == PROBLEM_REGRESSION || no_text, "labels that were found: %s",
              s.message);
        CHECK(failed(s) || e.texts.n == e.table.n_rows, "texts");
        check_texts(&e.texts, &c);
        label_kind_fini(&kind);
    }
    label_names_fini(&names);
    class_examples_fini(&e);
}

static void tag(const char *path, struct tokenizer_scratch *scratch)
{
    struct tag_examples e;
    struct label_names names = {0}, again = {0};
    if (failed(tag_examples_read(&e, path, &(struct conll_columns){0}))) {
        return;
    }
    enum label_problem problem = tag_examples_problem(&e);
    bool labelled = !failed(tag_examples_names(&e, problem, &names));
    struct model_labels c = {.n = names.n, .problem = problem, .names = &names};
    struct label_kind kind = {.model = &c, .path = path};
    if (labelled) {
        CHECK(!failed(tag_examples_names(&e, problem, &again)), "names");
        label_kind_read(&kind, &again);
    }
    struct status s = tag_examples_encode(&e, scratch, MAX_SEQ_LENGTH, &kind);
    CHECK(!failed(s), "words that were read: %s", s.message);
    check_texts(&e.texts, &c);
    for (int64_t i = 0; i < e.n_words; i++) {
        const struct tag_word *w = tag_examples_word(&e, i);
        const struct encoded_text *x = encoded_texts_get(&e.texts, w->example);
        CHECK(w->token >= x->a.first && w->token < x->a.first + x->a.n, "place of a word");
        CHECK(!labelled || problem != PROBLEM_SINGLE_LABEL || *tag_examples_labels(&e, w) >= 0,
              "a word without its label");
    }
    label_kind_fini(&kind);
    label_names_fini(&names);
    tag_examples_fini(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct tokenizer t;
    static struct tokenizer_scratch scratch;
    if (t.n == 0) {
        begin(&t);
        CHECK(!failed(tokenizer_scratch_init(&scratch, &t)), "a scratch");
    }
    if (n == 0) {
        return 0;
    }
    int format = data[0] % N_FORMATS;
    const char *path = paths[format];
    struct table_file table;
    write_file(path, data + 1, n - 1);
    if (format < COLUMNS) {
        classify(path, &scratch, (enum label_problem)(data[0] / N_FORMATS % 4));
    }
    tag(path, &scratch);
    if (format < COLUMNS && !failed(table_open(&table, path, &(struct table_options){0}))) {
        check_table(&table);
        if (format < 2) {
            check_again(&table);
        }
        table_file_close(&table);
    }
    return 0;
}
