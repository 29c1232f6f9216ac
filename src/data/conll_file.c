#include "data/conll_file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct conll_span trim(const char *line, size_t n)
{
    while (n > 0 && is_blank(line[n - 1])) {
        n--;
    }
    return (struct conll_span){line, n};
}

static bool is_document(struct conll_span line)
{
    static const char mark[] = "-DOCSTART-";
    return line.n >= sizeof mark - 1 && memcmp(line.text, mark, sizeof mark - 1) == 0;
}

/* Fills the columns and returns how many there are; those beyond the most are only counted. */
static int split(struct conll_span columns[CONLL_MOST_COLUMNS], const char *line, size_t n, bool has_tabs)
{
    const char *at = line, *end = has_tabs ? line + n : line + trim(line, n).n;
    int n_columns = 0;
    columns[0] = (struct conll_span){line, 0};
    for (bool more = true; more;) {
        const char *stop = memchr(at, has_tabs ? '\t' : ' ', (size_t)(end - at));
        more = stop != NULL;
        stop = more ? stop : end;
        if (has_tabs || stop > at) {
            struct conll_span column = {at, (size_t)(stop - at)};
            if (n_columns < CONLL_MOST_COLUMNS) {
                columns[n_columns] = has_tabs ? trim(at, column.n) : column;
            }
            n_columns++;
        }
        at = stop + 1;
    }
    return n_columns;
}

static bool has_digits(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && text[i] >= '0' && text[i] <= '9') {
        i++;
    }
    return n > 0 && i == n;
}

/* 1-2 and 3.1 */
static bool is_range(struct conll_span id)
{
    const char *middle = memchr(id.text, '-', id.n);
    middle = middle == NULL ? memchr(id.text, '.', id.n) : middle;
    return middle != NULL && has_digits(id.text, (size_t)(middle - id.text)) &&
           has_digits(middle + 1, (size_t)(id.text + id.n - middle - 1));
}

/* ---- the first pass: what the file is ---- */

struct scan {
    struct conll_file *f;
    struct conll_span columns[CONLL_MOST_COLUMNS];
    int64_t n_rows, n_sentences;
    int64_t next; /* number that the next row of the sentence has, if rows are numbered */
    int64_t base; /* number of the first row: 0 or 1 */
    bool last_is_empty, is_prose;
    bool has_commas; /* every row is one column, with a comma or semicolon inside */
};

static struct status wrong(const struct conll_file *f, int64_t line, const char *what)
{
    return status_error(STATUS_DATA, "%s line %lld %s", f->file.path, (long long)line, what);
}

/* Names of CoNLL-U Plus: # global.columns = ID FORM UPOS */
static struct status read_names(struct conll_file *f, const char *line, size_t n)
{
    static const char mark[] = "# global.columns =";
    struct conll_span columns[CONLL_MOST_COLUMNS];
    if (n < sizeof mark - 1 || memcmp(line, mark, sizeof mark - 1) != 0 || f->names.n > 0) {
        return status_ok();
    }
    int n_columns = split(columns, line + sizeof mark - 1, n - sizeof mark + 1, false);
    for (int i = 0; i < n_columns && i < CONLL_MOST_COLUMNS; i++) {
        TRY(label_names_add(&f->names, columns[i].text, columns[i].n));
    }
    return status_ok();
}

static void follow_number(struct scan *s)
{
    struct conll_span id = s->columns[0];
    bool is_number = has_digits(id.text, id.n) && id.n < 10;
    long long number = is_number ? strtoll(id.text, NULL, 10) : -1;
    s->base = s->n_rows == 0 && number == 0 ? 0 : s->base;
    s->next = s->f->inside ? s->next : s->base;
    s->f->is_numbered = s->f->is_numbered && (number == s->next || is_range(id));
    s->next += is_number;
}

static bool has_small_letter(struct conll_span word)
{
    bool found = false;
    for (size_t i = 0; i < word.n; i++) {
        found = found || (word.text[i] >= 'a' && word.text[i] <= 'z') || (unsigned char)word.text[i] >= 0x80;
    }
    return found;
}

/* Letters that end like a sentence, which no label does. */
static bool ends_like_sentence(struct conll_span word)
{
    return has_small_letter(word) && strchr(".!?", word.text[word.n - 1]) != NULL;
}

/* Whether a row that is a complete sentence may be a line of prose: no label like O, B-PER or NN at its end,
 * or words before it. */
static bool may_be_prose(const struct conll_span *columns, int n_columns)
{
    struct conll_span last = columns[n_columns - 1];
    bool is_entity = last.n > 2 && strchr("BIESLU", last.text[0]) != NULL && last.text[1] == '-';
    int n_words = 0;
    for (int i = 1; i < n_columns; i++) {
        n_words += has_small_letter(columns[i]);
    }
    return !is_entity && (n_words > 1 || has_small_letter(last));
}

static bool has_comma_inside(struct conll_span word)
{
    bool found = false;
    for (size_t i = 1; i + 1 < word.n; i++) {
        found = found || word.text[i] == ',' || word.text[i] == ';';
    }
    return found;
}

static struct status scan_row(struct scan *s, const char *line, size_t n)
{
    struct conll_file *f = s->f;
    int64_t number = f->file.line - 1;
    if (f->first_line == 0) {
        f->first_line = number;
        f->has_tabs = memchr(line, '\t', n) != NULL;
    }
    int n_columns = split(s->columns, line, n, f->has_tabs);
    f->n_columns = f->n_columns == 0 ? n_columns : f->n_columns;
    if (n_columns > CONLL_MOST_COLUMNS) {
        return wrong(f, number, "has more than 64 columns, but each line must be one word and its columns");
    }
    FAIL_IF(n_columns != f->n_columns, STATUS_DATA,
            "%s line %lld has %d column%s, but line %lld has %d: each line must be one word "
            "and its columns, and an empty line ends a sentence",
            f->file.path, (long long)number, n_columns, n_columns == 1 ? "" : "s", (long long)f->first_line,
            f->n_columns);
    struct conll_span last = s->columns[n_columns - 1];
    bool many = n_columns > 2 && !f->has_tabs;
    if (many && ends_like_sentence(last)) {
        return wrong(f, number, "is a sentence, but each line must be one word and its columns");
    }
    follow_number(s);
    s->is_prose = s->is_prose && many && may_be_prose(s->columns, n_columns);
    s->has_commas = s->has_commas && n_columns == 1 && has_comma_inside(last);
    s->last_is_empty = s->last_is_empty && last.n == 0;
    s->n_sentences += !f->inside;
    s->n_rows++;
    f->inside = true;
    return last.n > 0 ? label_names_gather(&f->labels, last.text, last.n) : status_ok();
}

/* Lines that begin with # wait for the second pass, but for those inside a sentence of columns. */
static struct status scan(struct scan *s)
{
    struct conll_file *f = s->f;
    const char *line;
    for (size_t n; text_file_next(&f->file, &line, &n);) {
        struct conll_span there = trim(line, n);
        if (there.n == 0 || is_document(there)) {
            f->inside = false;
        } else if (*line == '#' && (!f->inside || f->is_numbered)) {
            TRY(read_names(f, line, n));
        } else {
            TRY(scan_row(s, line, n));
        }
    }
    if (s->is_prose && s->n_rows > 0 && s->n_rows == s->n_sentences && !f->is_numbered) {
        return wrong(f, f->first_line, "is a sentence, but each line must be one word and its columns");
    }
    if (s->has_commas && s->n_rows > 1) {
        return wrong(f, f->first_line,
                     "has commas between its columns, but CoNLL has tabs or spaces: replace them");
    }
    f->is_numbered = f->is_numbered && f->n_columns > (s->n_rows > s->n_sentences ? 1 : 2);
    return label_names_sort(&f->labels);
}

/* ---- columns ---- */

static struct status name_columns(struct conll_file *f)
{
    static const char *const names[] = {"ID",    "FORM", "LEMMA",  "UPOS", "XPOS",
                                        "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"};
    enum { N_NAMES = sizeof names / sizeof names[0] };
    bool is_u = f->is_numbered && f->has_tabs && f->n_columns == N_NAMES && f->names.n == 0;
    for (size_t i = 0; i < N_NAMES && is_u; i++) {
        TRY(label_names_add(&f->names, names[i], strlen(names[i])));
    }
    return status_ok();
}

static int find_name(const struct conll_file *f, const char *name)
{
    for (int i = 0; i < f->n_columns && i < f->names.n; i++) {
        if (strcasecmp(label_names_get(&f->names, i), name) == 0) {
            return i;
        }
    }
    return -1;
}

static struct status find_given(const struct conll_file *f, int *column, const char *name, const char *flag)
{
    int found = find_name(f, name);
    char *end;
    long number = strtol(name, &end, 10);
    found = found < 0 && end != name && *end == '\0' && number >= 1 && number <= f->n_columns
                ? (int)number - 1
                : found;
    FAIL_IF(found<0, STATUS_USAGE,
                  "%s has no column %.60s; it has %d columns%s: give --%s a number from 1 to %d%s",
                  f->file.path, name, f->n_columns, f->names.n> 0
                ? ", ID, FORM and so on"
                : "",
            flag, f->n_columns, f->names.n > 0 ? ", or a name" : "");
    *column = found;
    return status_ok();
}

/* A file of words alone has no labels, whatever is asked for. */
static struct status find_columns(struct conll_file *f, const struct conll_columns *c, bool last_is_empty)
{
    int form = find_name(f, "FORM"), upos = find_name(f, "UPOS");
    f->word = form >= 0 ? form : f->is_numbered;
    f->label = upos >= 0 ? upos : f->n_columns - 1 - last_is_empty;
    f->underscore_is_absent = upos >= 0 && c->label == NULL;
    if (c->text != NULL) {
        TRY(find_given(f, &f->word, c->text, "text_column"));
    }
    if (c->label != NULL && f->n_columns > 1) {
        TRY(find_given(f, &f->label, c->label, "label_column"));
    }
    FAIL_IF(f->label == f->word && c->label != NULL && f->n_columns > 1, STATUS_USAGE,
            "%s: --label_column %.60s is the column of the words", f->file.path, c->label);
    f->label = f->label == f->word ? -1 : f->label;
    return status_ok();
}

struct status conll_file_open(struct conll_file *f, const char *path, const struct conll_columns *c)
{
    *f = (struct conll_file){.is_numbered = true};
    struct scan s = {.f = f, .base = 1, .last_is_empty = true, .is_prose = true, .has_commas = true};
    TRY(text_file_open(&f->file, path, c->encoding));
    struct status status = text_file_refuse_nul(&f->file);
    status = failed(status) ? status : scan(&s);
    status = failed(status) ? status : name_columns(f);
    if (!failed(status) && f->n_columns > 0) {
        status = find_columns(f, c, s.last_is_empty);
    }
    f->file.at = 0;
    f->file.line = 1;
    f->inside = false;
    if (failed(status)) {
        conll_file_close(f);
    }
    return status;
}

void conll_file_close(struct conll_file *f)
{
    label_names_fini(&f->names);
    label_names_fini(&f->labels);
    text_file_close(&f->file);
}

void conll_file_describe(struct buf *out, const struct conll_file *f)
{
    const char *const what[] = {"words", ", labels"};
    const int columns[] = {f->word, f->label};
    for (int i = 0; i < 2 && columns[i] >= 0; i++) {
        buf_printf(out, "%s in column %d", what[i], columns[i] + 1);
        if (columns[i] < f->names.n) {
            buf_printf(out, " (%.40s)", label_names_get(&f->names, columns[i]));
        }
    }
}

/* ---- the second pass ---- */

/* A line that begins with # before a sentence: a row like the others has their columns and a label of
 * theirs. */
static bool is_comment(const struct conll_file *f, const struct conll_span *columns, int n_columns)
{
    if (f->is_numbered || n_columns != f->n_columns) {
        return true;
    }
    struct conll_span last = columns[n_columns - 1];
    return n_columns > 1 && label_names_find(&f->labels, last.text, last.n) < 0;
}

static bool is_word(struct conll_file *f, struct conll_row *row, const char *line, size_t n)
{
    struct conll_span columns[CONLL_MOST_COLUMNS];
    int n_columns = split(columns, line, n, f->has_tabs);
    if ((*line == '#' && (!f->inside || f->is_numbered) && is_comment(f, columns, n_columns)) ||
        (f->is_numbered && is_range(columns[0]))) {
        return false;
    }
    row->word = columns[f->word];
    row->label = f->label >= 0 ? columns[f->label] : (struct conll_span){"", 0};
    row->label.n = f->underscore_is_absent && row->label.n == 1 && *row->label.text == '_' ? 0 : row->label.n;
    f->inside = true;
    return true;
}

bool conll_file_next(struct conll_file *f, struct conll_row *row)
{
    const char *line;
    for (size_t n; text_file_next(&f->file, &line, &n);) {
        struct conll_span there = trim(line, n);
        *row = (struct conll_row){.line = f->file.line - 1};
        row->ends_sentence = there.n == 0 || is_document(there);
        if (row->ends_sentence) {
            f->inside = false;
            return true;
        }
        if (is_word(f, row, line, n)) {
            return true;
        }
    }
    return false;
}
