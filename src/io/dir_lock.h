/* dir_lock: one run per output directory.
 *
 * The lock is a file_lock on DIR/.lock.  The file's text, host and pid, is only for the error message of a
 * second run. */
#ifndef KILN_IO_DIR_LOCK_H
#define KILN_IO_DIR_LOCK_H

#include "core/status.h"

struct dir_lock {
    int fd; /* -1: not held */
};

/* Locks a directory that exists.  STATUS_IO names the owner if another process holds it. */
struct status dir_lock_acquire(struct dir_lock *lock, const char *directory);

void dir_lock_release(struct dir_lock *lock);

#endif
