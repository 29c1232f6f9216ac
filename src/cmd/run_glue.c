/* kiln glue: fine-tunes and scores a model on GLUE's small tasks, each by `kiln classify --seeds`, and prints
 * each task's measure and their mean. */
#define _GNU_SOURCE
#include "cmd/command_run.h"
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "core/log.h"
#include "core/words.h"
#include "data/glue_tables.h"
#include "io/file.h"
#include "io/json_file.h"
#include "model/model_dir.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct glue_args {
    const char *model, *data_dir, *output_dir, *tasks, *encoding;
    int64_t seeds, seed;
    bool resume_from_checkpoint, dry_run;
};

#define AT(field) offsetof(struct glue_args, field)

static const struct option options[] = {
    OPTION_REQUIRED_ROW("model", AT(model), "PATH",
                        "start every run from this checkpoint or model directory"),
    OPTION_STRING_ROW("init_checkpoint", AT(model), NULL, "PATH", "the same as --model"),
    OPTION_REQUIRED_ROW("data_dir", AT(data_dir), "DIR",
                        "read the tasks from the directories CoLA, SST-2, MRPC, RTE and STS-B in this one"),
    OPTION_REQUIRED_ROW(
        "output_dir", AT(output_dir), "DIR",
        "write glue.json, and the tables and runs of each task (TASK/seed_S), into this directory"),
    OPTION_STRING_ROW("tasks", AT(tasks), "cola,sst-2,mrpc,rte,sts-b", "LIST",
                      "run these tasks, separated by commas"),
    ENCODING_ROW(AT(encoding), "the tables"),
    OPTION_INT_ROW("seeds", AT(seeds), "1", 1, 1000,
                   "number of runs of each task, with the seeds --seed, --seed + 1, ...; results are means"),
    OPTION_INT_ROW("seed", AT(seed), "42", 0, 2147483647, "seed of the first run"),
    OPTION_FLAG_ROW("resume_from_checkpoint", AT(resume_from_checkpoint),
                    "resume in --output_dir: finished runs are kept, an interrupted one is resumed"),
    DRY_RUN_ROW(AT(dry_run),
                "check model, tables and flags, print the command of each task, and write nothing"),
    {0},
};

/* What a task scored. */
struct glue_result {
    const struct glue_task *task; /* NULL: it was not asked for */
    json_t *scores;               /* of the metric in seeds.json: values, mean, deviation */
};

struct glue_run {
    const struct glue_args *args;
    int n_settings;
    const char *const *settings; /* of the user: [TASK.]FLAG[=VALUE] */
    struct glue_result results[GLUE_N_TASKS];
    int n;
};

static const struct glue_task *find_task(const char *name, size_t n)
{
    for (int i = 0; i < GLUE_N_TASKS; i++) {
        if (strlen(glue_tasks[i].name) == n && strncmp(glue_tasks[i].name, name, n) == 0) {
            return &glue_tasks[i];
        }
    }
    return NULL;
}

static struct status choose_tasks(struct glue_run *g)
{
    for (const char *at = g->args->tasks; at != NULL;) {
        const char *comma = strchr(at, ',');
        size_t n = comma == NULL ? strlen(at) : (size_t)(comma - at);
        const struct glue_task *task = find_task(at, n);
        if (task == NULL) {
            return status_error(STATUS_USAGE,
                                "--tasks has \"%.*s\"; the tasks are cola, sst-2, mrpc, rte, sts-b",
                                (int)(n < 60 ? n : 60), at);
        }
        for (int i = 0; i < g->n; i++) {
            if (g->results[i].task == task) {
                return status_error(STATUS_USAGE, "--tasks has %s twice", task->name);
            }
        }
        g->results[g->n++].task = task;
        at = comma == NULL ? NULL : comma + 1;
    }
    return status_ok();
}

/* The part of a setting before a flag: "cola." of "cola.learning_rate=1e-4", NULL if it is for all tasks. */
static const char *dot_of(const char *setting)
{
    const char *dot = strchr(setting, '.'), *equals = strchr(setting, '=');
    return dot != NULL && (equals == NULL || dot < equals) ? dot : NULL;
}

/* Whether FLAG=VALUE or FLAG is for the flag of this name; '-' and '_' are alike. */
static bool names_flag(const char *setting, const char *name)
{
    size_t i = 0;
    while (name[i] != '\0' && (setting[i] == name[i] || (setting[i] == '-' && name[i] == '_'))) {
        i++;
    }
    return name[i] == '\0' && (setting[i] == '=' || setting[i] == '\0');
}

static struct status check_settings(const struct glue_run *g)
{
    static const char *const own[] = {"init_checkpoint", "output_dir",   "train_file", "predict_file", "seed",
                                      "seeds",           "problem_type", "dry_run",    "encoding"};
    for (int i = 0; i < g->n_settings; i++) {
        const char *word = g->settings[i], *dot = dot_of(word), *flag = dot == NULL ? word : dot + 1;
        if (dot != NULL && find_task(word, (size_t)(dot - word)) == NULL) {
            return status_error(STATUS_USAGE,
                                "%.100s names no task; the tasks are cola, sst-2, mrpc, rte, sts-b", word);
        }
        for (size_t k = 0; k < sizeof own / sizeof own[0]; k++) {
            if (names_flag(flag, own[k])) {
                return status_error(STATUS_USAGE, "%.100s: kiln glue sets %s itself", word, own[k]);
            }
        }
    }
    return status_ok();
}

/* The flags of `kiln classify` for a task; the user's settings are last, so they win. */
static struct status make_words(struct words *w, const struct glue_run *g, const struct glue_task *t)
{
    const struct glue_args *a = g->args;
    const char *out = a->output_dir;
    words_add(w, "--init_checkpoint=%s", a->model);
    words_add(w, "--output_dir=%s/%s", out, t->directory);
    words_add(w, "--train_file=%s/%s/train.jsonl", out, t->directory);
    words_add(w, "--predict_file=%s/%s/dev.jsonl", out, t->directory);
    words_add(w, "--problem_type=%s", t->labels[0] == NULL ? "regression" : "single_label_classification");
    words_add(w, "--do_train");
    words_add(w, "--do_eval");
    words_add(w, "--seed=%" PRId64, a->seed);
    words_add(w, "--seeds=%" PRId64, a->seeds);
    words_add(w, "--learning_rate=%s", t->learning_rate);
    words_add(w, "--num_train_epochs=%s", t->epochs);
    words_add(w, "--train_batch_size=%s", t->batch);
    if (a->resume_from_checkpoint) {
        words_add(w, "--resume_from_checkpoint");
    }
    for (int i = 0; i < g->n_settings; i++) {
        const char *setting = g->settings[i], *dot = dot_of(setting);
        if (dot == NULL || find_task(setting, (size_t)(dot - setting)) == t) {
            words_add(w, "--%s", dot == NULL ? setting : dot + 1);
        }
    }
    return words_status(w);
}

/* Parses the flags of every task before the first begins. */
static struct status check_words(const struct glue_run *g)
{
    struct status s = status_ok();
    for (int i = 0; i < g->n && !failed(s); i++) {
        struct words w = {0};
        s = make_words(&w, g, g->results[i].task);
        s = failed(s) ? s : command_check(&command_classify, w.n, w.list);
        words_fini(&w);
    }
    return s;
}

static struct status path_of(char path[FILE_PATH_BYTES], const struct glue_args *a, const char *folder,
                             const char *file)
{
    int n = snprintf(path, FILE_PATH_BYTES, "%s/%s/%s", a->output_dir, folder, file);
    return n < FILE_PATH_BYTES ? status_ok() : status_error(STATUS_USAGE, "--output_dir is too long a path");
}

/* The table of an earlier run must be the same: its results are kept. */
static struct status check_same(const char *path, const struct buf *lines)
{
    struct file_map m;
    if (!file_exists(path)) {
        return status_ok();
    }
    TRY(file_map_open(&m, path));
    bool same = m.n == lines->n && memcmp(m.data, lines->data, m.n) == 0;
    file_map_close(&m);
    return same ? status_ok()
                : status_error(STATUS_USAGE, "%s was made from other data; give another --output_dir", path);
}

/* Turns a part of a task into the table that classify reads; in a dry run only reads it. */
static struct status make_table(const struct glue_args *a, const struct glue_task *t, enum glue_part part)
{
    struct buf lines = {0};
    char path[FILE_PATH_BYTES];
    struct status s = glue_tables_read(&lines, t, part, a->data_dir, a->encoding);
    s = failed(s) ? s : path_of(path, a, t->directory, part == GLUE_TRAIN ? "train.jsonl" : "dev.jsonl");
    s = failed(s) ? s : check_same(path, &lines);
    if (!failed(s) && !a->dry_run) {
        s = file_write_atomic(path, lines.data, lines.n);
    }
    buf_fini(&lines);
    return s;
}

static struct status make_tables(const struct glue_run *g)
{
    char path[FILE_PATH_BYTES];
    for (int i = 0; i < g->n; i++) {
        const struct glue_task *t = g->results[i].task;
        TRY(path_of(path, g->args, t->directory, ""));
        if (!g->args->dry_run) {
            TRY(file_make_directories(path));
        }
        TRY(make_table(g->args, t, GLUE_TRAIN));
        TRY(make_table(g->args, t, GLUE_DEV));
    }
    return status_ok();
}

/* The scores of a task's metric, from the table that the series of its seeds wrote. */
static struct status take_result(struct glue_result *r, const struct glue_args *a)
{
    char path[FILE_PATH_BYTES];
    json_t *root;
    TRY(path_of(path, a, r->task->directory, "seeds.json"));
    TRY(json_read_object(&root, path));
    json_t *found = json_object_get(json_object_get(root, "metrics"), r->task->metric);
    r->scores = json_is_number(json_object_get(found, "mean")) ? json_incref(found) : NULL;
    json_decref(root);
    return r->scores != NULL ? status_ok()
                             : status_error(STATUS_DATA, "%s has no mean of %s", path, r->task->metric);
}

static struct status run_task(struct glue_run *g, struct glue_result *r)
{
    struct words w = {0};
    struct status s = make_words(&w, g, r->task);
    if (!failed(s) && g->args->dry_run) {
        fputs("kiln classify", stdout);
        for (int i = 0; i < w.n; i++) {
            putchar(' ');
            log_put_text(stdout, w.list[i]);
        }
        putchar('\n');
    } else if (!failed(s)) {
        log_info("%s", r->task->directory);
        s = command_run(&command_classify, w.n, w.list);
        s = failed(s) ? s : take_result(r, g->args);
    }
    words_fini(&w);
    return status_context(s, "%s", r->task->directory);
}

static double mean_of(const struct glue_result *r)
{
    return 100 * json_number_value(json_object_get(r->scores, "mean"));
}

static json_t *results_json(const struct glue_run *g, double mean)
{
    json_t *tasks = json_object();
    for (int i = 0; i < g->n; i++) {
        const struct glue_result *r = &g->results[i];
        json_object_set_new(
            tasks, r->task->name,
            json_pack("{s:s, s:f, s:O}", "metric", r->task->metric, "score", mean_of(r), "seeds", r->scores));
    }
    return json_pack("{s:o, s:I, s:I, s:o, s:f}", "model", json_text(g->args->model), "seed",
                     (json_int_t)g->args->seed, "n_seeds", (json_int_t)g->args->seeds, "tasks", tasks, "mean",
                     mean);
}

/* In percent, as published tables have them. */
static struct status report(const struct glue_run *g)
{
    char path[FILE_PATH_BYTES];
    double sum = 0;
    for (int i = 0; i < g->n; i++) {
        sum += mean_of(&g->results[i]) / g->n;
        printf("%-8s %-10s %6.2f\n", g->results[i].task->directory, g->results[i].task->metric_title,
               mean_of(&g->results[i]));
    }
    printf("%-8s %-10s %6.2f\n", "mean", g->n == GLUE_N_TASKS ? "of five" : "of these", sum);
    TRY(path_of(path, g->args, ".", "glue.json"));
    return json_file_write(path, results_json(g, sum));
}

static struct status run_all(struct glue_run *g)
{
    TRY(choose_tasks(g));
    TRY(check_settings(g));
    TRY(check_words(g));
    TRY(make_tables(g));
    for (int i = 0; i < g->n; i++) {
        TRY(run_task(g, &g->results[i]));
    }
    return g->args->dry_run ? status_ok() : report(g);
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    struct glue_run g = {.args = args, .n_settings = n_positional, .settings = positional};
    struct model_dir m;
    TRY(model_dir_open(&m, g.args->model));
    model_dir_close(&m);
    struct status s = run_all(&g);
    for (int i = 0; i < g.n; i++) {
        json_decref(g.results[i].scores);
    }
    return s;
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
