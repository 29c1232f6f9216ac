/* kiln report: one page with the curves of one or several runs. */
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "core/buf.h"
#include "core/log.h"
#include "io/file.h"
#include "report/report_figures.h"

#include <stddef.h>

struct report_args {
    const char *output, *csv, *svg, *latex;
    struct command_flags common;
};

static const struct option options[] = {
    OPTION_STRING_ROW("output", offsetof(struct report_args, output), NULL, "FILE",
                      "write the page to this file; default: report.html, and no page with --csv, --svg or "
                      "--latex"),
    OPTION_STRING_ROW("csv", offsetof(struct report_args, csv), NULL, "FILE",
                      "write the values of all steps and evaluations as CSV"),
    OPTION_STRING_ROW("svg", offsetof(struct report_args, svg), NULL, "FILE", "write the charts as SVG"),
    OPTION_STRING_ROW("latex", offsetof(struct report_args, latex), NULL, "FILE",
                      "write the last value of each curve as a LaTeX table (booktabs)"),
    DRY_RUN_ROW(offsetof(struct report_args, common.dry_run), "read the logs, and write nothing"),
    {0},
};

/* A file must not overwrite a log that it is made from. */
static struct status check_output(const char *flag, const char *output, int n_runs, const char *const *runs)
{
    for (int i = 0; i < n_runs; i++) {
        struct buf log = {0};
        buf_printf(&log, "%s/log.jsonl", runs[i]);
        bool same = file_is_same(output, runs[i]) || file_is_same(output, buf_text(&log));
        buf_fini(&log);
        FAIL_IF(same, STATUS_USAGE, "%s %s is the log of a run, and would replace it", flag, output);
    }
    return status_ok();
}

static struct status dry_run(int n_runs, const char *const *runs)
{
    for (int i = 0; i < n_runs; i++) {
        struct run_log log;
        TRY(run_log_open(&log, runs[i]));
        log_info("%s: %zu lines of training, %zu evaluations", log.name, log.steps.n, log.evaluations.n);
        run_log_close(&log);
    }
    return status_ok();
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct report_args *a = args;
    const bool is_page = a->output != NULL || (a->csv == NULL && a->svg == NULL && a->latex == NULL);
    const struct {
        const char *flag, *path;
        report_appends *append;
    } files[] = {
        {"--output", !is_page || a->output != NULL ? a->output : "report.html", report_append},
        {"--csv", a->csv, report_csv_append},
        {"--svg", a->svg, report_svg_append},
        {"--latex", a->latex, report_latex_append},
    };
    enum { N_FILES = sizeof files / sizeof files[0] };
    for (int i = 0; i < N_FILES; i++) {
        TRY(files[i].path == NULL ? status_ok()
                                  : check_output(files[i].flag, files[i].path, n_positional, positional));
    }
    if (a->common.dry_run) {
        return dry_run(n_positional, positional);
    }
    for (int i = 0; i < N_FILES; i++) {
        TRY(files[i].path == NULL ? status_ok() : file_check_output(files[i].path, 0));
    }
    for (int i = 0; i < N_FILES; i++) {
        if (files[i].path != NULL) {
            TRY(report_write(files[i].path, files[i].append, positional, n_positional));
            log_info("wrote %s", files[i].path);
        }
    }
    return status_ok();
}

const struct command command_report = {
    .name = "report",
    .summary = "write a page with the curves of one or several runs side by side",
    .details =
        "RUN is the output directory of `kiln pretrain` or `kiln squad`, or its log.jsonl; up to 8 "
        "are shown together.  The page needs no network and no other file.  Each run also keeps its "
        "own page up to date, OUTPUT_DIR/report.html.  For papers, --csv, --svg and --latex write the same "
        "curves and their last values.",
    .positional_usage = "RUN...",
    .min_positional = 1,
    .max_positional = REPORT_MAX_RUNS,
    .options = options,
    .args_bytes = sizeof(struct report_args),
    .run = run,
};
