/* temporary: what is written beside its place until it is whole, under the name .NAME.kiln-XXXXXXXXXXXXXXXX.tmp
 * (16 random hexadecimal digits; NAME is cut to 100 bytes).
 *
 * Its writer holds flock(2) on it.  The kernel drops that lock when the process dies, however it dies, so a
 * temporary that nobody locks belongs to a dead run and may go: no process number is trusted, which means
 * nothing across containers.  Where a file system cannot lock, nothing is taken for left over. */
#ifndef KILN_IO_TEMPORARY_H
#define KILN_IO_TEMPORARY_H

#include "core/status.h"

/* More than a path of FILE_PATH_BYTES (io/file.h) and the name of a temporary in its directory. */
enum { TEMPORARY_PATH_BYTES = 1024 + 160 };

struct temporary {
    char path[TEMPORARY_PATH_BYTES];
    int fd; /* open on it and holding its lock: a file for writing, a directory for reading; -1: none */
};

/* Creates an empty file, or an empty directory, beside `final`, with the permissions that the umask leaves; no
 * link is followed and nothing that exists is touched.  STATUS_IO if that fails. */
struct status temporary_create_file(struct temporary *t, const char *final);
struct status temporary_create_directory(struct temporary *t, const char *final);

/* Closes the descriptor, and so gives up the lock: once the temporary was renamed, or to leave it.  Safe on one
 * that was never created if fd is -1. */
void temporary_close(struct temporary *t);

/* Removes it, a directory with all that is in it, then closes; what cannot be removed is a warning. */
void temporary_remove(struct temporary *t);

#endif
