/* run_log: the contents of a run's log.jsonl, prepared for charts.
 *
 * The rule: a log is read as far as possible.  A torn or foreign line is skipped and counted, and where a run
 * was resumed before its last line, the later lines win.  Steps are global: phase 2 continues the numbers of
 * phase 1. */
#ifndef KILN_REPORT_RUN_LOG_H
#define KILN_REPORT_RUN_LOG_H

#include "core/json.h"
#include "nn/model_measures.h"

/* Columns of the log for a measure of the model (nn/model_measures.h). */
enum run_measured {
    RUN_MEASURE_LOSS,
    RUN_MEASURE_ACCURACY,
    RUN_BASELINE_LOSS,     /* loss of word frequencies; evaluations only */
    RUN_BASELINE_ACCURACY, /* evaluations only */
    RUN_NGRAM_LOSS,        /* loss of counts of n-grams; evaluations only */
    RUN_N_MEASURED,
};

enum run_column {
    RUN_LOSS, /* the total */
    RUN_GRAD_NORM,
    RUN_LEARNING_RATE,
    RUN_SEQUENCES_PER_SECOND,
    RUN_TOKENS_PER_SECOND,
    RUN_PERPLEXITY,    /* perplexity of a decoder; evaluations only */
    RUN_BITS_PER_BYTE, /* the same */
    RUN_MEASURES,      /* the columns of each measure follow */
    RUN_N_COLUMNS = RUN_MEASURES + N_MEASURES * RUN_N_MEASURED,
};

/* The column of a measure.  The loss of a measure that has no name of its own in logs is the total. */
enum run_column run_column_of(enum model_measure_id measure, enum run_measured what);

struct run_row {
    int64_t step; /* global */
    int phase;
    float values[RUN_N_COLUMNS]; /* NaN: not in the log */
};

/* Rows by ascending step. */
struct run_rows {
    struct run_row *rows; /* [n] */
    size_t n, capacity;
};

/* The last value of a column that is present; NaN if there is none. */
double run_rows_last(const struct run_rows *rows, enum run_column column);

struct run_log {
    char *path; /* path of the log */
    char *name; /* name of the run: the last part of its directory's path */
    struct run_rows steps, evaluations;
    json_t *starts;   /* phase ("1", "2") -> the last event that started or resumed it */
    json_t *latest;   /* event -> the last one of that name, except starts, steps and evaluations */
    json_t *samples;  /* the events "sample", by ascending step */
    int64_t n_starts; /* number of times that it was started */
    int64_t n_unreadable;
    int64_t phase2_from;    /* global step at which phase 2 begins; -1: none */
    double first_s, last_s; /* times of its first and last line, in seconds since 1970; NaN: no lines */
    double seconds;         /* sum over all starts of the time from its first line to its last */
};

/* Reads a directory's log.jsonl, or the file itself.  STATUS_DATA if there is none. */
struct status run_log_open(struct run_log *log, const char *run);
void run_log_close(struct run_log *log);

/* Whether a column has a value in one of the runs, in training or held out. */
bool run_logs_have(const struct run_log *logs, int n_logs, enum run_column column);

/* Reads a log from text [n], for tests; `run` names it.  STATUS_MEMORY. */
struct status run_log_parse(struct run_log *log, const char *run, const char *text, size_t n);

/* What a model made of fixed prompts while it learned: a table, as report_table_append reads it, with a row
 * for each of some evaluations from the first to the last and a column for each prompt; the caller
 * json_decref's it.  NULL: the run has no samples. */
json_t *report_samples_table(const struct run_log *log);

#endif
