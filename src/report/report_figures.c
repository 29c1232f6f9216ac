#include "report/report_figures.h"

#include <math.h>
#include <stdio.h>

/* A column under a name for programs. */
struct named_column {
    char name[64];
    enum run_column column;
};

static void add_column(struct named_column *columns, int *n, const struct run_log *logs, int n_logs,
                       const char *before, const char *name, enum run_column column)
{
    if (run_logs_have(logs, n_logs, column)) {
        snprintf(columns[*n].name, sizeof columns[*n].name, "%s%s", before, name);
        columns[(*n)++].column = column;
    }
}

/* The columns that any run has; returns how many. */
static int find_columns(struct named_column columns[RUN_N_COLUMNS], const struct run_log *logs, int n_logs)
{
    static const char *const first[RUN_MEASURES] = {
        [RUN_LOSS] = "loss",
        [RUN_GRAD_NORM] = "grad_norm",
        [RUN_LEARNING_RATE] = "learning_rate",
        [RUN_SEQUENCES_PER_SECOND] = "sequences_per_second",
        [RUN_TOKENS_PER_SECOND] = "tokens_per_second",
        [RUN_PERPLEXITY] = "perplexity",
        [RUN_BITS_PER_BYTE] = "bits_per_byte",
    };
    int n = 0;
    for (int i = 0; i < RUN_MEASURES; i++) {
        add_column(columns, &n, logs, n_logs, "", first[i], i);
    }
    for (int m = 0; m < N_MEASURES; m++) {
        const struct model_measure *of = &model_measures[m];
        const struct {
            const char *before, *name;
            enum run_measured what;
        } own[] = {{"", of->loss, RUN_MEASURE_LOSS},
                   {"", of->accuracy, RUN_MEASURE_ACCURACY},
                   {"unigram_", of->loss, RUN_BASELINE_LOSS},
                   {"unigram_", of->accuracy, RUN_BASELINE_ACCURACY},
                   {"ngram_", of->loss, RUN_NGRAM_LOSS}};
        for (size_t i = run_column_of(m, RUN_MEASURE_LOSS) == RUN_LOSS; i < sizeof own / sizeof own[0]; i++) {
            add_column(columns, &n, logs, n_logs, own[i].before, own[i].name, run_column_of(m, own[i].what));
        }
    }
    return n;
}

/* ---- CSV (RFC 4180) ---- */

static void append_quoted(struct buf *b, const char *text)
{
    buf_putc(b, '"');
    for (; *text != '\0'; text++) {
        buf_puts(b, *text == '"' ? "\"" : "");
        buf_putc(b, *text);
    }
    buf_putc(b, '"');
}

static void append_rows(struct buf *b, const struct run_log *log, bool held_out,
                        const struct named_column *columns, int n)
{
    const struct run_rows *rows = held_out ? &log->evaluations : &log->steps;
    for (size_t i = 0; i < rows->n; i++) {
        const struct run_row *row = &rows->rows[i];
        append_quoted(b, log->name);
        buf_printf(b, ",%s,%d,%lld", held_out ? "held-out" : "training", row->phase, (long long)row->step);
        for (int c = 0; c < n; c++) {
            float value = row->values[columns[c].column];
            buf_putc(b, ',');
            if (isfinite(value)) {
                buf_printf(b, "%.9g", (double)value);
            }
        }
        buf_putc(b, '\n');
    }
}

void report_csv_append(struct buf *b, const struct run_log *logs, int n_logs)
{
    struct named_column columns[RUN_N_COLUMNS];
    int n = find_columns(columns, logs, n_logs);
    buf_puts(b, "run,set,phase,step");
    for (int c = 0; c < n; c++) {
        buf_printf(b, ",%s", columns[c].name);
    }
    buf_putc(b, '\n');
    for (int r = 0; r < n_logs; r++) {
        append_rows(b, &logs[r], false, columns, n);
        append_rows(b, &logs[r], true, columns, n);
    }
}

/* ---- LaTeX ---- */

static void append_tex(struct buf *b, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '_':
        case '%':
        case '&':
        case '#':
        case '$':
        case '{':
        case '}': buf_printf(b, "\\%c", *text); break;
        case '\\': buf_puts(b, "\\textbackslash{}"); break;
        case '~': buf_puts(b, "\\textasciitilde{}"); break;
        case '^': buf_puts(b, "\\textasciicircum{}"); break;
        default: buf_putc(b, *text);
        }
    }
}

static void append_last(struct buf *b, const struct run_log *logs, int n_logs, bool held_out,
                        const struct named_column *c)
{
    struct buf cells = {0};
    bool any = false;
    for (int r = 0; r < n_logs; r++) {
        double value = run_rows_last(held_out ? &logs[r].evaluations : &logs[r].steps, c->column);
        any |= isfinite(value);
        isfinite(value) ? buf_printf(&cells, " & %.4g", value) : buf_puts(&cells, " & --");
    }
    if (any) {
        buf_puts(b, held_out ? "held-out: " : "training: ");
        append_tex(b, c->name);
        buf_printf(b, "%s \\\\\n", buf_text(&cells));
    }
    b->failed |= cells.failed;
    buf_fini(&cells);
}

void report_latex_append(struct buf *b, const struct run_log *logs, int n_logs)
{
    struct named_column columns[RUN_N_COLUMNS];
    int n = find_columns(columns, logs, n_logs);
    buf_puts(b, "% \\usepackage{booktabs}\n\\begin{tabular}{l");
    for (int r = 0; r < n_logs; r++) {
        buf_putc(b, 'r');
    }
    buf_puts(b, "}\n\\toprule\n");
    for (int r = 0; r < n_logs; r++) {
        buf_puts(b, " & ");
        append_tex(b, logs[r].name);
    }
    buf_puts(b, " \\\\\n\\midrule\n");
    for (int c = 0; c < 2 * n; c++) {
        append_last(b, logs, n_logs, c >= n, &columns[c % n]);
    }
    buf_puts(b, "\\bottomrule\n\\end{tabular}\n");
}
