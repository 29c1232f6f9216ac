/* regular_file: opens a path from the user for reading, and never blocks.  Opening a pipe that nobody writes
 * to, a terminal or a socket would block the program, which then would not react to SIGTERM, since the call
 * is restarted after the handler. */
#ifndef KILN_CORE_REGULAR_FILE_H
#define KILN_CORE_REGULAR_FILE_H

#include "core/status.h"

#include <stddef.h>

/* *fd is open for reading, of *n bytes; the caller closes it.  STATUS_DATA if it is missing, unreadable or
 * not a regular file, or a pointer of Git LFS in its place. */
struct status regular_file_open(int *fd, size_t *n, const char *path);

#endif
