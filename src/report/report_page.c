#include "report/report_page.h"

#include "core/clock.h"
#include "core/progress.h"
#include "io/file.h"
#include "report/report_chart.h"
#include "report/run_log.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_CURVES = 4 };

/* A chart and its curves for one run; several runs repeat the curves in their colours. */
struct chart_form {
    const char *title, *unit;
    bool from_zero, log_if_wide;
    struct {
        const char *label; /* NULL: no more */
        enum chart_style style;
        enum run_column column;
    } curves[MAX_CURVES];
};

static const struct chart_form total_chart = {
    "Loss", "total, in nats",
    .curves = {{"training", CHART_LINE, RUN_LOSS}, {"held-out", CHART_DOTS, RUN_LOSS}}};

/* The charts that follow those of the measures. */
static const struct chart_form last_charts[] = {
    {"Learning rate", "", true, false, {{"rate", CHART_EXACT, RUN_LEARNING_RATE}}},
    {"Gradient norm", "before clipping", true, true, {{"norm", CHART_LINE, RUN_GRAD_NORM}}},
};

/* The rate that the runs have; two rates of one run would have the same shape. */
static const struct chart_form token_rate = {
    "Throughput", "tokens/s", true, false, {{"tokens/s", CHART_LINE, RUN_TOKENS_PER_SECOND}}};
static const struct chart_form sequence_rate = {
    "Throughput", "sequences/s", true, false, {{"sequences/s", CHART_LINE, RUN_SEQUENCES_PER_SECOND}}};

static const struct run_rows *rows_of(const struct run_log *log, enum chart_style style)
{
    return style == CHART_LINE || style == CHART_EXACT ? &log->steps : &log->evaluations;
}

static int64_t last_step_of(const struct run_log *log)
{
    const struct run_rows *s = &log->steps, *e = &log->evaluations;
    int64_t last = s->n > 0 ? s->rows[s->n - 1].step : 0;
    return e->n > 0 && e->rows[e->n - 1].step > last ? e->rows[e->n - 1].step : last;
}

/* Values that the charts of all runs share. */
struct chart_frame {
    const struct run_log *logs;
    int n_logs;
    int64_t last_step;
    int64_t marks[REPORT_MAX_RUNS]; /* steps at which phases begin */
    size_t n_marks;
    int *n_figures; /* charts of one SVG that are drawn; NULL: they go into a page */
};

static struct chart_frame frame_of(const struct run_log *logs, int n_logs)
{
    struct chart_frame f = {.logs = logs, .n_logs = n_logs};
    for (int r = 0; r < n_logs; r++) {
        f.last_step = last_step_of(&logs[r]) > f.last_step ? last_step_of(&logs[r]) : f.last_step;
        if (logs[r].phase2_from > 0) {
            f.marks[f.n_marks++] = logs[r].phase2_from;
        }
    }
    return f;
}

static void append_form(struct buf *b, const struct chart_frame *f, const struct chart_form *form)
{
    struct chart_curve curves[REPORT_MAX_RUNS * MAX_CURVES];
    size_t n = 0;
    for (int k = 0; k < MAX_CURVES && form->curves[k].label != NULL; k++) {
        for (int r = 0; r < f->n_logs; r++) {
            enum chart_style style = form->curves[k].style;
            curves[n++] =
                (struct chart_curve){f->logs[r].name, form->curves[k].label,       r,
                                     style,           rows_of(&f->logs[r], style), form->curves[k].column};
        }
    }
    const struct chart c = {form->title, form->unit,   form->from_zero, form->log_if_wide, curves,
                            n,           f->last_step, f->marks,        f->n_marks};
    if (f->n_figures == NULL) {
        chart_append(b, &c);
    } else {
        *f->n_figures += chart_append_figure(b, &c, *f->n_figures);
    }
}

static bool has_measure(const struct run_log *logs, int n_logs, enum model_measure_id m)
{
    enum run_column loss = run_column_of(m, RUN_MEASURE_LOSS);
    return run_logs_have(logs, n_logs, run_column_of(m, RUN_MEASURE_ACCURACY)) ||
           (loss != RUN_LOSS && run_logs_have(logs, n_logs, loss));
}

/* The measure whose loss is the total, since the runs have no other; N_MEASURES: there is none. */
static int only_measure(const struct run_log *logs, int n_logs)
{
    int only = N_MEASURES, n = 0;
    bool is_total = true;
    for (int m = 0; m < N_MEASURES; m++) {
        if (has_measure(logs, n_logs, m)) {
            only = m;
            n++;
        }
    }
    for (int r = 0; r < n_logs && n == 1; r++) { /* a loss that is no number spoils the total */
        const struct run_rows *e = &logs[r].evaluations;
        is_total &= isfinite(run_rows_last(e, RUN_LOSS)) ==
                    isfinite(run_rows_last(e, run_column_of(only, RUN_MEASURE_LOSS)));
    }
    return n == 1 && is_total ? only : N_MEASURES;
}

/* "Masked words: loss"; `column` is the total where it is the same. */
static void append_measure_chart(struct buf *b, const struct chart_frame *f, enum model_measure_id measure,
                                 enum run_column column, bool is_loss)
{
    enum run_column baseline = run_column_of(measure, is_loss ? RUN_BASELINE_LOSS : RUN_BASELINE_ACCURACY);
    const char *counts = is_loss ? "counts of n-grams" : NULL;
    char title[64];
    snprintf(title, sizeof title, "%s: %s", model_measures[measure].of, is_loss ? "loss" : "accuracy");
    title[0] = (char)toupper((unsigned char)title[0]);
    append_form(
        b, f,
        &(struct chart_form){.title = title,
                             .unit = is_loss ? "nats" : "fraction correct",
                             .from_zero = !is_loss && model_measures[measure].of_words,
                             .curves = {{"training", CHART_LINE, column},
                                        {"held-out", CHART_DOTS, column},
                                        {"word frequencies", CHART_FLOOR, baseline},
                                        {counts, CHART_COUNTS, run_column_of(measure, RUN_NGRAM_LOSS)}}});
}

static void append_forms(struct buf *b, const struct chart_frame *f)
{
    int only = only_measure(f->logs, f->n_logs);
    if (only == N_MEASURES) {
        append_form(b, f, &total_chart);
    }
    for (int m = 0; m < N_MEASURES; m++) {
        enum run_column loss = m == only ? RUN_LOSS : run_column_of(m, RUN_MEASURE_LOSS);
        if (m == only || loss != RUN_LOSS) {
            append_measure_chart(b, f, m, loss, true);
        }
        append_measure_chart(b, f, m, run_column_of(m, RUN_MEASURE_ACCURACY), false);
    }
    for (size_t i = 0; i < sizeof last_charts / sizeof last_charts[0]; i++) {
        append_form(b, f, &last_charts[i]);
    }
    bool tokens = run_logs_have(f->logs, f->n_logs, RUN_TOKENS_PER_SECOND);
    append_form(b, f, tokens ? &token_rate : &sequence_rate);
}

static void append_charts(struct buf *b, const struct run_log *logs, int n_logs)
{
    struct chart_frame f = frame_of(logs, n_logs);
    buf_puts(b, "<div class=\"charts\">\n");
    append_forms(b, &f);
    buf_puts(b, "</div>\n");
}

void report_svg_append(struct buf *b, const struct run_log *logs, int n_logs)
{
    struct chart_frame f = frame_of(logs, n_logs);
    struct buf figures = {0};
    int n = 0;
    f.n_figures = &n;
    append_forms(&figures, &f);
    chart_figures_begin(b, n, n_logs);
    for (int r = 0; r < n_logs; r++) {
        chart_figures_name(b, logs[r].name, r);
    }
    buf_append(b, figures.data, figures.n);
    buf_puts(b, "</svg>\n");
    b->failed |= figures.failed;
    buf_fini(&figures);
}

static double mean_of(const struct run_rows *rows, enum run_column column)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        if (isfinite(rows->rows[i].values[column])) {
            sum += (double)rows->rows[i].values[column];
            n++;
        }
    }
    return n > 0 ? sum / n : NAN;
}

static void append_date(struct buf *b, double wall_s)
{
    char text[32] = "";
    struct tm local;
    /* else it cannot be the time of a run */
    time_t seconds = wall_s >= 0 && wall_s < 1e11 ? (time_t)wall_s : -1;
    if (seconds >= 0 && localtime_r(&seconds, &local) != NULL) {
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
    }
    buf_puts(b, text);
}

/* The cell of one run in a row of the summary: nothing if the run has no value. */
typedef void summary_cell(struct buf *b, const struct run_log *log, int column);

static void put_number(struct buf *b, double value)
{
    if (isfinite(value)) {
        buf_puts(b, number_text(value).text);
    }
}

static void put_dates(struct buf *b, const struct run_log *log, int column)
{
    (void)column;
    append_date(b, log->first_s);
    buf_puts(b, isnan(log->first_s) ? "" : " to ");
    append_date(b, log->last_s);
}

/* A field of the last event that started or resumed the run; phase 2 has the one of phase 1 too. */
static const json_t *start_field(const struct run_log *log, const char *key)
{
    const json_t *second = json_object_get(json_object_get(log->starts, "2"), key);
    return second != NULL ? second : json_object_get(json_object_get(log->starts, "1"), key);
}

static void put_parameters(struct buf *b, const struct run_log *log, int column)
{
    (void)column;
    const json_t *n = start_field(log, "parameters");
    if (json_is_integer(n)) {
        put_number(b, (double)json_integer_value(n));
    }
}

/* "2.5M tokens", or "320 texts" of a fine-tuning. */
static void put_data(struct buf *b, const struct run_log *log, int column)
{
    static const char *const units[] = {"texts", "pairs", "questions"};
    (void)column;
    const json_t *tokens = start_field(log, "data_tokens"),
                 *training = json_object_get(log->latest, "training");
    if (json_is_number(tokens)) {
        buf_printf(b, "%s tokens", number_text(json_number_value(tokens)).text);
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const json_t *n = json_object_get(training, units[i]);
        if (json_is_integer(n)) {
            buf_printf(b, "%s %s", number_text((double)json_integer_value(n)).text, units[i]);
        }
    }
}

static void put_steps(struct buf *b, const struct run_log *log, int column)
{
    (void)column;
    double step = (double)last_step_of(log),
           epoch = json_number_value(start_field(log, "steps_per_epoch")); /* 0 of what is no number */
    buf_puts(b, number_text(step).text);
    if (step > 0 && epoch > 0 && log->phase2_from < 0) {
        buf_printf(b, ", %.3g epochs of it", step / epoch);
    }
}

/* e to the loss of the next token, of a model or of counts. */
static void put_perplexity(struct buf *b, const struct run_log *log, int measured)
{
    put_number(b, exp(run_rows_last(&log->evaluations, run_column_of(MEASURE_NEXT_TOKEN, measured))));
}

static void put_time(struct buf *b, const struct run_log *log, int column)
{
    (void)column;
    buf_puts(b, progress_time(fmin(log->seconds, 1e12)).text);
}

static void put_last_step(struct buf *b, const struct run_log *log, int column)
{
    put_number(b, run_rows_last(&log->steps, column));
}

static void put_heldout(struct buf *b, const struct run_log *log, int column)
{
    put_number(b, run_rows_last(&log->evaluations, column));
}

static void put_mean(struct buf *b, const struct run_log *log, int column)
{
    put_number(b, mean_of(&log->steps, column));
}

/* The first measure of a run whose held-out values are in its log; N_MEASURES: there is none. */
static int first_measure(const struct run_log *log)
{
    int m = 0;
    while (m < N_MEASURES &&
           !isfinite(run_rows_last(&log->evaluations, run_column_of(m, RUN_MEASURE_ACCURACY)))) {
        m++;
    }
    return m;
}

/* A run's first measure is what it is for; the losses of others are in the charts. */
static void put_first_loss(struct buf *b, const struct run_log *log, int measure)
{
    if (first_measure(log) == measure) {
        put_heldout(b, log, run_column_of(measure, RUN_MEASURE_LOSS));
    }
}

/* A row without a value for any run is left out. */
static void append_summary_row(struct buf *b, const struct run_log *logs, int n_logs, const char *label,
                               summary_cell *put, int column)
{
    struct buf cells = {0};
    bool any = false;
    for (int r = 0; r < n_logs; r++) {
        size_t before;
        buf_puts(&cells, "<td>");
        before = cells.n;
        put(&cells, &logs[r], column);
        any |= cells.n > before;
        buf_puts(&cells, "</td>");
    }
    if (any) {
        buf_printf(b, "<tr><th>%s</th>%s</tr>\n", label, buf_text(&cells));
    }
    b->failed |= cells.failed;
    buf_fini(&cells);
}

/* "held-out loss of masked words". */
static void append_measure_rows(struct buf *b, const struct run_log *logs, int n_logs,
                                enum model_measure_id measure)
{
    const char *of = model_measures[measure].of;
    char label[80];
    snprintf(label, sizeof label, "held-out loss of %s", of);
    append_summary_row(b, logs, n_logs, label, put_first_loss, measure);
    snprintf(label, sizeof label, "held-out loss of %s by word frequencies alone", of);
    append_summary_row(b, logs, n_logs, label, put_heldout, run_column_of(measure, RUN_BASELINE_LOSS));
    snprintf(label, sizeof label, "held-out loss of %s by counts of n-grams", of);
    append_summary_row(b, logs, n_logs, label, put_heldout, run_column_of(measure, RUN_NGRAM_LOSS));
    if (measure == MEASURE_NEXT_TOKEN) {
        append_summary_row(b, logs, n_logs, "held-out perplexity", put_perplexity, RUN_MEASURE_LOSS);
        append_summary_row(b, logs, n_logs, "held-out perplexity of counts of n-grams", put_perplexity,
                           RUN_NGRAM_LOSS);
        append_summary_row(b, logs, n_logs, "held-out bits per byte", put_heldout, RUN_BITS_PER_BYTE);
    }
    snprintf(label, sizeof label, "held-out accuracy of %s", of);
    append_summary_row(b, logs, n_logs, label, put_heldout, run_column_of(measure, RUN_MEASURE_ACCURACY));
}

static void append_summary_rows(struct buf *b, const struct run_log *logs, int n_logs)
{
    append_summary_row(b, logs, n_logs, "from and to", put_dates, 0);
    append_summary_row(b, logs, n_logs, "parameters of the model", put_parameters, 0);
    append_summary_row(b, logs, n_logs, "training data", put_data, 0);
    append_summary_row(b, logs, n_logs, "steps of training", put_steps, 0);
    append_summary_row(b, logs, n_logs, "time in training", put_time, 0);
    append_summary_row(b, logs, n_logs, "training loss", put_last_step, RUN_LOSS);
    for (int m = 0; m < N_MEASURES; m++) {
        append_measure_rows(b, logs, n_logs, m);
    }
    append_summary_row(b, logs, n_logs, "mean tokens/s", put_mean, RUN_TOKENS_PER_SECOND);
    append_summary_row(b, logs, n_logs, "mean sequences/s", put_mean, RUN_SEQUENCES_PER_SECOND);
}

/* The numbers of the last event "score" under their keys, without underscores. */
static void append_score_rows(struct buf *b, const struct run_log *logs, int n_logs)
{
    json_t *keys = json_object(), *value;
    const char *key;
    for (int r = 0; r < n_logs; r++) {
        json_object_update_missing(keys, json_object_get(logs[r].latest, "score"));
    }
    json_object_foreach(keys, key, value)
    {
        if (!json_is_number(value) || strcmp(key, "time") == 0 || strcmp(key, "phase") == 0) {
            continue;
        }
        struct buf label = {0};
        buf_puts(&label, key);
        for (size_t i = 0; i < label.n; i++) {
            label.data[i] = label.data[i] == '_' ? ' ' : label.data[i];
        }
        buf_puts(b, "<tr><th>");
        html_append(b, buf_text(&label));
        buf_puts(b, "</th>");
        buf_fini(&label);
        for (int r = 0; r < n_logs; r++) {
            const json_t *score = json_object_get(json_object_get(logs[r].latest, "score"), key);
            bool number = json_is_number(score) && isfinite(json_number_value(score));
            buf_printf(b, "<td>%s</td>", number ? number_text(json_number_value(score)).text : "");
        }
        buf_puts(b, "</tr>\n");
    }
    json_decref(keys);
}

static void append_samples(struct buf *b, const struct run_log *log)
{
    json_t *table = report_samples_table(log);
    report_table_append(b, table);
    json_decref(table);
}

/* The tables of a run's events. */
static void append_tables(struct buf *b, const struct run_log *logs, int n_logs)
{
    for (int r = 0; r < n_logs; r++) {
        append_samples(b, &logs[r]);
        const char *name;
        json_t *event;
        json_object_foreach(logs[r].latest, name, event)
        {
            const json_t *tables = json_object_get(event, "tables");
            if (n_logs > 1 && json_array_size(tables) > 0) {
                buf_printf(b, "<h1><i class=\"r%d swatch\"></i>", r);
                html_append(b, logs[r].name);
                buf_puts(b, "</h1>\n");
            }
            for (size_t i = 0; i < json_array_size(tables); i++) {
                report_table_append(b, json_array_get(tables, i));
            }
        }
    }
}

/* Each piece between blanks in an element of its own, so that a line does not break within "--flag". */
static void append_words(struct buf *b, const char *text)
{
    for (size_t n; *text != '\0'; text += n) {
        char word[1024];
        n = strcspn(text, " ");
        n += text[n] == ' ';
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), text);
        buf_puts(b, "<span>");
        html_append(b, word);
        buf_puts(b, "</span>");
    }
}

/* The command of each run, which the configuration has in full. */
static void append_commands(struct buf *b, const struct run_log *logs, int n_logs)
{
    for (int r = 0; r < n_logs; r++) {
        const char *command = json_string_value(start_field(&logs[r], "command"));
        if (command != NULL) {
            buf_puts(b, "<p class=\"command\">");
            if (n_logs > 1) {
                buf_printf(b, "<i class=\"r%d swatch\"></i>", r);
            }
            append_words(b, command);
            buf_puts(b, "</p>\n");
        }
    }
}

static void append_summary(struct buf *b, const struct run_log *logs, int n_logs)
{
    append_commands(b, logs, n_logs);
    buf_puts(b, "<div class=\"scroll\"><table>\n");
    if (n_logs > 1) {
        buf_puts(b, "<tr><th></th>");
        for (int r = 0; r < n_logs; r++) {
            buf_printf(b, "<td class=\"run\"><i class=\"r%d swatch\"></i>", r);
            html_append(b, logs[r].name);
            buf_puts(b, "</td>");
        }
        buf_puts(b, "</tr>\n");
    }
    append_summary_rows(b, logs, n_logs);
    append_score_rows(b, logs, n_logs);
    buf_puts(b, "</table></div>\n");
    for (int r = 0; r < n_logs; r++) {
        if (logs[r].n_unreadable > 0) {
            buf_puts(b, "<p class=\"note\">");
            html_append(b, logs[r].path);
            buf_printf(b, ": %lld lines could not be read and were skipped.</p>\n",
                       (long long)logs[r].n_unreadable);
        }
    }
}

/* A column of the tables of settings: a run in one phase. */
struct setting_column {
    const struct run_log *log;
    const char *phase;
    int color;
    json_t *settings; /* name -> value; owned */
};

/* Flags, model and machine of a start, in one object. */
static json_t *settings_of(const json_t *start)
{
    static const char *const own[] = {"task", "parameters", "dtype",   "kiln_version",
                                      "host", "cpu",        "threads", "input_dir"};
    json_t *settings = json_object();
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        json_object_set(settings, own[i], json_object_get(start, own[i]));
    }
    json_object_update(settings, json_object_get(start, "flags"));
    json_object_update_missing(settings, json_object_get(start, "model"));
    return settings;
}

static size_t setting_columns(struct setting_column columns[2 * REPORT_MAX_RUNS], const struct run_log *logs,
                              int n_logs)
{
    static const char *const phases[] = {"1", "2"};
    size_t n = 0;
    for (int r = 0; r < n_logs; r++) {
        for (int p = 0; p < 2; p++) {
            const json_t *start = json_object_get(logs[r].starts, phases[p]);
            if (start != NULL) {
                columns[n++] = (struct setting_column){&logs[r], phases[p], r, settings_of(start)};
            }
        }
    }
    return n;
}

/* A value as text; nothing if the run does not have it. */
static void append_setting(struct buf *b, const json_t *value)
{
    if (json_is_string(value)) {
        html_append(b, json_string_value(value));
    } else if (json_is_real(value)) {
        buf_printf(b, "%.9g", json_real_value(value));
    } else if (json_is_integer(value)) {
        buf_printf(b, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_boolean(value)) {
        buf_puts(b, json_is_true(value) ? "yes" : "no");
    }
}

/* Appends the row of one setting if its values differ between columns; without `differing`, if they agree. */
static bool append_setting_row(struct buf *b, const char *key, const struct setting_column *columns, size_t n,
                               bool differing)
{
    struct buf cells = {0};
    bool same = true, any = false;
    const json_t *first = json_object_get(columns[0].settings, key);
    for (size_t k = 0; k < n; k++) {
        const json_t *value = json_object_get(columns[k].settings, key);
        same &= (value == NULL && first == NULL) || json_equal(value, first);
        any |= value != NULL && !json_is_null(value);
        buf_puts(&cells, "<td>");
        append_setting(&cells, value);
        buf_puts(&cells, "</td>");
    }
    bool shown = any && same != differing;
    if (shown) {
        buf_puts(b, "<tr><th>");
        html_append(b, key);
        buf_printf(b, "</th>%s</tr>\n", buf_text(&cells));
    }
    b->failed |= cells.failed;
    buf_fini(&cells);
    return shown;
}

static void append_setting_table(struct buf *b, const char *title, const struct setting_column *columns,
                                 size_t n, bool differing)
{
    json_t *keys = json_object(), *value; /* keys of all columns */
    struct buf rows = {0};
    const char *key;
    bool any = false;
    for (size_t k = 0; k < n; k++) {
        json_object_update(keys, columns[k].settings);
    }
    json_object_foreach(keys, key, value)
    {
        any |= append_setting_row(&rows, key, columns, n, differing);
    }
    if (any) {
        buf_printf(b, "<details%s><summary>%s</summary><div class=\"scroll\"><table>\n<tr><th></th>",
                   differing ? " open" : "", title);
        for (size_t k = 0; k < n; k++) {
            buf_printf(b, "<td class=\"run\"><i class=\"r%d swatch\"></i>", columns[k].color);
            html_append(b, columns[k].log->name);
            buf_printf(b, ", phase %s</td>", columns[k].phase);
        }
        buf_printf(b, "</tr>\n%s</table></div></details>\n", buf_text(&rows));
    }
    b->failed |= rows.failed;
    buf_fini(&rows);
    json_decref(keys);
}

static void append_configuration(struct buf *b, const struct run_log *logs, int n_logs)
{
    struct setting_column columns[2 * REPORT_MAX_RUNS];
    size_t n = setting_columns(columns, logs, n_logs);
    if (n > 0) {
        append_setting_table(b, "What differs", columns, n, true);
        append_setting_table(b, n > 1 ? "Same in all runs" : "Configuration", columns, n, false);
    }
    for (size_t k = 0; k < n; k++) {
        json_decref(columns[k].settings);
    }
}

static void append_head(struct buf *b, const struct run_log *logs, int n_logs)
{
    buf_puts(b, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta name=\"color-scheme\" content=\"light dark\">\n<title>kiln:");
    for (int r = 0; r < n_logs; r++) {
        buf_puts(b, r == 0 ? " " : ", ");
        html_append(b, logs[r].name);
    }
    buf_printf(b, "</title>\n<style>\n%s%s</style>\n</head>\n<body>\n<h1>", chart_css, report_page_css);
    for (int r = 0; r < n_logs; r++) {
        buf_printf(b, "<span><i class=\"r%d swatch\"></i>", r);
        html_append(b, logs[r].name);
        buf_puts(b, "</span> ");
    }
    buf_puts(b, "</h1>\n");
}

/* One sample of a style, and its meaning. */
static void append_sample(struct buf *b, const char *paths, const char *meaning)
{
    buf_printf(b, "<span><svg viewBox=\"0 0 30 10\">%s</svg>%s</span>\n", paths, meaning);
}

/* The legend of the styles. */
static void append_key(struct buf *b, const struct run_log *logs, int n_logs)
{
    bool heldout = false, floor = false, counts = false, phase2 = false;
    for (int r = 0; r < n_logs; r++) {
        heldout |= logs[r].evaluations.n > 0;
        for (int m = 0; m < N_MEASURES; m++) {
            floor |= isfinite(run_rows_last(&logs[r].evaluations, run_column_of(m, RUN_BASELINE_LOSS)));
            counts |= isfinite(run_rows_last(&logs[r].evaluations, run_column_of(m, RUN_NGRAM_LOSS)));
        }
        phase2 |= logs[r].phase2_from > 0;
    }
    buf_puts(b, "<p class=\"key\">\n");
    append_sample(b, "<path class=\"line\" d=\"M0 5H30\"/>", "training");
    if (heldout) {
        append_sample(b, "<path class=\"heldout\" d=\"M0 5H30\"/><path class=\"dots\" d=\"M15 5h0\"/>",
                      "held-out text");
    }
    if (floor) {
        append_sample(b, "<path class=\"floor\" d=\"M0 5H30\"/>", "word frequencies alone");
    }
    if (counts) {
        append_sample(b, "<path class=\"counts\" d=\"M0 5H30\"/>", "counts of n-grams");
    }
    if (phase2) {
        append_sample(b, "<path class=\"mark\" d=\"M15 -2V12\"/>", "phase 2 begins");
    }
    buf_puts(b, "<span>Left to right: optimizer steps.</span></p>\n");
}

static void append_page(struct buf *b, const struct run_log *logs, int n_logs, bool running)
{
    CHECK(n_logs >= 1 && n_logs <= REPORT_MAX_RUNS, "%d runs", n_logs);
    append_head(b, logs, n_logs);
    if (running) {
        buf_printf(b,
                   "<p class=\"note\" data-drawn=\"%.0f\">The run goes on, and this page follows it.</p>\n",
                   clock_wall_s());
    }
    append_summary(b, logs, n_logs);
    append_tables(b, logs, n_logs);
    append_key(b, logs, n_logs);
    append_charts(b, logs, n_logs);
    append_configuration(b, logs, n_logs);
    buf_puts(b, "<p class=\"note\">kiln " KILN_VERSION ", drawn ");
    append_date(b, clock_wall_s());
    buf_printf(b, "</p>\n<script>\n%s%s</script>\n</body>\n</html>\n", chart_js, report_page_js);
}

void report_append(struct buf *b, const struct run_log *logs, int n_logs)
{
    append_page(b, logs, n_logs, false);
}

void report_append_running(struct buf *b, const struct run_log *logs, int n_logs)
{
    append_page(b, logs, n_logs, true);
}

/* Runs with the same name are shown by their paths. */
static struct status tell_apart(struct run_log *logs, int n_logs)
{
    bool twice[REPORT_MAX_RUNS] = {false};
    for (int i = 0; i < n_logs; i++) {
        for (int k = 0; k < n_logs; k++) {
            twice[i] |= i != k && strcmp(logs[i].name, logs[k].name) == 0;
        }
    }
    for (int i = 0; i < n_logs; i++) {
        char *path = twice[i] ? strdup(logs[i].path) : NULL;
        FAIL_IF(twice[i] && path == NULL, STATUS_MEMORY, "out of memory for the report");
        if (twice[i]) {
            free(logs[i].name);
            logs[i].name = path;
        }
    }
    return status_ok();
}

struct status report_write(const char *output, report_appends *append, const char *const *runs, int n_runs)
{
    struct run_log logs[REPORT_MAX_RUNS] = {0};
    struct buf page = {0};
    struct status s = status_ok();
    CHECK(n_runs >= 1 && n_runs <= REPORT_MAX_RUNS, "%d runs", n_runs);
    for (int i = 0; i < n_runs && !failed(s); i++) {
        s = run_log_open(&logs[i], runs[i]);
    }
    if (!failed(s)) {
        s = tell_apart(logs, n_runs);
    }
    if (!failed(s)) {
        append(&page, logs, n_runs);
        s = buf_status(&page);
    }
    if (!failed(s)) {
        s = file_write_atomic(output, page.data, page.n);
    }
    for (int i = 0; i < n_runs; i++) {
        run_log_close(&logs[i]);
    }
    buf_fini(&page);
    return s;
}
