/* completion: what a shell offers for the next word of a command line: commands, flags and choices, from
 * the table of each command. */
#ifndef KILN_CMD_COMPLETION_H
#define KILN_CMD_COMPLETION_H

#include "core/status.h"

/* `kiln completion SHELL`: prints the script of bash, zsh or fish that calls `kiln complete`.  STATUS_USAGE:
 * another shell. */
struct status completion_print_script(const char *shell);

/* `kiln complete WORD...`: prints what the last word may become, a line each, and an explanation after a tab.
 * Nothing: a file, or any text. */
void completion_print_words(int n, const char *const *words);

#endif
