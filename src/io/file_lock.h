/* file_lock: exclusive locks of open files, by flock(2): the kernel releases a lock when its process dies,
 * however it dies. */
#ifndef KILN_IO_FILE_LOCK_H
#define KILN_IO_FILE_LOCK_H

#include "core/status.h"

/* Opens a file that exists to be locked, or creates it: an empty one that is never removed, for otherwise two
 * processes could lock two files of the same name.  STATUS_IO: it cannot be made, or is not a regular
 * file. */
struct status file_lock_open(int *fd, const char *path);

/* Locks an open file until it is closed.  False with errno EWOULDBLOCK if another open file has the lock, or
 * with the reason for which its file system gives none.  A forked child holds the lock as well, until it ends
 * or executes another program. */
bool file_lock_try(int fd);

/* Locks as file_lock_try does, but waits up to 5 seconds for a process that holds the lock only while it
 * writes a file. */
bool file_lock_wait(int fd);

#endif
