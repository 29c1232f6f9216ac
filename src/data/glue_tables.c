#include "data/glue_tables.h"

#include "core/json.h"
#include "corpus/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Rates, epochs and batches are of the ranges of Devlin et al. 2018 (arXiv:1810.04805) appendix A.3; the
 * smaller tables get the larger number of epochs.  CoLA's development set is that of GLUE: both of its
 * authors' files. */
const struct glue_task glue_tasks[GLUE_N_TASKS] = {
    {"cola",
     "CoLA",
     {"0", "1"},
     "matthews_correlation",
     "MCC",
     "5e-5",
     "4",
     "32",
     {{{{"in_domain_train.tsv"}, {"in_domain_dev.tsv", "out_of_domain_dev.tsv"}}, 3, -1, 1},
      {{{"train.tsv"}, {"dev.tsv"}}, 3, -1, 1}}},
    {"sst-2",
     "SST-2",
     {"0", "1"},
     "accuracy",
     "accuracy",
     "5e-5",
     "3",
     "32",
     {{{{"train.tsv"}, {"dev.tsv"}}, 0, -1, 1}}},
    {"mrpc",
     "MRPC",
     {"0", "1"},
     "f1",
     "F1",
     "5e-5",
     "4",
     "32",
     {{{{"glue_train.tsv"}, {"glue_dev.tsv"}}, 3, 4, 0}, {{{"train.tsv"}, {"dev.tsv"}}, 3, 4, 0}}},
    {"rte",
     "RTE",
     {"entailment", "not_entailment"},
     "accuracy",
     "accuracy",
     "5e-5",
     "4",
     "32",
     {{{{"train.tsv"}, {"dev.tsv"}}, 1, 2, 3}}},
    {"sts-b",
     "STS-B",
     {NULL, NULL},
     "spearmanr",
     "Spearman",
     "5e-5",
     "4",
     "32",
     {{{{"sts-train.csv"}, {"sts-dev.csv"}}, 5, 6, 4}, {{{"train.tsv"}, {"dev.tsv"}}, 7, 8, 9}}},
};

enum { MOST_COLUMNS = 10 };

/* A row of a table. */
struct glue_row {
    const struct glue_task *task;
    const struct glue_layout *layout;
    const char *path;
    int64_t line;
    char *columns[MOST_COLUMNS]; /* [n] */
    int n;
};

static struct status wrong(const struct glue_row *r, const char *what, const char *value)
{
    return status_error(STATUS_DATA, "%s line %lld: %s%.60s", r->path, (long long)r->line, what, value);
}

/* A label of the task; NULL: it has no such label. */
static json_t *label_json(const struct glue_task *task, const char *text)
{
    char *end;
    if (task->labels[0] != NULL) {
        return strcmp(text, task->labels[0]) == 0 || strcmp(text, task->labels[1]) == 0 ? json_string(text)
                                                                                        : NULL;
    }
    double value = strtod(text, &end);
    return end != text && *end == '\0' && value >= 0 && value <= 5 ? json_real(value) : NULL;
}

static struct status wrong_label(const struct glue_row *r)
{
    const char *const *of = r->task->labels, *value = r->columns[r->layout->label];
    char what[96] = "a label is a number from 0 to 5, not ";
    if (of[0] != NULL) {
        snprintf(what, sizeof what, "a label of %s is %s or %s, not ", r->task->directory, of[0], of[1]);
    }
    return wrong(r, what, value);
}

static struct status put_row(struct buf *lines, const struct glue_row *r)
{
    const struct glue_layout *l = r->layout;
    int last = l->text > l->pair ? l->text : l->pair;
    if (r->n <= (last > l->label ? last : l->label)) {
        return status_error(STATUS_DATA, "%s line %lld has %d columns, too few for %s", r->path,
                            (long long)r->line, r->n, r->task->directory);
    }
    if (r->columns[l->text][0] == '\0' || (l->pair >= 0 && r->columns[l->pair][0] == '\0')) {
        return wrong(r, "the text is empty", "");
    }
    json_t *label = label_json(r->task, r->columns[l->label]);
    if (label == NULL) {
        return wrong_label(r);
    }
    json_t *row = json_pack("{s:s, s:s*, s:o}", l->pair >= 0 ? "sentence1" : "sentence", r->columns[l->text],
                            "sentence2", l->pair >= 0 ? r->columns[l->pair] : NULL, "label", label);
    char *text = row == NULL ? NULL : json_dumps(row, JSON_COMPACT);
    json_decref(row);
    if (text == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a row of %s", r->path);
    }
    buf_puts(lines, text);
    buf_putc(lines, '\n');
    free(text);
    return buf_status(lines);
}

static void split(struct glue_row *r, char *line)
{
    r->n = 0;
    for (char *at = line; at != NULL && r->n < MOST_COLUMNS;) {
        char *tab = strchr(at, '\t');
        r->columns[r->n++] = at;
        if (tab != NULL) {
            *tab++ = '\0';
        }
        at = tab;
    }
}

/* Whether the first line is one of names: no label of any task is called like a column of labels. */
static bool is_names(const struct glue_row *r)
{
    static const char *const names[] = {"label", "labels",     "gold_label",   "quality",
                                        "score", "similarity", "acceptability"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && r->line == 1; i++) {
        found = found || (r->n > r->layout->label && strcasecmp(r->columns[r->layout->label], names[i]) == 0);
    }
    return found;
}

static struct status read_lines(struct buf *lines, struct glue_row *r, struct text_file *f)
{
    struct buf line = {0};
    struct status s = text_file_refuse_nul(f);
    const char *at;
    for (size_t n; !failed(s) && text_file_next(f, &at, &n);) {
        r->line = f->line - 1;
        buf_clear(&line);
        buf_append(&line, at, n);
        s = buf_status(&line);
        if (!failed(s) && line.n > 0) {
            split(r, line.data);
            s = is_names(r) ? status_ok() : put_row(lines, r);
        }
    }
    buf_fini(&line);
    return s;
}

static struct status read_file(struct buf *lines, struct glue_row *r, const char *encoding)
{
    struct text_file f;
    TRY(text_file_open(&f, r->path, encoding));
    struct status s = read_lines(lines, r, &f);
    s = failed(s) ? s : text_file_check(&f);
    text_file_close(&f);
    return s;
}

static struct status path_of(char path[FILE_PATH_BYTES], const char *data_dir, const struct glue_task *task,
                             const char *file)
{
    int n = snprintf(path, FILE_PATH_BYTES, "%s/%s/%s", data_dir, task->directory, file);
    return n < FILE_PATH_BYTES ? status_ok()
                               : status_error(STATUS_USAGE, "%.100s... is too long a path", data_dir);
}

/* The first layout whose training file is there; if none is, the first, whose file is then missed by name. */
static struct status find_layout(const struct glue_layout **layout, const struct glue_task *task,
                                 const char *data_dir)
{
    char path[FILE_PATH_BYTES];
    *layout = &task->layouts[0];
    for (int i = 0; i < GLUE_MOST_LAYOUTS && task->layouts[i].files[GLUE_TRAIN][0] != NULL; i++) {
        TRY(path_of(path, data_dir, task, task->layouts[i].files[GLUE_TRAIN][0]));
        if (file_exists(path)) {
            *layout = &task->layouts[i];
            break;
        }
    }
    return status_ok();
}

struct status glue_tables_read(struct buf *lines, const struct glue_task *task, enum glue_part part,
                               const char *data_dir, const char *encoding)
{
    char path[FILE_PATH_BYTES];
    struct glue_row row = {.task = task, .path = path};
    size_t before = lines->n;
    TRY(find_layout(&row.layout, task, data_dir));
    for (int i = 0; i < GLUE_MOST_FILES && row.layout->files[part][i] != NULL; i++) {
        TRY(path_of(path, data_dir, task, row.layout->files[part][i]));
        TRY(read_file(lines, &row, encoding));
    }
    return lines->n > before ? status_ok() : status_error(STATUS_DATA, "%s has no rows", path);
}
