/* unpack: zip, tar, gzip and bzip2, so that a hostile archive can write nothing outside its place and fill no disk.
 *
 * An archive of several files becomes a directory of its own name, NAME.zip NAME/, whether its files lie in a folder of that
 * name or not; a compressed file becomes NAME.  Written aside, checked, and renamed when all of it is there.  libarchive reads
 * the formats (unpack_archive.c); a build without it says so (unpack_absent.c). */
#ifndef KILN_FETCH_UNPACK_H
#define KILN_FETCH_UNPACK_H

#include "core/status.h"
#include "io/file.h"

enum unpack_kind { UNPACK_NONE, UNPACK_FILE, UNPACK_DIRECTORY };

/* What a file in an archive must be; a row without a name ends a table. */
struct unpack_sum {
    const char *name; /* in the directory that the archive becomes */
    const char *sum;  /* MD5 or SHA-256 */
};

/* What an archive becomes and where, by the end of its name; UNPACK_NONE: it is no archive. */
enum unpack_kind unpack_target(char target[FILE_PATH_BYTES], const char *archive);

/* STATUS_DATA names the archive and why: damaged, not of the format that its name says, a path that leads out of its place, a
 * link or a device, a name twice, more than 100 times its size, a file that `sums` (may be NULL) has and that is not there or has
 * another checksum.  STATUS_IO: disk full.  STATUS_USAGE: the target is there.  STATUS_PREEMPTED: a signal. */
struct status unpack_archive(const char *target, enum unpack_kind kind, const char *archive,
                             const struct unpack_sum *sums);

/* Whether the files of a directory have the checksums; STATUS_DATA. */
struct status unpack_check(const char *directory, const struct unpack_sum *sums);

/* What a file of an archive is called in the directory: *name, which may be inside `path`; "" for that directory itself.  False
 * if the path is absolute, leads upwards, is empty or too long, or has a control character or a backslash. */
bool unpack_name(const char **name, const char *path, const char *top);

/* libarchive's version; NULL if it is not built in or not on this machine. */
const char *unpack_version(void);

#endif
