/* report_figures: the curves and last results of runs as files for papers and other programs: CSV of all
 * values, SVG of the page's charts, and a LaTeX table.  The page itself is report_page. */
#ifndef KILN_REPORT_REPORT_FIGURES_H
#define KILN_REPORT_REPORT_FIGURES_H

#include "report/report_page.h"

/* Appends a line for each step and each evaluation, with the columns that any run has; "set" is "training" or
 * "held-out".  Empty: the value is not in the log. */
void report_csv_append(struct buf *b, const struct run_log *logs, int n_logs);

/* Appends the last value of each column as a table (booktabs) with a column for each run. */
void report_latex_append(struct buf *b, const struct run_log *logs, int n_logs);

#endif
