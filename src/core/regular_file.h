/* regular_file: opening what a user named for reading, without ever waiting for it: a pipe that nobody writes to, a
 * terminal or a socket would keep the program, deaf to SIGTERM while a handler restarts the call. */
#ifndef KILN_CORE_REGULAR_FILE_H
#define KILN_CORE_REGULAR_FILE_H

#include "core/status.h"

#include <stddef.h>

/* *fd is open for reading, of *n bytes; the caller closes it.  STATUS_DATA if it is missing, unreadable or no
 * regular file. */
struct status regular_file_open(int *fd, size_t *n, const char *path);

#endif
