/* temporary: what is written beside its place until it is whole, under the name .NAME.kiln-XXXXXXXXXXXXXXXX.tmp
 * (16 random hexadecimal digits; NAME is cut to 100 bytes).
 *
 * Its writer holds flock(2) on it.  The kernel drops that lock when the process dies, however it dies, so a
 * temporary that nobody locks belongs to a dead run and may go: no process number is trusted, which means
 * nothing across containers.  Where a file system cannot lock, nothing is taken for left over; where its locks hold
 * on one host only, as with NFS mounted so, two hosts must not write to one place at once. */
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

/* Gives the directory the name `final` and makes that durable, then closes.  A directory that has the name is
 * exchanged for it and removed: at every instant one of the two stands there.  A file system that cannot exchange
 * (NFS) has an instant in which neither does: the older one is then .NAME.kiln-XXXXXXXXXXXXXXXX.old, from where
 * temporary_clean puts it back.  On failure the older one stands, and the temporary is still there. */
struct status temporary_put_directory(struct temporary *t, const char *final);

/* Removes a directory that stands in its place, so that no crash leaves half of it under its name: it is renamed to a
 * temporary's name first, and that made durable. */
struct status temporary_remove_directory(const char *path);

/* Removes what dead runs left beside `final`, puts back what one had moved aside, and says so for each.  What a live
 * process writes, what is another user's, and what cannot be removed (a warning), stays. */
void temporary_clean(const char *final);

/* Whether nothing stands at `final` because a run died between two renames, and where the older directory is. */
bool temporary_find_aside(char aside[TEMPORARY_PATH_BYTES], const char *final);

/* Whether a file of this name in a directory is a temporary, of whatever. */
bool temporary_is_name(const char *name);

/* Closes the descriptor, and so gives up the lock: once the temporary was renamed, or to leave it.  Safe on one
 * that was never created if fd is -1. */
void temporary_close(struct temporary *t);

/* Removes it, a directory with all that is in it, then closes; what cannot be removed is a warning. */
void temporary_remove(struct temporary *t);

#endif
