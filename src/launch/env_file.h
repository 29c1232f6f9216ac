/* env_file: files of environment variables for all ranks, as DeepSpeed's ~/.deepspeed_env: lines NAME=VALUE,
 * cut at the first '='; blank lines and lines that begin with '#' are left out. */
#ifndef KILN_LAUNCH_ENV_FILE_H
#define KILN_LAUNCH_ENV_FILE_H

#include "core/words.h"

/* Appends the file's "NAME=VALUE" to `variables`; of two with one name the later counts.
 * STATUS_DATA: it cannot be read; STATUS_USAGE names a line that is nothing of the kind, or a variable that
 * mpirun keeps for itself. */
struct status env_file_read(struct words *variables, const char *path);

/* The same of one that no flag names, which may be missing (*found).  STATUS_USAGE: it is not surely this
 * user's. */
struct status env_file_read_own(struct words *variables, const char *path, bool *found);

#endif
