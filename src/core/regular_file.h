/* regular_file: opens a path from the user for reading, and never blocks.  Opening a pipe that nobody writes
 * to, a terminal or a socket would block the program, which then would not react to SIGTERM, since the call
 * is restarted after the handler. */
#ifndef KILN_CORE_REGULAR_FILE_H
#define KILN_CORE_REGULAR_FILE_H

#include "core/status.h"

#include <stddef.h>

/* *fd is open for reading, of *n bytes; the caller closes it.  STATUS_DATA if it is missing, unreadable or
 * not a regular file, or a pointer of Git LFS instead of one. */
struct status regular_file_open(int *fd, size_t *n, const char *path);

/* Opens, as regular_file_open does, a file that the user has not named and that decides what runs: in a
 * folder that others write to, it could be anyone's.  The checks are made on the opened file.  *fd is -1 if
 * there is none; STATUS_USAGE, with `why` it matters, if it is a link, belongs to another user or can be
 * written by one. */
struct status regular_file_open_own(int *fd, size_t *n, const char *path, const char *why);

#endif
