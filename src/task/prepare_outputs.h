/* prepare_outputs: the files and directories that `kiln prepare` puts in its output directory, and where they
 * are made.
 *
 * The rule: an output is moved from OUTPUT_DIR/.prepare when it is complete; the description of a store comes
 * last and the old one goes first; moving can be repeated at any point of it. */
#ifndef KILN_TASK_PREPARE_OUTPUTS_H
#define KILN_TASK_PREPARE_OUTPUTS_H

#include "task/prepare_run.h"

/* The directory in which all is made. */
#define PREPARE_WORK_NAME ".prepare"

/* STATUS_USAGE: there are outputs already, of the kinds that this run makes, or another vocabulary. */
struct status prepare_outputs_check(const struct prepare_config *c);

/* The directory of a set in OUTPUT_DIR/.prepare. */
struct status prepare_outputs_set_path(char path[FILE_PATH_BYTES], const struct prepare_config *c,
                                       const struct prepare_set *set);

/* Removes the temporaries of dead runs, an earlier version's too. */
void prepare_outputs_clean(const struct prepare_config *c);

/* Removes outputs of an earlier run that this one has nothing for. */
struct status prepare_outputs_remove_old(const struct prepare_config *c);

/* Moves what is in .prepare to its place, and writes the vocabulary. */
struct status prepare_outputs_move(const struct prepare_config *c);

/* STATUS_USAGE: an output would be written over an input. */
struct status prepare_outputs_guard(const struct prepare_config *c, const struct input_files *f);

#endif
