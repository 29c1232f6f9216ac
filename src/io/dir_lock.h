/* dir_lock: one run per output directory.
 *
 * The lock is flock(2) on DIR/.lock, so the kernel releases it when its process dies, however it dies; the
 * file's text, host and pid, only serves the message that a second run gets.  The file stays: removing it
 * would let two runs lock two files of the same name. */
#ifndef KILN_IO_DIR_LOCK_H
#define KILN_IO_DIR_LOCK_H

#include "core/status.h"

struct dir_lock {
    int fd; /* -1: not held */
};

/* Locks a directory that exists.  STATUS_IO names the owner if another process holds it.  A child process
 * made by fork holds the lock too until it ends or executes another program. */
struct status dir_lock_acquire(struct dir_lock *lock, const char *directory);

void dir_lock_release(struct dir_lock *lock);

#endif
