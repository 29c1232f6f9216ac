/* rank_environment: the environment variables that ranks on other hosts get: those of files, and those of
 * this process whose names say that they are for what ranks use. */
#ifndef KILN_LAUNCH_RANK_ENVIRONMENT_H
#define KILN_LAUNCH_RANK_ENVIRONMENT_H

#include "core/words.h"

#include <stdint.h>

/* Appends NAME=VALUE of ~/.deepspeed_env, ./.deepspeed_env, where they exist, and `path` (NULL: none), and
 * says which were read. */
struct status rank_environment_read(struct words *variables, const char *path);

/* Appends the names of this process's variables that remote ranks get too, unless `variables` set them. */
void rank_environment_export(struct words *names, const struct words *variables);

/* This process's rank, as its launcher numbers it; -1: it has none. */
int64_t rank_environment_number(void);

/* Files of environment variables for all ranks, as DeepSpeed's ~/.deepspeed_env: lines NAME=VALUE, cut at the
 * first '='; blank lines and lines that begin with '#' are left out. */

/* Appends the file's "NAME=VALUE" to `variables`; of two with one name the later counts.
 * STATUS_DATA: it cannot be read; STATUS_USAGE names a line that is nothing of the kind, or a variable that
 * mpirun keeps for itself. */
struct status env_file_read(struct words *variables, const char *path);

#endif
