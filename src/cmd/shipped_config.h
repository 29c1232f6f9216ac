/* shipped_config: the model configurations that kiln comes with, by name: "mini" is the file that is called
 * mini behind its first "_".
 *
 * They stand in ../share/kiln/configs of an installed program, and in ../configs of one in its build
 * folder. */
#ifndef KILN_CMD_SHIPPED_CONFIG_H
#define KILN_CMD_SHIPPED_CONFIG_H

#include "core/status.h"

enum { SHIPPED_CONFIG_BYTES = 4096 };

/* If *config_file is a name without '/' and .json, and no file is called so, writes the path of the
 * configuration of this name to `path` and points *config_file at it.  STATUS_USAGE names those that
 * exist, if one has a name like it. */
struct status shipped_config_find(char path[SHIPPED_CONFIG_BYTES], const char **config_file);

#endif
