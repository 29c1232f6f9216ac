#include "report/run_log.h"

#include "core/array.h"
#include "io/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys of the events; a later row takes precedence. */
static const struct {
    const char *key;
    enum run_column column;
} columns[] = {
    {"step_loss", RUN_LOSS}, /* question answering has no other */
    {"loss", RUN_LOSS},
    {"grad_norm", RUN_GRAD_NORM},
    {"learning_rate", RUN_LEARNING_RATE},
    {"sequences_per_second", RUN_SEQUENCES_PER_SECOND},
    {"tokens_per_second", RUN_TOKENS_PER_SECOND},
    {"perplexity", RUN_PERPLEXITY},
    {"bits_per_byte", RUN_BITS_PER_BYTE},
};

static bool is_total(const char *name)
{
    return strcmp(name, "loss") == 0;
}

enum run_column run_column_of(enum model_measure_id measure, enum run_measured what)
{
    return what == RUN_MEASURE_LOSS && is_total(model_measures[measure].loss)
               ? RUN_LOSS
               : RUN_MEASURES + measure * RUN_N_MEASURED + what;
}

double run_rows_last(const struct run_rows *rows, enum run_column column)
{
    for (size_t i = rows->n; i-- > 0;) {
        if (isfinite(rows->rows[i].values[column])) {
            return (double)rows->rows[i].values[column];
        }
    }
    return NAN;
}

static void drop_from(struct run_rows *r, int64_t step)
{
    while (r->n > 0 && r->rows[r->n - 1].step >= step) {
        r->n--;
    }
}

static struct status append_row(struct run_rows *r, const struct run_row *row)
{
    FAIL_IF(!ARRAY_RESERVE(r->rows, r->capacity, r->n + 1), STATUS_MEMORY,
            "out of memory for %zu lines of a log", r->n + 1);
    r->rows[r->n++] = *row;
    return status_ok();
}

/* -1 if the key is absent or impossible. */
static int64_t step_at(const json_t *event, const char *key)
{
    static const int64_t MAX_STEP = 1000000000000000;
    const json_t *step = json_object_get(event, key);
    int64_t value = json_is_integer(step) ? json_integer_value(step) : -1;
    return value <= MAX_STEP ? value : -1;
}

/* -1 if there is none.  Logs from before there was "global_step" have only the step in the phase. */
static int64_t global_step_of(struct run_log *log, const json_t *event, int phase)
{
    int64_t step = step_at(event, "step"), global = step_at(event, "global_step");
    if (step < 0) {
        return -1;
    }
    if (phase == 2 && log->phase2_from < 0) {
        int64_t last = log->steps.n > 0 ? log->steps.rows[log->steps.n - 1].step : 0;
        log->phase2_from = global >= step ? global - step : last;
    }
    return global >= 0 ? global : step + (phase == 2 ? log->phase2_from : 0);
}

/* Drops samples of this step in the phase and later ones. */
static void drop_samples(struct run_log *log, int64_t step)
{
    for (size_t n = json_array_size(log->samples); n > 0; n--) {
        if (global_step_of(log, json_array_get(log->samples, n - 1), 1) < step) {
            return;
        }
        json_array_remove(log->samples, n - 1);
    }
}

static void take_value(float *value, const json_t *event, const char *key)
{
    const json_t *number = json_object_get(event, key);
    if (json_is_number(number)) {
        *value = (float)json_number_value(number);
    }
}

static void take_measures(float values[RUN_N_COLUMNS], const json_t *event)
{
    for (int m = 0; m < N_MEASURES; m++) {
        const char *const names[] = {model_measures[m].loss, model_measures[m].accuracy};
        for (int i = 0; i < 2; i++) {
            char baseline[64];
            snprintf(baseline, sizeof baseline, "unigram_%s", names[i]);
            take_value(&values[run_column_of(m, RUN_MEASURE_LOSS + i)], event, names[i]);
            take_value(&values[run_column_of(m, RUN_BASELINE_LOSS + i)], event, baseline);
        }
        char counts[64];
        snprintf(counts, sizeof counts, "ngram_%s", names[0]);
        take_value(&values[run_column_of(m, RUN_NGRAM_LOSS)], event, counts);
    }
}

/* An evaluation's total: the sum of its losses, NaN if one of them is no number or there is none. */
static float total_of(const float values[RUN_N_COLUMNS], const json_t *event)
{
    float total = 0;
    bool any = false;
    for (int m = 0; m < N_MEASURES; m++) {
        if (json_object_get(event, model_measures[m].loss) != NULL) {
            total += values[run_column_of(m, RUN_MEASURE_LOSS)];
            any = true;
        }
    }
    return any ? total : NAN;
}

static struct status take_row(struct run_log *log, const json_t *event, int phase, bool evaluation)
{
    struct run_row row = {.step = global_step_of(log, event, phase), .phase = phase};
    if (row.step < 0) {
        log->n_unreadable++;
        return status_ok();
    }
    for (int c = 0; c < RUN_N_COLUMNS; c++) {
        row.values[c] = NAN;
    }
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        take_value(&row.values[columns[i].column], event, columns[i].key);
    }
    take_measures(row.values, event);
    if (evaluation) {
        row.values[RUN_LOSS] = total_of(row.values, event);
    } else {
        drop_from(&log->steps, row.step);
    }
    drop_from(&log->evaluations, row.step);
    return append_row(evaluation ? &log->evaluations : &log->steps, &row);
}

/* Drops rows after the step at which training is resumed: those steps will be repeated.  A start that only
 * predicts changes nothing. */
static void take_start(struct run_log *log, json_t *event, int phase)
{
    char key[16];
    if (step_at(event, "last_step") > step_at(event, "step")) {
        log->phase2_from = -1;
        int64_t done = global_step_of(log, event, phase);
        drop_from(&log->steps, done + 1);
        drop_from(&log->evaluations, done + 1);
        drop_samples(log, done + 1);
        if (phase == 1) {
            json_object_clear(log->starts);
            json_object_clear(log->latest);
        }
    }
    snprintf(key, sizeof key, "%d", phase);
    json_object_set(log->starts, key, event);
    log->n_starts++;
}

static void take_time(struct run_log *log, const json_t *event, bool start)
{
    const json_t *time = json_object_get(event, "time");
    if (!json_is_number(time)) {
        return;
    }
    double now = json_number_value(time);
    if (isnan(log->first_s)) {
        log->first_s = now;
    } else if (!start && now > log->last_s) {
        log->seconds += now - log->last_s;
    }
    log->last_s = now;
}

static struct status take_event(struct run_log *log, json_t *event)
{
    const char *name = json_string_value(json_object_get(event, "event"));
    int phase = json_integer_value(json_object_get(event, "phase")) == 2 ? 2 : 1;
    if (name == NULL) {
        log->n_unreadable++;
        return status_ok();
    }
    bool start = strcmp(name, "start") == 0;
    take_time(log, event, start);
    if (strcmp(name, "step") == 0) {
        return take_row(log, event, phase, false);
    }
    if (strcmp(name, "evaluation") == 0) {
        return take_row(log, event, phase, true);
    }
    if (strcmp(name, "sample") == 0) {
        json_array_append(log->samples, event);
    } else if (start) {
        take_start(log, event, phase);
    } else {
        json_object_set(log->latest, name, event);
    }
    return status_ok();
}

static struct status parse_lines(struct run_log *log, const char *text, size_t n)
{
    while (n > 0) {
        const char *newline = memchr(text, '\n', n);
        size_t line = newline == NULL ? n : (size_t)(newline - text);
        json_t *event = json_loadb(text, line, 0, NULL);
        struct status s = status_ok();
        if (json_is_object(event)) {
            s = take_event(log, event);
        } else if (line > 0) {
            log->n_unreadable++;
        }
        json_decref(event);
        TRY(s);
        line += newline != NULL;
        text += line;
        n -= line;
    }
    return status_ok();
}

/* "a/b/" and "a/b/log.jsonl" are the run "b". */
static char *name_of(const char *run)
{
    size_t n = strlen(run);
    static const char file[] = "/log.jsonl";
    if (n > sizeof file - 1 && strcmp(run + n - (sizeof file - 1), file) == 0) {
        n -= sizeof file - 1;
    }
    while (n > 1 && run[n - 1] == '/') {
        n--;
    }
    size_t from = n;
    while (from > 0 && run[from - 1] != '/') {
        from--;
    }
    return strndup(run + from, n - from);
}

struct status run_log_parse(struct run_log *log, const char *run, const char *text, size_t n)
{
    *log = (struct run_log){
        .path = strdup(run),
        .name = name_of(run),
        .starts = json_object(),
        .latest = json_object(),
        .samples = json_array(),
        .phase2_from = -1,
        .first_s = NAN,
        .last_s = NAN,
    };
    struct status s = status_error(STATUS_MEMORY, "out of memory for the log of %s", run);
    if (log->path != NULL && log->name != NULL && log->starts != NULL && log->latest != NULL &&
        log->samples != NULL) {
        s = parse_lines(log, text, n);
    }
    if (failed(s)) {
        run_log_close(log);
    }
    return s;
}

struct status run_log_open(struct run_log *log, const char *run)
{
    char path[1024];
    struct file_map m;
    *log = (struct run_log){0};
    int n = snprintf(path, sizeof path, "%s%s", run, file_is_directory(run) ? "/log.jsonl" : "");
    FAIL_IF(n >= (int)sizeof path, STATUS_DATA, "the path %.60s... is longer than %zu bytes", run,
            sizeof path - 1);
    TRY(file_map_open(&m, path));
    struct status s = run_log_parse(log, run, (const char *)m.data, m.n);
    file_map_close(&m);
    return s;
}

void run_log_close(struct run_log *log)
{
    free(log->path);
    free(log->name);
    free(log->steps.rows);
    free(log->evaluations.rows);
    json_decref(log->starts);
    json_decref(log->latest);
    json_decref(log->samples);
    *log = (struct run_log){0};
}

bool run_logs_have(const struct run_log *logs, int n_logs, enum run_column column)
{
    bool any = false;
    for (int r = 0; r < n_logs; r++) {
        any |= isfinite(run_rows_last(&logs[r].steps, column)) ||
               isfinite(run_rows_last(&logs[r].evaluations, column));
    }
    return any;
}
