/* command_run: runs a command on the words of a command line, the user's or another command's. */
#ifndef KILN_CMD_COMMAND_RUN_H
#define KILN_CMD_COMMAND_RUN_H

#include "core/option.h"

/* Parses argv[0..argc), the words after the command's name, and runs the command or prints its help. */
struct status command_run(const struct command *c, int argc, const char **argv);

/* Only parses them: STATUS_USAGE. */
struct status command_check(const struct command *c, int argc, const char **argv);

#endif
