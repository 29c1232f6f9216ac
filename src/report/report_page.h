/* report_page: report.html: one or several runs side by side, on one page that needs no network and no other
 * file.  Charts are SVG; the style and the small script that shows the values under the pointer are
 * report_page.css and report_page.js, which the build embeds in the program. */
#ifndef KILN_REPORT_REPORT_PAGE_H
#define KILN_REPORT_REPORT_PAGE_H

#include "core/buf.h"
#include "report/run_log.h"

enum { REPORT_MAX_RUNS = 8 }; /* number of colours that people can distinguish */

/* Appends the page; and that of runs which go on, which an open page loads again until one is drawn at the
 * end. */
void report_append(struct buf *b, const struct run_log *logs, int n_logs);
void report_append_running(struct buf *b, const struct run_log *logs, int n_logs);

/* Appends the charts as one SVG, which needs no style sheet. */
void report_svg_append(struct buf *b, const struct run_log *logs, int n_logs);

/* Reads the runs (directories, or their log.jsonl) and writes what `append` makes of them, such as
 * report_append, to OUTPUT completely or not at all.  STATUS_DATA, STATUS_IO. */
typedef void report_appends(struct buf *b, const struct run_log *logs, int n_logs);
struct status report_write(const char *output, report_appends *append, const char *const *runs, int n_runs);

/* The embedded files. */
extern const char chart_css[], report_page_css[];
extern const char chart_js[], report_page_js[];

#endif
