#define _GNU_SOURCE /* strsep */
/* kiln glue: fine-tunes and scores a model on GLUE's small tasks (Wang et al. 2018, arXiv:1804.07461), each
 * by `kiln classify --seeds`, and prints each task's measure and their mean.
 *
 * The rule: a task is a row of data.  Its tables, as their authors publish them, are tab-separated without
 * quotes, with a line of names or without; they become JSON lines that `kiln classify` reads. */
#include "cmd/command_run.h"
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "core/integers.h"
#include "core/log.h"
#include "core/option_value.h"
#include "core/words.h"
#include "corpus/text_file.h"
#include "io/json_file.h"
#include "model/model_dir.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct glue_args {
    const char *model, *data_dir, *tasks, *encoding;
    int64_t seeds, seed;
    bool resume_from_checkpoint;
    struct command_flags common;
};

#define AT(field) offsetof(struct glue_args, field)

static const struct option options[] = {
    OPTION_REQUIRED_ROW("model", AT(model), "PATH",
                        "start every run from this checkpoint or model directory"),
    INIT_CHECKPOINT_ROW,
    OPTION_REQUIRED_ROW("data_dir", AT(data_dir), "DIR",
                        "read the tasks from the directories CoLA, SST-2, MRPC, RTE and STS-B in this one"),
    OPTION_REQUIRED_ROW(
        "output_dir", AT(common.output_dir), "DIR",
        "write glue.json, and the tables and runs of each task (TASK/seed_S), into this directory"),
    OPTION_STRING_ROW("tasks", AT(tasks), "cola,sst-2,mrpc,rte,sts-b", "LIST",
                      "run these tasks, separated by commas"),
    ENCODING_ROW(AT(encoding), "the tables"),
    OPTION_INT_ROW("seeds", AT(seeds), "1", 1, 1000,
                   "number of runs of each task, with the seeds --seed, --seed + 1, ...; results are means"),
    OPTION_INT_ROW("seed", AT(seed), "42", 0, 2147483647, "seed of the first run"),
    OPTION_FLAG_ROW("resume_from_checkpoint", AT(resume_from_checkpoint),
                    "resume in --output_dir: finished runs are kept, an interrupted one is resumed"),
    DRY_RUN_ROW(AT(common.dry_run),
                "check model, tables and flags, print the command of each task, and write nothing"),
    {0},
};

enum { TRAIN, DEV, N_PARTS };
enum { N_TASKS = 5, MOST_LAYOUTS = 2, MOST_FILES = 3, MOST_COLUMNS = 10 };

/* One of the forms in which a task is published. */
struct layout {
    const char *files[MOST_FILES]; /* files of the task's directory: training set, then development set */
    int text, pair, label;         /* columns, from 0; pair -1: a single text */
};

struct task {
    const char *name, *directory;
    const char *labels;         /* labels of a classification; NULL: numbers from 0 to 5 */
    const char *metric, *title; /* metric of data/class_score.h, the one that published tables have */
    const char *epochs;
    struct layout layouts[MOST_LAYOUTS]; /* the first that is there is read */
};

/* Rates, epochs and batches are of the ranges of Devlin et al. 2018 (arXiv:1810.04805) appendix A.3; the
 * smaller tables get the larger number of epochs.  CoLA's development set is that of GLUE: both of its
 * authors' files. */
/* clang-format off */
static const struct task tasks[N_TASKS] = {
    {"cola", "CoLA", "0|1", "matthews_correlation", "MCC", "4",
     {{{"in_domain_train.tsv", "in_domain_dev.tsv", "out_of_domain_dev.tsv"}, 3, -1, 1},
      {{"train.tsv", "dev.tsv"}, 3, -1, 1}}},
    {"sst-2", "SST-2", "0|1", "accuracy", "accuracy", "3", {{{"train.tsv", "dev.tsv"}, 0, -1, 1}}},
    {"mrpc", "MRPC", "0|1", "f1", "F1", "4",
     {{{"glue_train.tsv", "glue_dev.tsv"}, 3, 4, 0}, {{"train.tsv", "dev.tsv"}, 3, 4, 0}}},
    {"rte", "RTE", "entailment|not_entailment", "accuracy", "accuracy", "4",
     {{{"train.tsv", "dev.tsv"}, 1, 2, 3}}},
    {"sts-b", "STS-B", NULL, "spearmanr", "Spearman", "4",
     {{{"sts-train.csv", "sts-dev.csv"}, 5, 6, 4}, {{"train.tsv", "dev.tsv"}, 7, 8, 9}}},
};
/* clang-format on */

struct glue_run {
    const struct glue_args *args;
    int n_settings;
    const char *const *settings;       /* settings of the user: [TASK.]FLAG[=VALUE] */
    const struct task *tasks[N_TASKS]; /* [n] that were asked for */
    int n;
};

/* ---- tables ---- */

/* A label of the task; NULL: it has no such label. */
static json_t *label_json(const struct task *t, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (t->labels != NULL) {
        return option_is_choice(t->labels, text) ? json_string(text) : NULL;
    }
    return end != text && *end == '\0' && value >= 0 && value <= 5 ? json_real(value) : NULL;
}

/* Appends a line of a table as {"sentence1": ..., "sentence2": ..., "label": ...}, or {"sentence": ...,
 * "label": ...} for single texts.  A first line without a label has names. */
static struct status put_row(struct buf *lines, const struct task *t, const struct layout *l, char *line,
                             bool is_first)
{
    const char *columns[MOST_COLUMNS] = {NULL};
    int64_t n = 0, last = int_larger(l->label, int_larger(l->text, l->pair));
    for (char *at = line; at != NULL && n < MOST_COLUMNS; n++) {
        columns[n] = strsep(&at, "\t");
    }
    FAIL_IF(n <= last, STATUS_DATA, "%lld columns are too few for %s", (long long)n, t->directory);
    const char *text = columns[l->text], *pair = l->pair >= 0 ? columns[l->pair] : NULL;
    json_t *label = label_json(t, columns[l->label]);
    if (label == NULL && is_first) {
        return status_ok();
    }
    FAIL_IF(label == NULL, STATUS_DATA, "a label of %s is %s, not %.60s", t->directory,
            t->labels != NULL ? t->labels : "a number from 0 to 5", columns[l->label]);
    json_t *row = json_pack("{s:s, s:s*, s:o}", pair != NULL ? "sentence1" : "sentence", text, "sentence2",
                            pair, "label", label);
    if (text[0] == '\0' || (pair != NULL && pair[0] == '\0')) {
        json_decref(row);
        return status_error(STATUS_DATA, "the text is empty");
    }
    return json_append_line(lines, row, 0);
}

static struct status read_file(struct buf *lines, const struct task *t, const struct layout *l,
                               const char *path, const char *encoding)
{
    struct text_file f;
    struct buf line = {0};
    const char *at;
    TRY(text_file_open(&f, path, encoding));
    struct status s = text_file_refuse_nul(&f);
    for (size_t n; !failed(s) && text_file_next(&f, &at, &n);) {
        buf_clear(&line);
        buf_append(&line, at, n);
        s = buf_status(&line);
        if (!failed(s) && n > 0) {
            s = status_context(put_row(lines, t, l, line.data, f.line == 2), "%s line %lld", path,
                               (long long)f.line - 1);
        }
    }
    s = failed(s) ? s : text_file_check(&f);
    buf_fini(&line);
    text_file_close(&f);
    return s;
}

/* Finds the form in which a task is there: the first whose training file is; if none is, the first form's
 * file is missed by its name. */
static struct status find_layout(const struct layout **l, const struct glue_args *a, const struct task *t)
{
    char path[FILE_PATH_BYTES];
    for (int i = 0; i < MOST_LAYOUTS && t->layouts[i].files[0] != NULL; i++) {
        *l = &t->layouts[i];
        TRY(file_make_path(path, "%s/%s/%s", a->data_dir, t->directory, (*l)->files[0]));
        if (file_exists(path)) {
            return status_ok();
        }
    }
    *l = &t->layouts[0];
    return status_ok();
}

static struct status read_part(struct buf *lines, const struct glue_args *a, const struct task *t, int part)
{
    const struct layout *l;
    char path[FILE_PATH_BYTES];
    TRY(find_layout(&l, a, t));
    for (int i = part; i < (part == TRAIN ? DEV : MOST_FILES) && l->files[i] != NULL; i++) {
        TRY(file_make_path(path, "%s/%s/%s", a->data_dir, t->directory, l->files[i]));
        TRY(read_file(lines, t, l, path, a->encoding));
    }
    return lines->n > 0 ? status_ok() : status_error(STATUS_DATA, "%s has no rows", path);
}

/* The table of an earlier run must be the same: its results are kept. */
static struct status write_part(const struct glue_args *a, const char *path, const struct buf *lines)
{
    struct file_map m;
    if (file_exists(path)) {
        TRY(file_map_open(&m, path));
        bool same = m.n == lines->n && memcmp(m.data, lines->data, m.n) == 0;
        file_map_close(&m);
        FAIL_IF(!same, STATUS_USAGE, "%s was made from other data; give another --output_dir", path);
    }
    return a->common.dry_run ? status_ok() : file_write_atomic(path, lines->data, lines->n);
}

/* Turns a task into the tables that classify reads; in a dry run only reads it. */
static struct status make_tables(const struct glue_args *a, const struct task *t)
{
    static const char *const names[N_PARTS] = {"train", "dev"};
    char path[FILE_PATH_BYTES];
    struct buf lines = {0};
    TRY(file_make_path(path, "%s/%s", a->common.output_dir, t->directory));
    struct status s = a->common.dry_run ? status_ok() : file_make_directories(path);
    for (int part = 0; part < N_PARTS && !failed(s); part++) {
        buf_clear(&lines);
        s = read_part(&lines, a, t, part);
        s = failed(s)
                ? s
                : file_make_path(path, "%s/%s/%s.jsonl", a->common.output_dir, t->directory, names[part]);
        s = failed(s) ? s : write_part(a, path, &lines);
    }
    buf_fini(&lines);
    return s;
}

/* ---- flags ---- */

static const struct task *find_task(const char *name, size_t n)
{
    for (int i = 0; i < N_TASKS; i++) {
        if (strlen(tasks[i].name) == n && strncmp(tasks[i].name, name, n) == 0) {
            return &tasks[i];
        }
    }
    return NULL;
}

static struct status choose_tasks(struct glue_run *g)
{
    for (const char *at = g->args->tasks, *end; at != NULL; at = *end == '\0' ? NULL : end + 1) {
        end = at + strcspn(at, ",");
        const struct task *t = find_task(at, (size_t)(end - at));
        FAIL_IF(t == NULL, STATUS_USAGE, "--tasks has \"%.60s\"; the tasks are cola, sst-2, mrpc, rte, sts-b",
                at);
        for (int i = 0; i < g->n; i++) {
            FAIL_IF(g->tasks[i] == t, STATUS_USAGE, "--tasks has %s twice", t->name);
        }
        g->tasks[g->n++] = t;
    }
    return status_ok();
}

/* Adds the user's settings for a task: "learning_rate=1e-4" is for all, "cola.learning_rate=1e-4" for one. */
static struct status add_settings(struct words *w, const struct glue_run *g, const struct task *t)
{
    for (int i = 0; i < g->n_settings; i++) {
        const char *setting = g->settings[i];
        size_t n = strcspn(setting, ".=");
        const struct task *of = setting[n] == '.' ? find_task(setting, n) : t;
        FAIL_IF(of == NULL, STATUS_USAGE, "%.100s names no task; the tasks are cola, sst-2, mrpc, rte, sts-b",
                setting);
        if (of == t) {
            words_add(w, "--%s", setting[n] == '.' ? setting + n + 1 : setting);
        }
    }
    return status_ok();
}

/* The flags of `kiln classify` for a task: the recipe, the user's settings, and what kiln glue sets itself;
 * of a flag that is given twice the last counts. */
static struct status make_words(struct words *w, const struct glue_run *g, const struct task *t)
{
    const struct glue_args *a = g->args;
    words_add(w, "--learning_rate=5e-5");
    words_add(w, "--num_train_epochs=%s", t->epochs);
    words_add(w, "--train_batch_size=32");
    TRY(add_settings(w, g, t));
    words_add(w, "--init_checkpoint=%s", a->model);
    words_add(w, "--output_dir=%s/%s", a->common.output_dir, t->directory);
    words_add(w, "--train_file=%s/%s/train.jsonl", a->common.output_dir, t->directory);
    words_add(w, "--predict_file=%s/%s/dev.jsonl", a->common.output_dir, t->directory);
    words_add(w, "--problem_type=%s", t->labels == NULL ? "regression" : "single_label_classification");
    words_add_list(w, (const char *const[]){"--do_train", "--do_eval", NULL});
    words_add(w, "--seed=%" PRId64, a->seed);
    words_add(w, "--seeds=%" PRId64, a->seeds);
    if (a->resume_from_checkpoint) {
        words_add(w, "--resume_from_checkpoint");
    }
    return words_status(w);
}

/* ---- runs ---- */

static void print_command(const struct words *w)
{
    struct buf text = {0};
    words_print(&text, w);
    fputs("kiln classify ", stdout);
    log_put_text(stdout, buf_text(&text));
    putchar('\n');
    buf_fini(&text);
}

/* Runs a task; `only_check` its flags, which is done for all before the first begins. */
static struct status run_task(const struct glue_run *g, int i, bool only_check)
{
    struct words w = {0};
    struct status s = make_words(&w, g, g->tasks[i]);
    if (!failed(s) && only_check) {
        s = command_check(&command_classify, w.n, w.list);
    } else if (!failed(s) && g->args->common.dry_run) {
        print_command(&w);
    } else if (!failed(s)) {
        log_info("%s", g->tasks[i]->directory);
        s = command_run(&command_classify, w.n, w.list);
        s = status_context(s, "%s", g->tasks[i]->directory);
    }
    words_fini(&w);
    return s;
}

/* Prints and adds to `all` a task's score in percent, as published tables have it, from the table that the
 * series of its seeds wrote. */
static struct status report_task(json_t *all, double *score, const struct glue_args *a, const struct task *t)
{
    char path[FILE_PATH_BYTES];
    json_t *root;
    TRY(file_make_path(path, "%s/%s/seeds.json", a->common.output_dir, t->directory));
    TRY(json_read_object(&root, path));
    json_t *found = json_object_get(json_object_get(root, "metrics"), t->metric);
    bool has_mean = json_is_number(json_object_get(found, "mean"));
    *score = 100 * json_number_value(json_object_get(found, "mean"));
    json_object_set_new(all, t->name,
                        json_pack("{s:s, s:f, s:O?}", "metric", t->metric, "score", *score, "seeds", found));
    json_decref(root);
    FAIL_IF(!has_mean, STATUS_DATA, "%s has no mean of %s", path, t->metric);
    printf("%-8s %-10s %6.2f\n", t->directory, t->title, *score);
    return status_ok();
}

static struct status report(const struct glue_run *g)
{
    char path[FILE_PATH_BYTES];
    double score = 0, sum = 0;
    json_t *all = json_object();
    struct status s = file_make_path(path, "%s/glue.json", g->args->common.output_dir);
    for (int i = 0; i < g->n && !failed(s); i++) {
        s = report_task(all, &score, g->args, g->tasks[i]);
        sum += score / g->n;
    }
    if (failed(s)) {
        json_decref(all);
        return s;
    }
    printf("%-8s %-10s %6.2f\n", "mean", g->n == N_TASKS ? "of five" : "of these", sum);
    return json_file_write(path, json_pack("{s:o, s:I, s:I, s:o, s:f}", "model", json_text(g->args->model),
                                           "seed", (json_int_t)g->args->seed, "n_seeds",
                                           (json_int_t)g->args->seeds, "tasks", all, "mean", sum));
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    struct glue_run g = {.args = args, .n_settings = n_positional, .settings = positional};
    struct model_dir m;
    TRY(model_dir_open(&m, g.args->model));
    model_dir_close(&m);
    TRY(choose_tasks(&g));
    for (int i = 0; i < g.n; i++) {
        TRY(run_task(&g, i, true));
    }
    for (int i = 0; i < g.n; i++) {
        TRY(make_tables(g.args, g.tasks[i]));
    }
    for (int i = 0; i < g.n; i++) {
        TRY(run_task(&g, i, false));
    }
    return g.args->common.dry_run ? status_ok() : report(&g);
}

const struct command command_glue = {
    .name = "glue",
    .summary = "fine-tune and score a model on GLUE's small tasks, with the mean of their measures",
    .details = "Runs kiln classify on CoLA, SST-2, MRPC, RTE and STS-B, and prints Matthews' correlation, "
               "accuracy, F1, accuracy and Spearman's correlation on the development sets, in percent, and "
               "their mean. A setting changes a flag of kiln classify for all tasks or for one: "
               "num_train_epochs=1 cola.learning_rate=3e-5. By default a run has batches of 32, a rate of "
               "5e-5 and 4 epochs (3 for SST-2).",
    .positional_usage = "[[TASK.]FLAG[=VALUE]...]",
    .max_positional = 100,
    .options = options,
    .args_bytes = sizeof(struct glue_args),
    .run = run,
};
