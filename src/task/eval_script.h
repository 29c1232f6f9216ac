/* eval_script: the user's own script that scores predictions, as --eval_script of run_squad.py names it. */
#ifndef KILN_TASK_EVAL_SCRIPT_H
#define KILN_TASK_EVAL_SCRIPT_H

#include "core/status.h"
#include "data/score_list.h"

/* Runs `python3 script data predictions` and appends the scores "exact_match" and "f1" that it prints as
 * JSON; the user sees what it prints.  STATUS_USAGE: a path has quotes; STATUS_DATA: it failed. */
struct status eval_script_run(struct score_list *scores, const char *script, const char *data,
                              const char *predictions);

#endif
