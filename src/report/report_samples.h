/* report_samples: what a model made of fixed prompts while it learned, as a table: a row for each evaluation,
 * a column for each prompt. */
#ifndef KILN_REPORT_REPORT_SAMPLES_H
#define KILN_REPORT_REPORT_SAMPLES_H

#include "report/run_log.h"

/* The table, as report_table_append reads it, of some evaluations from the first to the last; the caller
 * json_decref's it.  NULL: the run has no samples. */
json_t *report_samples_table(const struct run_log *log);

#endif
