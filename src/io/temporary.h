/* temporary: a file or directory that is written next to its final path, under the name
 * .NAME.kiln-XXXXXXXXXXXXXXXX.tmp (16 random hexadecimal digits; NAME is cut to 100 bytes), until it is
 * complete.
 *
 * Its writer holds flock(2) on it.  The kernel drops that lock when the process dies, however it dies, so an
 * unlocked temporary belongs to a dead run and may be removed.  Process numbers are not used: they mean
 * nothing across containers.  On a file system without locks no temporary is removed.  Where locks are local
 * to one host, as with some NFS mounts, two hosts must not write to the same path at once. */
#ifndef KILN_IO_TEMPORARY_H
#define KILN_IO_TEMPORARY_H

#include "core/status.h"

/* Space for a path of FILE_PATH_BYTES (io/file.h) and the name of a temporary in its directory. */
enum { TEMPORARY_PATH_BYTES = 1024 + 160 };

struct temporary {
    char path[TEMPORARY_PATH_BYTES];
    int fd; /* open on it and holding its lock: a file for writing, a directory for reading; -1: none */
};

/* Creates an empty file, or an empty directory, next to `final`, with the permissions that the umask leaves;
 * no link is followed and nothing that exists is touched.  STATUS_IO if that fails. */
struct status temporary_create_file(struct temporary *t, const char *final);
struct status temporary_create_directory(struct temporary *t, const char *final);

/* Renames the directory to `final`, durably, then closes.  An existing directory of that name is exchanged
 * for it and removed, so one of the two is there at every instant.  A file system that cannot exchange (NFS)
 * has an instant in which neither is: the older one is then named .NAME.kiln-XXXXXXXXXXXXXXXX.old, and
 * temporary_clean puts it back.  On failure the older one stays, and so does the temporary. */
struct status temporary_put_directory(struct temporary *t, const char *final);

/* Removes a finished directory so that no crash leaves half of it under its name: it is first renamed,
 * durably, to a temporary's name. */
struct status temporary_remove_directory(const char *path);

/* Removes the temporaries of dead runs next to `final`, puts back a directory that one had moved aside, and
 * logs each.  It keeps those of live processes and of other users, and those it cannot remove (with a
 * warning). */
void temporary_clean(const char *final);

/* Whether `final` is missing because a run died between two renames, and where the older directory is. */
bool temporary_find_aside(char aside[TEMPORARY_PATH_BYTES], const char *final);

/* Whether this file name is that of a temporary, of any path. */
bool temporary_is_name(const char *name);

/* Closes the descriptor, and so releases the lock: after the temporary was renamed, or to keep it on disk.
 * Safe on one that was never created, if fd is -1. */
void temporary_close(struct temporary *t);

/* Removes it, a directory with all that is in it, then closes; what cannot be removed is a warning. */
void temporary_remove(struct temporary *t);

#endif
