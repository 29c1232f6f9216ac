/* kiln report: one page with the curves of one or several runs. */
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "core/buf.h"
#include "core/log.h"
#include "io/file.h"
#include "report/report_page.h"

#include <stddef.h>

struct report_args {
    const char *output;
    struct command_flags common;
};

static const struct option options[] = {
    OPTION_STRING_ROW("output", offsetof(struct report_args, output), "report.html", "FILE",
                      "write the page to this file"),
    DRY_RUN_ROW(offsetof(struct report_args, common.dry_run), "read the logs, and write nothing"),
    {0},
};

/* The page must not overwrite a log that it is made from. */
static struct status check_output(const char *output, int n_runs, const char *const *runs)
{
    for (int i = 0; i < n_runs; i++) {
        struct buf log = {0};
        buf_printf(&log, "%s/log.jsonl", runs[i]);
        bool same = file_is_same(output, runs[i]) || file_is_same(output, buf_text(&log));
        buf_fini(&log);
        FAIL_IF(same, STATUS_USAGE, "--output %s is the log of a run, and would replace it", output);
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
    TRY(check_output(a->output, n_positional, positional));
    if (a->common.dry_run) {
        return dry_run(n_positional, positional);
    }
    TRY(file_check_output(a->output, 0));
    TRY(report_write(a->output, positional, n_positional));
    log_info("wrote %s", a->output);
    return status_ok();
}

const struct command command_report = {
    .name = "report",
    .summary = "write a page with the curves of one or several runs side by side",
    .details = "RUN is the output directory of `kiln pretrain` or `kiln squad`, or its log.jsonl; up to 8 "
               "are shown together.  The page needs no network and no other file.  Each run also keeps its "
               "own page up to date, OUTPUT_DIR/report.html.",
    .positional_usage = "RUN...",
    .min_positional = 1,
    .max_positional = REPORT_MAX_RUNS,
    .options = options,
    .args_bytes = sizeof(struct report_args),
    .run = run,
};
