/* dir_lock: one run per output: a directory that it writes into, or a name.
 *
 * The lock is a file_lock on DIR/.lock, which stays, or on .NAME.lock next to the output, which goes with the
 * lock.  The file's text, host and pid, is only for the error message of a second run. */
#ifndef KILN_IO_DIR_LOCK_H
#define KILN_IO_DIR_LOCK_H

#include "io/file.h"

struct dir_lock {
    int fd;                            /* -1: not held */
    char beside[FILE_PATH_BYTES + 16]; /* .NAME.lock, to be removed; "" for a directory's */
};

/* Locks a directory that exists.  STATUS_IO names the owner if another process holds it. */
struct status dir_lock_acquire(struct dir_lock *lock, const char *directory);

/* Locks the name `path`: of a file, of files whose names begin so, or of a directory that is replaced
 * completely.  Its directory exists; errors as above. */
struct status dir_lock_acquire_beside(struct dir_lock *lock, const char *path);

/* Safe on one that was not acquired, if fd is -1. */
void dir_lock_release(struct dir_lock *lock);

#endif
